"""The fact guard: what a text must not hold if it is to be in the CMS. Deterministic; no I/O, no clock, no model.

``inspection`` puts the checks together: addresses, markup and emoji (``signs``), numbers (``number_mentions``), titles
(``title_mentions``), people whom our library knows (``known_people``) and others (``unknown_people``), claims and
advertising (``claims``), plot (``plot_support``, with who acts in ``plot_actors``), copies (``copies``). Surnames and
words like names are in ``name_words``, the words that plots are told in in ``plot_words``, the forms compared in
``plain_text``.
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
