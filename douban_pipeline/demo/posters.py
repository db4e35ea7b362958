"""Posters of the sample's subjects: drawn, a landscape for each id, so that the review sheet shows what it does.

They are put where the service keeps the posters that it has fetched: nothing is asked of Douban.
"""

from __future__ import annotations

import colorsys
import random
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path

from douban_pipeline.cms.values import picture_address
from douban_pipeline.core.files import replaced
from douban_pipeline.core.pictures import kept_picture
from douban_pipeline.demo.sample import SampleSubject
from douban_pipeline.demo.stand_ins.answers import douban_fields

WIDTH, HEIGHT = 108, 154
"""Size of a poster in pixels, as its place on a card."""


def put_posters(home: Path, subjects: Iterable[SampleSubject]) -> None:
    """Draw the posters that are not in ``home`` yet."""
    for subject in subjects:
        path = kept_picture(home, picture_address(douban_fields(subject)["vod_pic"], ""))
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with replaced(path) as new:
                new.write_bytes(drawn_poster(subject["id"]))


def drawn_poster(number: int) -> bytes:
    """Return a poster as PNG, always the same one for a number: a sky, a sun and two mountains."""
    rng = random.Random(number)
    hue = rng.random()
    sun_x, sun_y, radius = rng.randrange(20, WIDTH - 20), rng.randrange(25, 80), rng.randrange(9, 20)
    mountains = [
        (rng.randrange(WIDTH), top, rng.uniform(0.5, 1.1), _colour(hue + 0.5, 0.5, bright))
        for top, bright in ((rng.randrange(60, 95), 0.45), (rng.randrange(95, 120), 0.25))
    ]
    sun = _colour(hue + 0.45, 0.35, 1.0)
    rows = []
    for y in range(HEIGHT):
        row = bytearray(_colour(hue, 0.75 - 0.5 * y / HEIGHT, 0.45 + 0.5 * y / HEIGHT) * WIDTH)
        if abs(y - sun_y) < radius:
            _fill(row, sun_x, (radius**2 - (y - sun_y) ** 2) ** 0.5, sun)
        for middle, top, steepness, colour in mountains:
            if y >= top:
                _fill(row, middle, (y - top) / steepness, colour)
        rows.append(b"\0" + bytes(row))
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(b"".join(rows))), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, body) for kind, body in parts)


def _colour(hue: float, saturation: float, value: float) -> bytes:
    return bytes(round(255 * part) for part in colorsys.hsv_to_rgb(hue % 1, saturation, value))


def _fill(row: bytearray, middle: int, half: float, colour: bytes) -> None:
    """Paint the pixels up to ``half`` from ``middle``."""
    first, last = max(0, round(middle - half)), min(WIDTH, round(middle + half))
    if last > first:
        row[3 * first : 3 * last] = colour * (last - first)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
