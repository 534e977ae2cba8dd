"""The six objects of the scenes, each drawn as filled polygons from a random generator.

An object has its own coordinates: x to the right, y down, about one unit long, with its centre near (0, 0). Only
polygons are used, so that one affine map rotates, mirrors and scales an object, and its box is exact.
"""

from __future__ import annotations

import colorsys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Points = npt.NDArray[np.float64]
Colour = tuple[int, int, int]
Random = np.random.Generator

WHITE: Colour = (250, 250, 245)
GLASS: Colour = (190, 222, 240)
LIT: Colour = (250, 226, 130)
DARK: Colour = (45, 42, 48)


@dataclass(frozen=True, eq=False)
class Patch:
    """One filled polygon. ``points`` are (x, y), ``(n, 2)``."""

    points: Points
    colour: Colour


def hsv(hue: float, saturation: float, value: float) -> Colour:
    """Return a colour given by hue, saturation and value of 0 … 1 as an RGB triple of 0 … 255."""
    red, green, blue = colorsys.hsv_to_rgb(hue % 1.0, saturation, value)
    return int(red * 255), int(green * 255), int(blue * 255)


def darker(colour: Colour, factor: float) -> Colour:
    """Return ``colour`` times ``factor``, clipped at 255. The factor may be above 1."""
    red, green, blue = (min(255, int(c * factor)) for c in colour)
    return red, green, blue


def polygon(colour: Colour, *corners: tuple[float, float]) -> Patch:
    """Return a filled polygon with corners (x, y)."""
    return Patch(np.array(corners, float), colour)


def rectangle(colour: Colour, x0: float, y0: float, x1: float, y1: float) -> Patch:
    """Return a filled rectangle from its upper left to its lower right corner."""
    return polygon(colour, (x0, y0), (x1, y0), (x1, y1), (x0, y1))


def ellipse(colour: Colour, x: float, y: float, rx: float, ry: float, turn: tuple[float, float] = (0, 1)) -> Patch:
    """Return a part of an ellipse, from ``turn[0]`` to ``turn[1]`` of a full turn, clockwise from 3 o'clock."""
    angle = 2 * np.pi * np.linspace(turn[0], turn[1], 40)
    return Patch(np.stack([x + rx * np.cos(angle), y + ry * np.sin(angle)], 1), colour)


def _vivid(random: Random) -> Colour:
    return hsv(random.random(), random.uniform(0.55, 0.95), random.uniform(0.6, 1.0))


def _pale(random: Random) -> Colour:
    return hsv(random.random(), random.uniform(0.05, 0.35), random.uniform(0.8, 1.0))


def _wood(random: Random) -> Colour:
    return hsv(random.uniform(0.04, 0.1), random.uniform(0.4, 0.75), random.uniform(0.3, 0.6))


def _cloth(random: Random) -> Colour:
    return [WHITE, _pale(random), _vivid(random)][int(random.integers(3))]


def house(random: Random) -> list[Patch]:
    """Draw a house, 1 unit high: wall, roof, door and windows, sometimes with a chimney."""
    wall, roof, half = _pale(random), _vivid(random), random.uniform(0.3, 0.46)
    eaves, peak = random.uniform(-0.15, 0.02), random.choice([0.0, random.uniform(0.08, 0.2)])
    patches = (
        [rectangle(darker(roof, 0.6), half * 0.4, -0.48, half * 0.4 + 0.12, eaves)] if random.random() < 0.6 else []
    )
    patches += [
        rectangle(wall, -half, eaves, half, 0.5),
        polygon(roof, (-half - 0.08, eaves), (-peak, -0.5), (peak, -0.5), (half + 0.08, eaves)),
    ]
    side = random.choice([-1.0, 1.0])
    door = side * half * 0.45
    patches.append(rectangle(_wood(random), door - 0.08, 0.2, door + 0.08, 0.5))
    glass = GLASS if random.random() < 0.5 else LIT
    patches += _window(glass, -side * half * 0.45, eaves + 0.2)
    return patches + (_window(glass, side * half * 0.45, eaves + 0.12) if eaves < -0.08 else [])


def _window(glass: Colour, x: float, y: float) -> list[Patch]:
    return [
        rectangle(WHITE, x - 0.1, y - 0.09, x + 0.1, y + 0.09),
        rectangle(glass, x - 0.08, y - 0.07, x - 0.01, y + 0.07),
        rectangle(glass, x + 0.01, y - 0.07, x + 0.08, y + 0.07),
    ]


def tree(random: Random) -> list[Patch]:
    """Draw a conifer, or a crown of discs that may bear fruit."""
    leaf = hsv(
        random.choice([random.uniform(0.2, 0.42), random.uniform(0.02, 0.14)]),
        random.uniform(0.5, 0.9),
        random.uniform(0.4, 0.85),
    )
    thick = random.uniform(0.04, 0.08)
    trunk = rectangle(_wood(random), -thick, 0.1, thick, 0.5)
    return [trunk, *(_conifer(random, leaf) if random.random() < 0.5 else _crown(random, leaf))]


def _conifer(random: Random, leaf: Colour) -> list[Patch]:
    tiers, width = int(random.integers(2, 5)), random.uniform(0.26, 0.4)
    step = 0.8 / (tiers + 1)
    return [
        polygon(
            darker(leaf, 0.8 + 0.12 * i),
            (-width * (1 - 0.2 * i), 0.3 - step * i),
            (0, 0.3 - step * (i + 2)),
            (width * (1 - 0.2 * i), 0.3 - step * i),
        )
        for i in range(tiers)
    ]


def _crown(random: Random, leaf: Colour) -> list[Patch]:
    radius = random.uniform(0.17, 0.22)
    centres = [(-0.19, 0.02), (0.19, 0.02), (0.0, 0.06), (-0.12, -0.2), (0.12, -0.2), (0.0, -0.1)]
    puffs = [
        ellipse(darker(leaf, random.uniform(0.85, 1.1)), x, y, radius, radius * random.uniform(0.9, 1.1))
        for x, y in centres
    ]
    fruit = hsv(random.uniform(-0.04, 0.12), 0.9, 0.95)
    count = int(random.integers(3, 7)) if random.random() < 0.4 else 0
    return puffs + [
        ellipse(fruit, random.uniform(-0.24, 0.24), random.uniform(-0.26, 0.12), 0.035, 0.035) for _ in range(count)
    ]


def car(random: Random) -> list[Patch]:
    """Draw a car from the side, 1 unit long."""
    paint, top = _vivid(random), random.uniform(-0.3, -0.2)
    front, back = random.uniform(0.18, 0.3), random.uniform(-0.44, -0.26)
    nose = random.uniform(0.0, 0.06)
    wheel = random.uniform(0.095, 0.125)
    patches = [
        polygon(darker(paint, 0.9), (back, 0), (back + 0.1, top), (front - 0.14, top), (front + 0.04, 0)),
        polygon(GLASS, (back + 0.06, -0.01), (back + 0.12, top + 0.04), (-0.06, top + 0.04), (-0.06, -0.01)),
        polygon(GLASS, (-0.02, -0.01), (-0.02, top + 0.04), (front - 0.15, top + 0.04), (front - 0.02, -0.01)),
        polygon(
            paint,
            (-0.5, 0.04),
            (-0.46, -0.02),
            (front, -0.02),
            (0.46, nose),
            (0.5, 0.1),
            (0.5, 0.21),
            (-0.5, 0.21),
        ),
        rectangle((255, 240, 150), 0.45, 0.07, 0.5, 0.13),
        rectangle((200, 40, 40), -0.5, 0.07, -0.46, 0.13),
    ]
    if random.random() < 0.4:
        patches.append(rectangle(WHITE if random.random() < 0.5 else DARK, -0.46, 0.11, 0.45, 0.14))
    for x in (-0.28, 0.28):
        patches += [
            ellipse(DARK, x, 0.2, wheel, wheel),
            ellipse((190, 190, 195), x, 0.2, wheel / 2, wheel / 2),
        ]
    return patches


def boat(random: Random) -> list[Patch]:
    """Draw a boat with two sails, sometimes with a flag."""
    hull, cloth = _vivid(random), _cloth(random)
    deck, top = random.uniform(0.18, 0.28), random.uniform(-0.46, -0.36)
    stern = random.uniform(0.26, 0.42)
    patches = [
        rectangle(_wood(random), -0.018, -0.5, 0.018, deck),
        polygon(cloth, (0.035, top), (0.035, deck - 0.05), (random.uniform(0.3, 0.44), deck - 0.05)),
        polygon(
            darker(cloth, 0.85),
            (-0.03, top + 0.08),
            (-0.03, deck - 0.06),
            (random.uniform(-0.38, -0.24), deck - 0.06),
        ),
        polygon(hull, (-0.5, deck), (0.5, deck), (0.34, 0.5), (-stern, 0.5)),
        polygon(WHITE, (-0.47, deck + 0.05), (0.465, deck + 0.05), (0.44, deck + 0.09), (-0.45, deck + 0.09)),
    ]
    if random.random() < 0.5:
        patches.append(polygon(_vivid(random), (0.018, -0.5), (0.018, -0.42), (0.14, -0.46)))
    return patches


def balloon(random: Random) -> list[Patch]:
    """Draw a hot-air balloon. Its stripes are narrower copies of the envelope."""
    colours = _vivid(random), _cloth(random)
    half_width, gores = random.uniform(0.32, 0.4), int(random.integers(2, 5))
    envelope = [_envelope(colours[i % 2], half_width * (1 - i / (gores + 0.3))) for i in range(gores)]
    basket = _wood(random)
    return [
        polygon(DARK, (-0.09, 0.2), (-0.07, 0.2), (-0.045, 0.4), (-0.06, 0.4)),
        polygon(DARK, (0.09, 0.2), (0.07, 0.2), (0.045, 0.4), (0.06, 0.4)),
        *envelope,
        polygon(basket, (-0.075, 0.38), (0.075, 0.38), (0.06, 0.5), (-0.06, 0.5)),
        rectangle(darker(basket, 0.7), -0.08, 0.37, 0.08, 0.4),
    ]


def _envelope(colour: Colour, half: float) -> Patch:
    angle = np.pi * np.linspace(1, 2, 24)
    dome = np.stack([half * np.cos(angle), -0.16 + 0.34 * np.sin(angle)], 1)
    fall = np.linspace(0, 1, 12)[1:]
    skirt = half * (1 - 0.72 * fall**1.6)
    right_edge = np.stack([skirt, -0.16 + 0.42 * fall], 1)
    left_edge = np.stack([-skirt[::-1], -0.16 + 0.42 * fall[::-1]], 1)
    return Patch(np.concatenate([dome, right_edge, left_edge]), colour)


def mushroom(random: Random) -> list[Patch]:
    """Draw a mushroom with stem and cap, mostly with white spots."""
    cap = hsv(
        random.choice([random.uniform(-0.03, 0.1), random.uniform(0.7, 0.9)]),
        random.uniform(0.55, 0.95),
        random.uniform(0.5, 0.95),
    )
    stem, thick, brim = _pale(random), random.uniform(0.1, 0.18), random.uniform(-0.02, 0.1)
    half, height = random.uniform(0.4, 0.5), random.uniform(0.38, 0.5)
    patches = [
        polygon(
            stem,
            (-thick, brim),
            (thick, brim),
            (thick * 1.3, 0.48),
            (thick, 0.5),
            (-thick, 0.5),
            (-thick * 1.3, 0.48),
        ),
        ellipse(darker(cap, 0.6), 0, brim, half, 0.07),
        ellipse(cap, 0, brim, half, height, (0.5, 1.0)),
    ]
    if random.random() < 0.75:
        spots = [
            (-0.5, -0.3, 0.06),
            (0.0, -0.62, 0.075),
            (0.48, -0.35, 0.065),
            (-0.05, -0.22, 0.05),
            (0.75, -0.15, 0.035),
        ]
        patches += [ellipse(WHITE, x * half, brim + y * height, r, r * 0.85) for x, y, r in spots]
    return patches


DRAWERS: dict[str, Callable[[Random], list[Patch]]] = {
    "house": house,
    "tree": tree,
    "car": car,
    "boat": boat,
    "balloon": balloon,
    "mushroom": mushroom,
}
LABELS = tuple(DRAWERS)
