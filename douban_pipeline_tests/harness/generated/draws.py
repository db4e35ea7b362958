"""Chance that is none: numbers that follow from what they are drawn for, the same on every machine."""

from __future__ import annotations

import struct
from collections.abc import Callable
from hashlib import blake2b
from itertools import accumulate

Draw = Callable[[], int]
"""Gives the next number of a sequence, 0 to 65,535: ``draw() * n >> 16`` is one of ``n`` things."""

SPAN = 1 << 16
"""How many numbers a draw can give."""

_PER_BLOCK = 32
_numbers = tuple(struct.Struct(f"<{_PER_BLOCK * blocks}H").unpack for blocks in range(1, 4))
_MASK = (1 << 64) - 1


def draws(purpose: bytes, seed: int, number: int, blocks: int = 1) -> Draw:
    """Return the sequence for one thing: 32 numbers for each of up to three ``blocks``, then `StopIteration`.

    Several times quicker than seeding a `random.Random` and drawing as often.
    """
    key = b"%s:%d:%d" % (purpose, seed, number)
    data = blake2b(key).digest()
    if blocks > 1:
        data += blake2b(key, salt=b"1").digest()
    if blocks > 2:
        data += blake2b(key, salt=b"2").digest()
    return iter(_numbers[blocks - 1](data)).__next__


def single(purpose: int, seed: int, number: int) -> int:
    """Return one number alone, as a draw gives, at a fraction of the cost."""
    mixed = (number * 0x9E3779B97F4A7C15 + seed * 0xD1342543DE82EF95 + purpose * 0xDA942042E4DD58B5) & _MASK
    mixed = ((mixed ^ (mixed >> 32)) * 0xBF58476D1CE4E5B9) & _MASK
    return ((mixed ^ (mixed >> 29)) * 0x94D049BB133111EB & _MASK) >> 48


def shares(*weights: tuple[str, float]) -> tuple[str, ...]:
    """Return 1,000 slots filled with the things in proportion to their weights, for `picked`."""
    total = sum(weight for _, weight in weights)
    ends = [round(1000 * end / total) for end in accumulate(weight for _, weight in weights)]
    slots: list[str] = []
    for (thing, _), end in zip(weights, ends, strict=True):
        slots += [thing] * (end - len(slots))
    return tuple(slots)


def picked(slots: tuple[str, ...], draw: Draw) -> str:
    """Return one of `shares`."""
    return slots[draw() * 1000 >> 16]
