"""The scenes come from their seed alone, and their boxes are where the objects are."""

from __future__ import annotations

import numpy as np
import pytest

from tools.demo import backgrounds, scenes
from tools.demo.objects import DRAWERS, LABELS
from tools.demo.scenes import LARGEST, MAX_COVERED, MAX_OBJECTS, Scene, draw_scene, letterboxed, lone


def same(one: Scene, other: Scene) -> bool:
    return np.array_equal(one.picture, other.picture) and np.array_equal(one.truths, other.truths)


def test_scene_depends_on_its_seed_alone() -> None:
    assert same(draw_scene(3, 96, 64), draw_scene(3, 96, 64))
    assert same(letterboxed(3, 96), letterboxed(3, 96))
    assert not same(draw_scene(3, 96, 64), draw_scene(4, 96, 64))
    assert same(lone(3, 96, 48), lone(3, 96, 48))
    assert not same(lone(3, 96, 48), lone(4, 96, 48))


def test_lone_object_is_inside_the_picture_and_small() -> None:
    for seed in range(40):
        scene = lone(seed, 160, 80)
        ((label, x0, y0, x1, y1),) = scene.truths.tolist()
        assert scene.picture.shape == (80, 160, 3)
        assert label == 0
        assert -0.01 <= x0 < x1 <= 160.01
        assert -0.01 <= y0 < y1 <= 80.01
        assert max(x1 - x0, y1 - y0) <= 1.3 * LARGEST * 80  # stretched and turned a little


@pytest.mark.parametrize("background", list(backgrounds.KINDS))
def test_draw_scene_background_fills_the_picture(background: str) -> None:
    scene = draw_scene(7, 90, 61, background)
    assert scene.picture.shape == (61, 90, 3)
    assert scene.picture.dtype == np.uint8
    assert scene.picture.std() > 1


def test_draw_scene_truths_are_inside_the_picture_with_known_classes() -> None:
    for seed in range(40):
        truths = draw_scene(seed, 120, 90).truths
        assert 1 <= len(truths) <= MAX_OBJECTS
        assert set(truths[:, 0]) <= set(range(len(LABELS)))
        assert (truths[:, 1:3] >= -0.01).all()
        assert (truths[:, 3:] <= np.array([120, 90]) + 0.01).all()
        assert (truths[:, 3:] - truths[:, 1:3] > 5).all()


def test_draw_scene_objects_cover_each_other_at_most_to_the_limit() -> None:
    for seed in range(40):
        boxes = draw_scene(seed, 160, 120).truths[:, 1:]
        covered = [scenes._covered(tuple(a), tuple(b)) for i, a in enumerate(boxes) for b in boxes[i + 1 :]]
        assert all(c <= MAX_COVERED + 1e-4 for c in covered)


@pytest.mark.parametrize("name", list(DRAWERS))
def test_scene_box_is_the_extent_of_the_painted_object(name: str) -> None:
    from PIL import Image

    for seed in range(5):
        picture = Image.new("RGB", (300, 200), (1, 2, 3))
        random = np.random.default_rng(seed)
        placed = scenes._moved(random, DRAWERS[name](random), 100.0, picture.size)
        _, mask = scenes._layer(placed, (0, 0), picture.size, 0)
        assert mask.getbbox() == pytest.approx(scenes._box(placed), abs=2)


def test_letterboxed_scene_has_its_boxes_between_the_bars() -> None:
    seen = 0
    for seed in range(30):
        scene = letterboxed(seed, 96)
        bar = (scene.picture == scenes.GREY).all(axis=(1, 2))
        assert scene.picture.shape == (96, 96, 3)
        if bar[0]:
            seen += 1
            first, last = np.flatnonzero(~bar)[[0, -1]]
            assert (scene.truths[:, 2] >= first - 0.01).all()
            assert (scene.truths[:, 4] <= last + 1.01).all()
    assert seen > 3
