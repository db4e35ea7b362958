"""Perceptual hashes of posters, by which altered copies are recognised.

A hash is the sign pattern of the lowest frequencies of a small grey picture (a discrete cosine transform), so that
size, compression, brightness and a watermark change few of its bits. Cropped margins change most bits. So a picture is
hashed whole and with its margins cropped, and the whole of one picture is compared with all hashes of the other.
Needs Pillow, the extra ``posters``.
"""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from PIL import Image

FORMATS = ("JPEG", "PNG", "WEBP", "GIF")
MOST_PIXELS = 25_000_000
"""Larger pictures are refused before they are decoded: a small file may hold a picture that fills the memory."""

LEAST_SIDE = 60
"""Least width and height in pixels; anything smaller is an icon."""

LEAST_CONTRAST = 8.0
"""Least standard deviation, of 255 grey levels: pictures with less contrast cannot be distinguished."""

MOST_DIFFERENT = 20
"""Most bits of 143 in which two copies of one poster may differ. Different posters in a synthetic test differed in 40
bits or more, those of one series in 26 or more. A false match is worse than a missed copy."""

_SIDE, _KEPT = 32, 12
_MARGINS = (
    (0.0, 0.0, 0.0, 0.0),
    (0.025, 0.025, 0.025, 0.025),
    (0.05, 0.05, 0.05, 0.05),
    (0.05, 0.0, 0.0, 0.0),
    (0.0, 0.05, 0.0, 0.0),
    (0.0, 0.0, 0.05, 0.0),
    (0.0, 0.0, 0.0, 0.05),
)
"""Shares of the sides that are cropped for each hash: left, top, right, bottom."""

_DIGITS = -(-(_KEPT * _KEPT - 1) // 4)


@dataclass(frozen=True, slots=True)
class Print:
    """The hashes of one picture, the whole picture's first."""

    hashes: tuple[int, ...]

    @classmethod
    def of_text(cls, text: str) -> Self:
        """Return the hashes that `text` wrote."""
        return cls(tuple(int(text[at : at + _DIGITS], 16) for at in range(0, len(text), _DIGITS)))

    @property
    def text(self) -> str:
        """The hashes as hexadecimal digits, as they are stored in a column."""
        return "".join(f"{each:0{_DIGITS}x}" for each in self.hashes)

    @property
    def first_text(self) -> str:
        """The hash of the whole picture only, by which owners of the same picture are counted."""
        return self.text[:_DIGITS]

    def distance(self, other: Print) -> int:
        """Return the least number of differing bits, comparing the whole of one picture with all of the other."""
        pairs = [(self.hashes[0], each) for each in other.hashes] + [(other.hashes[0], each) for each in self.hashes]
        return min((a ^ b).bit_count() for a, b in pairs)

    def is_copy(self, other: Print) -> bool:
        """Return whether two pictures are copies of one poster."""
        return self.distance(other) <= MOST_DIFFERENT


def print_of(body: bytes) -> Print | None:
    """Return the hashes of a picture; None if it is no picture, too large, too small, or has too little contrast."""
    try:
        grey = _grey(body)
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError, Image.DecompressionBombWarning):
        # What Pillow raises for files that are truncated, corrupt or not pictures.
        return None
    if grey is None or float(np.asarray(grey.resize((_SIDE, _SIDE)), dtype=float).std()) < LEAST_CONTRAST:
        return None
    return Print(tuple(_hash(grey, margins) for margins in _MARGINS))


def _grey(body: bytes) -> Image.Image | None:
    with warnings.catch_warnings():
        # The size is checked below.
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        picture = Image.open(io.BytesIO(body), formats=FORMATS)
    with picture:
        width, height = picture.size
        if width * height > MOST_PIXELS or min(width, height) < LEAST_SIDE:
            return None
        picture.draft("L", (8 * _SIDE, 8 * _SIDE))  # a JPEG is decoded no larger than needed
        return picture.convert("L")


def _hash(grey: Image.Image, margins: tuple[float, float, float, float]) -> int:
    left, top, right, bottom = margins
    width, height = grey.size
    box = (width * left, height * top, width * (1 - right), height * (1 - bottom))
    small = np.asarray(grey.resize((_SIDE, _SIDE), Image.Resampling.LANCZOS, box=box), dtype=float)
    low = (_cosines() @ small @ _cosines().T)[:_KEPT, :_KEPT].ravel()[1:]
    bits = low > np.median(low)
    return int("".join("1" if bit else "0" for bit in bits), 2)


@cache
def _cosines() -> npt.NDArray[Any]:
    wave, place = np.arange(_SIDE)[:, None], np.arange(_SIDE)[None, :]
    return np.cos(np.pi * (2 * place + 1) * wave / (2 * _SIDE))
