"""The fact guard: checks that a text must pass before it is written to the CMS. Deterministic; no I/O, clock or model.

``inspection`` combines the checks: claims, advertising, addresses, markup and emoji (``claims``), numbers
(``number_mentions``), titles (``title_mentions``), people whom our library knows (``known_people``) and others
(``unknown_people``), copies (``copies``). Surnames and words like names are in ``name_words``, words that tell no plot
in ``plot_words``, normalised forms of texts in ``plain_text``. ``passages`` compares a statement with the passages that
the second reading quotes for it: with who is named (``story_people``), who does what to whom (``plot_roles``), and what
is denied (``polarity``). ``controls`` makes the false statements by which a reader is tested.
"""

from douban_pipeline.douban.intros.factguard.controls import controls_of
from douban_pipeline.douban.intros.factguard.copies import similarity
from douban_pipeline.douban.intros.factguard.inspection import LengthLimits, Violation, inspect, marks
from douban_pipeline.douban.intros.factguard.known_people import candidates_for_people
from douban_pipeline.douban.intros.factguard.passages import (
    Claim,
    Story,
    is_plain,
    parts_of,
    statement_problem,
    tells_story,
)
from douban_pipeline.douban.intros.factguard.plain_text import (
    count_han,
    letters_of,
    plain,
    sentences_of,
    shown,
    whole_sentences_of,
)
from douban_pipeline.douban.intros.factguard.polarity import FACT, MODALITIES

__all__ = [
    "FACT",
    "MODALITIES",
    "Claim",
    "LengthLimits",
    "Story",
    "Violation",
    "candidates_for_people",
    "controls_of",
    "count_han",
    "inspect",
    "is_plain",
    "letters_of",
    "marks",
    "parts_of",
    "plain",
    "sentences_of",
    "shown",
    "similarity",
    "statement_problem",
    "tells_story",
    "whole_sentences_of",
]
