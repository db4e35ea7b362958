"""Detects whether a text copies its source, or the introduction of another video with the names changed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from douban_pipeline.douban.intros.factguard.plain_text import han_only, plain

LONGEST_RUN = 25
"""Number of consecutive Chinese characters that count as a copy: two clauses. Names, ranks and set phrases are much
shorter."""

SHORTEST_RUN = 12
"""A synopsis of at most two clauses counts as copied if all of it is, and if it has at least this many characters."""

PIECE = 6
"""Characters per piece (n-gram): shorter ones are words that all texts share, longer ones miss copies with a changed
word."""

COPIED_SHARE = 0.5
"""Share of a text's pieces in the source from which it counts as a copy; a paraphrase keeps about a tenth, mostly in
names."""

NEAR_COPY = 0.5
"""Share of common pieces from which two introductions count as near copies. Measured on 212 films: a text with changed
names shares 0.64 or more, different texts of the same author at most 0.15."""

MARK_PIECE = 8
MARKS = 12
"""Marks per text: two texts with half of their pieces in common share one with a probability of 1 - (2/3)^12."""

_TITLES = re.compile("《[^《》]*》")


def bare(text: str, names: Iterable[str]) -> str:
    """Return the Chinese characters of ``text`` without titles in brackets and without ``names``."""
    text = _TITLES.sub("", plain(text))
    for name in sorted({plain(name) for name in names}, key=len, reverse=True):
        if len(name) > 1:
            text = text.replace(name, "")
    return han_only(text)


def pieces(text: str, length: int = PIECE) -> set[str]:
    """Return all substrings of ``length`` characters."""
    return {text[at : at + length] for at in range(len(text) - length + 1)}


def longest_copied_run(text: str, source: str) -> str:
    """Return the longest substring of ``text`` that is also in ``source``, "" if it is too short for a copy.

    Both texts as `bare` returns them. Too short means shorter than `LONGEST_RUN`, or than a shorter source in all.
    """
    least = min(LONGEST_RUN, max(SHORTEST_RUN, len(source)))
    held = pieces(source, least)
    best = ""
    for at in range(len(text) - least + 1):
        if text[at : at + least] not in held:
            continue
        end = at + max(least, len(best))
        while end <= len(text) and text[at:end] in source:
            best = text[at:end]
            end += 1
    return best


def copied_share(text: str, source: str) -> float:
    """Return the share, 0 to 1, of the pieces of ``text`` that are in ``source``; both as `bare` returns them."""
    said = pieces(text)
    return len(said & pieces(source)) / len(said) if said else 0.0


def similarity(text_a: str, text_b: str, names: Iterable[str] = ()) -> float:
    """Return the similarity of two introductions, 0 to 1: the share of the shorter one's pieces in the other.

    Args:
        text_a: One introduction.
        text_b: The other.
        names: Names and titles of their fact sheets, which are removed from both before.
    """
    names = tuple(names)
    a, b = pieces(bare(text_a, names)), pieces(bare(text_b, names))
    return len(a & b) / min(len(a), len(b)) if a and b else 0.0


def text_marks(text: str) -> tuple[int, ...]:
    """Return the smallest hashes of the pieces of ``text``, ascending: at most `MARKS`, each below 2**63."""
    hashes = {
        int.from_bytes(hashlib.blake2b(piece.encode(), digest_size=8).digest()) >> 1
        for piece in pieces(text, MARK_PIECE)
    }
    return tuple(sorted(hashes)[:MARKS])
