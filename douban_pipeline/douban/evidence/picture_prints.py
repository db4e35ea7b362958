"""What is kept of a poster: perceptual hashes by which a copy of it is told, whatever a site did to it.

A hash is the sign pattern of the lowest frequencies of a small grey picture (a discrete cosine transform), so that
size, compression, brightness and a watermark change few of its bits. Margins that were cut off move everything; so the
picture is hashed whole and with its margins off, and two pictures are compared the whole of one with all of the other.
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
"""Larger pictures are refused before they are unpacked: a small file may hold one that fills the memory."""

LEAST_SIDE = 60
"""Pixels; anything smaller is an icon."""

LEAST_CONTRAST = 8.0
"""Standard deviation, of 255 grey levels, below which there is nothing to be told apart by."""

MOST_DIFFERENT = 20
"""Bits of 143 in which two copies of one poster may differ. Of drawn ones different posters differed in 40 and more,
those of one series in 26 and more; taking one for the other is worse than not telling a copy."""

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
"""Shares of the sides that are cut off for each hash: left, top, right, bottom."""

_DIGITS = -(-(_KEPT * _KEPT - 1) // 4)


@dataclass(frozen=True, slots=True)
class Print:
    """The hashes of one picture, the whole picture's first."""

    hashes: tuple[int, ...]

    @classmethod
    def of_text(cls, text: str) -> Self:
        """Return what `text` wrote."""
        return cls(tuple(int(text[at : at + _DIGITS], 16) for at in range(0, len(text), _DIGITS)))

    @property
    def text(self) -> str:
        """The hashes as hexadecimal digits, which a column keeps."""
        return "".join(f"{each:0{_DIGITS}x}" for each in self.hashes)

    @property
    def first_text(self) -> str:
        """The whole picture's hash alone, by which others of the same picture are counted."""
        return self.text[:_DIGITS]

    def distance(self, other: Print) -> int:
        """Return in how many bits two pictures differ at least, the whole of one against all of the other."""
        pairs = [(self.hashes[0], each) for each in other.hashes] + [(other.hashes[0], each) for each in self.hashes]
        return min((a ^ b).bit_count() for a, b in pairs)

    def is_copy(self, other: Print) -> bool:
        """Say whether two pictures are one poster."""
        return self.distance(other) <= MOST_DIFFERENT


def print_of(body: bytes) -> Print | None:
    """Return the hashes of a picture; None for what is no picture, too large, too small, or of one colour."""
    try:
        grey = _grey(body)
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError, Image.DecompressionBombWarning):
        # What Pillow raises for files that are cut, broken or no pictures.
        return None
    if grey is None or float(np.asarray(grey.resize((_SIDE, _SIDE)), dtype=float).std()) < LEAST_CONTRAST:
        return None
    return Print(tuple(_hash(grey, margins) for margins in _MARGINS))


def _grey(body: bytes) -> Image.Image | None:
    with warnings.catch_warnings():
        # Told apart by its size below.
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        picture = Image.open(io.BytesIO(body), formats=FORMATS)
    with picture:
        width, height = picture.size
        if width * height > MOST_PIXELS or min(width, height) < LEAST_SIDE:
            return None
        picture.draft("L", (8 * _SIDE, 8 * _SIDE))  # JPEG is unpacked no larger than needed
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
