"""Backgrounds of the scenes: landscapes, gradients, noise, stripes, checks and blobs, with distractors.

Every background function takes (random, width, height) in pixels and returns an RGB picture of that size.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFilter

from tools.demo.objects import Colour, Random, darker, hsv

Picture = Image.Image
FloatPicture = npt.NDArray[np.float32]


def _muted(random: Random) -> Colour:
    return hsv(random.random(), random.uniform(0.05, 0.5), random.uniform(0.3, 1.0))


def _to_picture(values: FloatPicture) -> Picture:
    return Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))


def gradient(random: Random, width: int, height: int) -> Picture:
    """Draw a gradient between two muted colours, in any direction."""
    angle = random.uniform(0, 2 * np.pi)
    return _ramp(_muted(random), _muted(random), angle, width, height)


def _ramp(first: Colour, second: Colour, angle: float, width: int, height: int) -> Picture:
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    along = np.cos(angle) * (x / width - 0.5) + np.sin(angle) * (y / height - 0.5)
    share = np.clip(along + 0.5, 0, 1)[..., None]
    return _to_picture((1 - share) * np.array(first, np.float32) + share * np.array(second, np.float32))


def noise(random: Random, width: int, height: int) -> Picture:
    """Draw coarse random colours, interpolated: clouds, foliage or marble, depending on the size of the grain."""
    grain = int(random.integers(3, 24))
    base = np.array(_muted(random), np.float32)
    spread = random.uniform(10, 45)
    coarse = base + spread * random.standard_normal((grain, grain, 3)) * random.choice([1.0, 0.3])
    coarse += spread * random.standard_normal((grain, grain, 1))
    return _to_picture(coarse.astype(np.float32)).resize((width, height), Image.Resampling.BICUBIC)


def stripes(random: Random, width: int, height: int) -> Picture:
    """Draw 3 … 14 stripes in any direction, with soft or hard edges."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float32) / max(width, height)
    angle, count = random.uniform(0, np.pi), random.uniform(3, 14)
    wave = np.sin(2 * np.pi * count * (np.cos(angle) * x + np.sin(angle) * y))
    share = np.clip(0.5 + wave * random.choice([0.5, 4.0]), 0, 1)[..., None]
    return _two_colours(random, share)


def checks(random: Random, width: int, height: int) -> Picture:
    """Draw a chequered plane of 4 … 12 squares along the longer side."""
    count = random.uniform(4, 12) / max(width, height)
    y, x = np.mgrid[0:height, 0:width].astype(np.float32) * count
    share = ((np.floor(x) + np.floor(y)) % 2)[..., None]
    return _two_colours(random, share.astype(np.float32))


def _two_colours(random: Random, share: FloatPicture) -> Picture:
    first = _muted(random)
    second = np.array(darker(first, random.uniform(0.6, 1.3)), np.float32)
    return _to_picture((1 - share) * np.array(first, np.float32) + share * second)


def blobs(random: Random, width: int, height: int) -> Picture:
    """Draw blurred discs on a gradient."""
    picture = gradient(random, width, height)
    draw = ImageDraw.Draw(picture)
    for _ in range(int(random.integers(6, 25))):
        x, y, radius = random.uniform(0, width), random.uniform(0, height), random.uniform(0.03, 0.2) * height
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=_muted(random))
    return picture.filter(ImageFilter.GaussianBlur(random.uniform(0.005, 0.03) * height))


def landscape(random: Random, width: int, height: int) -> Picture:
    """Draw sky, sun, clouds and two ranges of hills, with a meadow, sand, snow or water in front."""
    sky = hsv(
        random.choice([0.56, 0.6, 0.08, 0.9]) + random.uniform(-0.03, 0.03),
        random.uniform(0.2, 0.6),
        random.uniform(0.7, 1),
    )
    picture = _ramp(sky, darker(sky, 1.25), np.pi / 2, width, height)
    draw = ImageDraw.Draw(picture)
    for _ in range(int(random.integers(0, 5))):
        _cloud(random, draw, width, height)
    picture = picture.filter(ImageFilter.GaussianBlur(0.006 * height))
    draw = ImageDraw.Draw(picture)
    hue, saturation, value = random.uniform(0.2, 0.4), random.uniform(0.2, 0.6), random.uniform(0.35, 0.75)
    if random.random() < 0.35:
        hue, saturation = random.choice([0.1, 0.57]), random.uniform(0.15, 0.5)
    for i, level in enumerate(random.uniform(0.3, 0.45) + np.array([0.0, 0.13, 0.28])):
        draw.polygon(
            _ridge(random, width, height, level, 0.09 / (i + 1)),
            fill=hsv(hue, saturation, min(1.0, value * (0.8 + 0.15 * i))),
        )
    return picture


def _cloud(random: Random, draw: ImageDraw.ImageDraw, width: int, height: int) -> None:
    x, y, size = (
        random.uniform(0, width),
        random.uniform(0.02, 0.28) * height,
        random.uniform(0.02, 0.06) * height,
    )
    for i in range(4):
        cx, r = x + (i - 1.5) * size * 1.2, size * random.uniform(0.7, 1.2)
        draw.ellipse((cx - 1.3 * r, y - r, cx + 1.3 * r, y + r), fill=(245, 246, 250))


def _ridge(random: Random, width: int, height: int, level: float, swing: float) -> list[tuple[float, float]]:
    x = np.linspace(0, 1, 60)
    phases, waves = random.uniform(0, 2 * np.pi, 3), random.uniform(1, 7, 3)
    y = level + swing * sum(np.sin(waves[i] * 2 * x + phases[i]) / (i + 1) for i in range(3))
    line = [(float(a * width), float(b * height)) for a, b in zip(x, y, strict=True)]
    return [*line, (float(width), float(height)), (0.0, float(height))]


def add_distractors(random: Random, picture: Picture) -> None:
    """Draw small polygons, discs, bars and rings into ``picture``: shapes that belong to no class."""
    draw, short = ImageDraw.Draw(picture), min(picture.size)
    for _ in range(int(random.integers(0, 7))):
        x, y = random.uniform(0, picture.width), random.uniform(0, picture.height)
        radius = random.uniform(0.01, 0.07) * short
        kind, colour = (
            int(random.integers(0, 4)),
            hsv(random.random(), random.uniform(0, 0.8), random.uniform(0.3, 1)),
        )
        if kind == 0:
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)
        elif kind == 1:
            draw.ellipse(
                (x - radius, y - radius, x + radius, y + radius),
                outline=colour,
                width=max(1, int(radius / 4)),
            )
        elif kind == 2:
            draw.regular_polygon((x, y, radius), int(random.integers(3, 7)), random.uniform(0, 360), fill=colour)
        else:
            dx, dy = random.uniform(-3, 3, 2) * radius
            draw.line((x, y, x + dx, y + dy), fill=colour, width=max(1, int(radius / 3)))


KINDS: dict[str, Callable[[Random, int, int], Picture]] = {
    "landscape": landscape,
    "gradient": gradient,
    "noise": noise,
    "stripes": stripes,
    "checks": checks,
    "blobs": blobs,
}
