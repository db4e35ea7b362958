"""The fact guard: checks that a text must pass before it is written to the CMS. Deterministic; no I/O, clock or model.

``inspection`` combines the checks: addresses, markup and emoji (``signs``), numbers (``number_mentions``), titles
(``title_mentions``), people whom our library knows (``known_people``) and others (``unknown_people``), claims and
advertising (``claims``), plot (``plot_support``, with the acting people in ``plot_actors``), copies (``copies``).
Surnames and words like names are in ``name_words``, the vocabulary of plots in ``plot_words``, normalised forms of
texts in ``plain_text``.
"""

from douban_pipeline.douban.intros.factguard.copies import similarity
from douban_pipeline.douban.intros.factguard.inspection import LengthLimits, Violation, inspect, marks
from douban_pipeline.douban.intros.factguard.known_people import candidates_for_people
from douban_pipeline.douban.intros.factguard.plain_text import count_han, plain, sentences_of, shown
from douban_pipeline.douban.intros.factguard.plot_support import tells_plot

__all__ = [
    "LengthLimits",
    "Violation",
    "candidates_for_people",
    "count_han",
    "inspect",
    "marks",
    "plain",
    "sentences_of",
    "shown",
    "similarity",
    "tells_plot",
]
