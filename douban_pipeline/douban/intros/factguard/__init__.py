"""The fact guard: checks that a text must pass before it is written to the CMS. Deterministic; no I/O, clock or model.

``inspection`` combines the checks: claims, advertising, addresses, markup and emoji (``claims``), numbers
(``number_mentions``), titles (``title_mentions``), people whom our library knows (``known_people``) and others
(``unknown_people``), plot (``plot_support``, with the acting people in ``plot_actors``), copies (``copies``). Surnames
and words like names are in ``name_words``, the vocabulary of plots in ``plot_words`` and ``plot_lexicon``, normalised
forms of texts in ``plain_text``. ``passages`` compares a sentence with the passages that the second reading quotes for
it: with who is named (``story_people``), who does what to whom (``plot_roles``), and what is denied.
"""

from douban_pipeline.douban.intros.factguard.copies import similarity
from douban_pipeline.douban.intros.factguard.inspection import LengthLimits, Violation, inspect, marks
from douban_pipeline.douban.intros.factguard.known_people import candidates_for_people
from douban_pipeline.douban.intros.factguard.passages import Story, passage_problem, tells_story
from douban_pipeline.douban.intros.factguard.plain_text import count_han, letters_of, plain, sentences_of, shown

__all__ = [
    "LengthLimits",
    "Story",
    "Violation",
    "candidates_for_people",
    "count_han",
    "inspect",
    "letters_of",
    "marks",
    "passage_problem",
    "plain",
    "sentences_of",
    "shown",
    "similarity",
    "tells_story",
]
