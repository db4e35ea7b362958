"""What was measured once of the checks of intros, on inventions that neither the rules nor their author had seen.

54 texts with one invention each (exchanged people, reversed outcomes, added motives, a wrong teacher, a forged letter,
other dates, places, tone) and 54 faithful ones, written before the rules of `factguard.passages` and set aside until
these were done. The readers are simulated, and none of them ever says that a sentence has no basis: what is refused,
is refused by code. The tests hold the same texts and readers, so that the shares do not rise.
"""

from __future__ import annotations

INVENTIONS = FAITHFUL = 54
"""Number of texts of each kind."""
THROUGH_GUARD = 34
"""Inventions that the fact guard alone lets through."""
THROUGH_READING = {"one": 1, "random": 0, "nearest": 19, "everything": 17}
"""Inventions that guard and second reading let through, by what the reader quotes for each sentence: one passage for
all, passages at random, the passages most like the sentence, or the whole source."""
REFUSED_BY_GUARD, REFUSED_WITH_READING = 9, 14
"""Faithful texts refused by the guard alone, and by both with a reader that quotes the passages most like the
sentence; each costs a second try."""
