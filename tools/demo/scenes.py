"""Training scenes drawn from a seed, with their true boxes.

A scene has one to five objects on a background, or one small object among clutter. The same (seed, width, height,
background) gives the same picture with the same version of Pillow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFilter

from tools.demo import backgrounds
from tools.demo.objects import DRAWERS, LABELS, Patch, Points, Random, darker

MAX_OBJECTS = 5
SUPERSAMPLE = 2  # factor by which a picture is drawn larger and then averaged, for smooth edges
SMALLEST, LARGEST = 0.22, 0.5  # an object's length as a fraction of the picture's shorter side
SMALL = 0.16, 0.45  # the same for the single object of ``lone``
LONE = "object"  # class name of that object
CLUTTER = 3  # how many times distractors are added around it; other scenes add them once
MAX_COVERED = 0.15  # largest fraction of an object's box that another object's box may cover
GREY = 128  # letterbox bars, as in darknet

Pixels = npt.NDArray[np.uint8]
Truths = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Scene:
    """A picture, RGB uint8 ``(height, width, 3)``, and its truths, float32 ``(n, 5)``:

    class, x0, y0, x1, y1 in pixels.
    """

    picture: Pixels
    truths: Truths


def draw_scene(seed: int, width: int, height: int, background: str | None = None) -> Scene:
    """Draw a scene of width × height pixels. ``background`` is a key of backgrounds.KINDS, or None for a random one."""
    random = np.random.default_rng(seed)
    picture = _ground(random, width, height, background)
    backgrounds.add_distractors(random, picture)
    boxes: list[tuple[float, ...]] = []
    for _ in range(int(random.integers(1, MAX_OBJECTS + 1))):
        label = int(random.integers(len(LABELS)))
        box = _place(random, picture, LABELS[label], [b[1:] for b in boxes])
        boxes += [(float(label), *box)] if box else []
    return _scene(random, picture, boxes)


def lone(seed: int, width: int, height: int) -> Scene:
    """Draw one small object of any kind among clutter. Its class is 0. This imitates the task of DAC-SDC."""
    random = np.random.default_rng([seed, 2])
    picture = _ground(random, width, height, None)
    for _ in range(CLUTTER):
        backgrounds.add_distractors(random, picture)
    box = _place(random, picture, str(random.choice(LABELS)), [], SMALL)
    assert box is not None  # no other object can be in its way
    return _scene(random, picture, [(0.0, *box)])


def _ground(random: Random, width: int, height: int, background: str | None) -> Image.Image:
    kind = background or str(random.choice(list(backgrounds.KINDS), p=[0.4, 0.1, 0.2, 0.1, 0.1, 0.1]))
    return backgrounds.KINDS[kind](random, width * SUPERSAMPLE, height * SUPERSAMPLE)


def _scene(random: Random, picture: Image.Image, boxes: list[tuple[float, ...]]) -> Scene:
    truths = np.array(boxes, np.float32).reshape(-1, 5)
    truths[:, 1:] /= SUPERSAMPLE
    return Scene(_finish(random, picture), truths)


def letterboxed(seed: int, size: int) -> Scene:
    """Draw a scene of size × size pixels. About half are wide or tall pictures with grey bars, as from a camera."""
    width, height = [(size, size), (size, size * 3 // 4), (size * 3 // 4, size), (size, size * 9 // 16)][
        int(np.random.default_rng([seed, 1]).choice(4, p=[0.45, 0.35, 0.1, 0.1]))
    ]
    scene = draw_scene(seed, width, height)
    x, y = (size - width) // 2, (size - height) // 2
    picture = np.full((size, size, 3), GREY, np.uint8)
    picture[y : y + height, x : x + width] = scene.picture
    return Scene(picture, scene.truths + np.array([0, x, y, x, y], np.float32))


def _finish(random: Random, picture: Image.Image) -> Pixels:
    """Return the picture averaged down to its final size, with a camera's grain added."""
    size = picture.width // SUPERSAMPLE, picture.height // SUPERSAMPLE
    pixels = np.asarray(picture.resize(size, Image.Resampling.BOX), np.float32)
    grain = random.uniform(0, 5) * random.standard_normal(pixels.shape, np.float32)
    return np.clip(pixels + grain, 0, 255).astype(np.uint8)


def _place(
    random: Random,
    picture: Image.Image,
    name: str,
    boxes: list[tuple[float, ...]],
    lengths: tuple[float, float] = (SMALLEST, LARGEST),
) -> tuple[float, ...] | None:
    """Draw one object so that it covers little of the others. Return its box, or None if 20 attempts fail.

    Args:
        random: The random generator.
        picture: The picture, drawn into.
        name: The kind of object.
        boxes: Boxes of the objects drawn so far.
        lengths: Least and greatest length, as fractions of the picture's shorter side.
    """
    patches = DRAWERS[name](random)
    outline = bool(random.random() < 0.5)
    for _ in range(20):
        length = random.uniform(*lengths) * min(picture.size)
        placed = _moved(random, patches, length, picture.size)
        box = _box(placed)
        if all(_covered(box, drawn) <= MAX_COVERED for drawn in boxes):
            _paint(random, picture, placed, outline)
            return box
    return None


def _moved(random: Random, patches: list[Patch], length: float, size: tuple[int, int]) -> list[Patch]:
    """Return the object scaled, and mirrored, stretched and rotated at random, at a random place inside the picture."""
    angle = np.radians(random.normal(0, 7))
    cos, sin = np.cos(angle), np.sin(angle)
    stretch = np.array([random.choice([-1, 1]) * random.uniform(0.85, 1.15), 1.0])
    turn = np.array([[cos, sin], [-sin, cos]])
    turned = [Patch((p.points * stretch) @ turn * length, p.colour) for p in patches]
    x0, y0, x1, y1 = _box(turned)
    room = np.maximum(np.array(size) - (x1 - x0, y1 - y0), 0)
    shift = random.random(2) * room - (x0, y0)
    return [Patch(p.points + shift, p.colour) for p in turned]


def _box(patches: list[Patch]) -> tuple[float, float, float, float]:
    points: Points = np.concatenate([p.points for p in patches])
    (x0, y0), (x1, y1) = points.min(0), points.max(0)
    return float(x0), float(y0), float(x1), float(y1)


def _covered(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    """Return the common area of two boxes as a fraction of the smaller one."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return max(width, 0) * max(height, 0) / min(areas)


def _paint(random: Random, picture: Image.Image, patches: list[Patch], outline: bool) -> None:
    """Draw the object into the picture, with light from one side and a soft shadow."""
    x0, y0, x1, y1 = _box(patches)
    margin = 0.15 * max(x1 - x0, y1 - y0)
    corner = (int(x0 - margin), int(y0 - margin))
    size = (int(x1 + margin) - corner[0], int(y1 + margin) - corner[1])
    line = max(1, round(0.005 * min(picture.size) * random.uniform(0.7, 1.4))) if outline else 0
    layer, mask = _layer(patches, corner, size, line)
    ground = picture.crop((*corner, corner[0] + size[0], corner[1] + size[1]))
    ground = _shadowed(random, ground, mask, margin)
    ground.paste(_lit(random, layer), (0, 0), mask)
    picture.paste(ground, corner)


def _layer(
    patches: list[Patch], corner: tuple[int, int], size: tuple[int, int], line: int
) -> tuple[Image.Image, Image.Image]:
    """Return the object alone, and a mask with 255 at its pixels and 0 elsewhere."""
    layer, mask = Image.new("RGB", size), Image.new("L", size)
    draw, draw_mask = ImageDraw.Draw(layer), ImageDraw.Draw(mask)
    for patch in patches:
        corners = [(float(x), float(y)) for x, y in patch.points - corner]
        draw.polygon(corners, fill=patch.colour)
        draw_mask.polygon(corners, fill=255)
        if line:
            draw.line([*corners, corners[0]], fill=darker(patch.colour, 0.45), width=line)
    return layer, mask


def _shadowed(random: Random, ground: Image.Image, mask: Image.Image, margin: float) -> Image.Image:
    """Return ``ground`` with the soft shadow of an object with this mask."""
    shift = (int(margin * random.uniform(-0.3, 0.3)), int(margin * random.uniform(0.1, 0.35)))
    shadow = Image.new("L", mask.size)
    shadow.paste(mask, shift)
    shadow = shadow.filter(ImageFilter.GaussianBlur(margin * 0.2))
    strength = random.uniform(0, 0.45)
    dark = Image.new("RGB", ground.size)
    return Image.composite(dark, ground, shadow.point([int(v * strength) for v in range(256)]))


def _lit(random: Random, layer: Image.Image) -> Image.Image:
    """Return the layer with a brightness that increases towards one side by up to 20 %."""
    y, x = np.mgrid[0 : layer.height, 0 : layer.width].astype(np.float32)
    slope = random.uniform(-0.2, 0.2, 2)
    light = random.uniform(0.9, 1.05) + slope[0] * (x / layer.width - 0.5) + slope[1] * (y / layer.height - 0.5)
    return Image.fromarray(np.clip(np.asarray(layer) * light[..., None], 0, 255).astype(np.uint8))
