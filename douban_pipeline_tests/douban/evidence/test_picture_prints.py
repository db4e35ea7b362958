"""Copies of a poster are told whatever was done to them; other posters, also of one series, are not taken for it."""

from __future__ import annotations

import struct
import zlib
from itertools import combinations

import pytest
from PIL import Image

from douban_pipeline.douban.evidence.picture_prints import MOST_PIXELS, Print, print_of
from douban_pipeline_tests.douban.evidence.made_posters import CHANGES, jpeg, poster

POSTERS = 30
LEAST_TOLD = {"watermarked": 0.85, "brightened": 0.9, "cropped unevenly": 0.9}
"""Shares of the copies that are told, at least; all of those that are not named. What is not told is unknown, no
conflict."""


def made(body: bytes) -> Print:
    found = print_of(body)
    assert found is not None
    return found


@pytest.mark.parametrize("change", CHANGES)
def test_copies_are_told(change: str) -> None:
    pictures = [poster(number) for number in range(POSTERS)]
    told = sum(made(jpeg(each)).is_copy(made(CHANGES[change](each))) for each in pictures)
    assert told / POSTERS >= LEAST_TOLD.get(change, 1.0)


def test_no_two_posters_are_one_however_they_were_changed() -> None:
    pictures = [poster(number) for number in range(POSTERS)]
    prints = [made(jpeg(each)) for each in pictures]
    changed = [made(CHANGES["cropped all round"](each)) for each in pictures]
    assert not [pair for pair in combinations(prints, 2) if pair[0].is_copy(pair[1])]
    assert not [
        (a, b) for a, one in enumerate(prints) for b, other in enumerate(changed) if a != b and one.is_copy(other)
    ]


def test_posters_of_one_series_differ() -> None:
    for series in range(8):
        prints = [made(jpeg(poster(100 * series + number, series))) for number in range(5)]
        assert not [pair for pair in combinations(prints, 2) if pair[0].is_copy(pair[1])]


def png_header(width: int, height: int) -> bytes:
    """Return a small file that says it is a large picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>not found</html>",
        jpeg(poster(1))[:2000],
        png_header(60_000, 60_000),
        png_header(10_000, 10_000),
        png_header(MOST_PIXELS // 1000 + 1, 1000),
        png_header(400, 600),
        jpeg(Image.new("RGB", (300, 400), (120, 120, 120))),
        jpeg(poster(1).resize((40, 58))),
    ],
    ids=["nothing", "page", "cut", "bomb", "warned of", "too large", "empty", "one colour", "icon"],
)
def test_what_is_no_poster_has_no_hashes(body: bytes) -> None:
    assert print_of(body) is None
