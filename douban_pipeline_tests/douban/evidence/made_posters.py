"""Posters drawn for tests: each its own, or several of one series, and what sites do to them."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Mapping

from PIL import Image, ImageDraw, ImageEnhance, ImageFilter

WIDTH, HEIGHT = 300, 440


def poster(number: int, series: int | None = None) -> Image.Image:
    """Draw a poster; those of one ``series`` share colours, layout and part of what is on them."""
    own, common = random.Random(f"poster {number}"), random.Random(f"series {number if series is None else series}")
    picture = Image.linear_gradient("L").resize((WIDTH, HEIGHT)).convert("RGB")
    picture = Image.blend(picture, Image.new("RGB", picture.size, _colour(common)), 0.6)
    draw = ImageDraw.Draw(picture)
    draw.rectangle((0, int(HEIGHT * 0.82), WIDTH, HEIGHT), fill=_colour(common))
    for dice, count in ((common, 4), (own, 5)):
        for _ in range(count):
            x, y, size = dice.randrange(-30, WIDTH), dice.randrange(-30, HEIGHT), dice.randrange(35, 145)
            box = (x, y, x + size, y + int(size * dice.uniform(0.6, 1.6)))
            (draw.ellipse if dice.random() < 0.6 else draw.rectangle)(box, fill=_colour(dice))
    for place in range(own.randrange(4, 9)):
        left = 30 + 28 * place
        draw.rectangle((left, 380, left + own.randrange(8, 25), 402), fill=(240, 240, 240))
    return picture.filter(ImageFilter.GaussianBlur(0.7))


def jpeg(picture: Image.Image, quality: int = 90) -> bytes:
    """Return a picture as a file."""
    return _file(picture, "JPEG", quality=quality)


def _colour(dice: random.Random) -> tuple[int, int, int]:
    return dice.randrange(256), dice.randrange(256), dice.randrange(256)


def _file(picture: Image.Image, kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def _cropped(picture: Image.Image, left: float, top: float, right: float, bottom: float) -> Image.Image:
    width, height = picture.size
    return picture.crop((int(width * left), int(height * top), int(width * (1 - right)), int(height * (1 - bottom))))


def _watermarked(picture: Image.Image) -> Image.Image:
    marked = picture.copy()
    draw = ImageDraw.Draw(marked, "RGBA")
    draw.rectangle((WIDTH * 0.62, HEIGHT * 0.03, WIDTH * 0.97, HEIGHT * 0.08), fill=(255, 255, 255, 190))
    draw.text((WIDTH * 0.65, HEIGHT * 0.04), "example.tv", fill=(200, 0, 0))
    return marked


CHANGES: Mapping[str, Callable[[Image.Image], bytes]] = {
    "resized": lambda picture: jpeg(picture.resize((100, 147))),
    "stretched": lambda picture: jpeg(picture.resize((200, 280))),
    "recompressed": lambda picture: jpeg(picture, 35),
    "as PNG": lambda picture: _file(picture, "PNG"),
    "as WebP": lambda picture: _file(picture, "WEBP", quality=60),
    "cropped all round": lambda picture: jpeg(_cropped(picture, 0.05, 0.05, 0.05, 0.05)),
    "cropped unevenly": lambda picture: jpeg(_cropped(picture, 0.01, 0.03, 0.02, 0.04)),
    "cropped below": lambda picture: jpeg(_cropped(picture, 0.0, 0.0, 0.0, 0.05)),
    "watermarked": lambda picture: jpeg(_watermarked(picture)),
    "brightened": lambda picture: jpeg(ImageEnhance.Brightness(picture).enhance(1.3)),
    "darkened": lambda picture: jpeg(ImageEnhance.Brightness(picture).enhance(0.75)),
}
"""What sites do to posters, by name; each returns a file."""
