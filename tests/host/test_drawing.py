"""host/vision/drawing.py: boxes and labels are readable, for any text of a label."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import ImageFont

from boards.errors import ShapeError
from host.vision.detection import Detection
from host.vision.drawing import _drawable, _tag_position, caption, class_colour, draw, text_colour
from tests.support.errors import raises

GREY = np.full((300, 400, 3), 120, np.uint8)
VOC = [f"class {i}" for i in range(20)]


def test_draw_box_has_the_colour_of_its_class() -> None:
    drawn = draw(GREY, [Detection("dog", 0.9, (100.0, 100.0, 200.0, 250.0))])
    for y, x in ((250, 150), (200, 100), (200, 200), (100, 190)):
        assert tuple(drawn[y, x]) == class_colour("dog")
    assert (drawn[150:240, 110:190] == 120).all()  # inside nothing is covered
    assert (drawn[:70] == 120).all()
    assert (GREY == 120).all()  # the given picture stays as it is


def test_draw_label_above_the_box_has_the_class_colour_and_contrast() -> None:
    drawn = draw(GREY, [Detection("dog", 0.9, (100.0, 100.0, 200.0, 250.0))])
    tag = drawn[:100, 100:][(drawn[:100, 100:] != 120).any(-1)]
    colours, counts = np.unique(tag, axis=0, return_counts=True)
    assert tuple(colours[np.argmax(counts)]) == class_colour("dog")
    darkest = tuple(colours[np.argmin(colours.sum(axis=1))].tolist())
    assert contrast(darkest, class_colour("dog")) >= 4.5


def test_tag_position_is_within_the_picture() -> None:
    tag = (120, 16)
    for box in ((0, 0, 399, 299), (380, 0, 399, 20), (-50, -50, 500, 500), (0, 290, 10, 299)):
        clipped = Detection("a", 0.5, box).clipped(400, 300).box
        left, top, right, bottom = (round(side) for side in clipped)
        x, y = _tag_position((left, top, right, bottom), (400, 300), tag)
        assert 0 <= x <= 400 - tag[0], box
        assert 0 <= y <= 300 - tag[1], box


def test_tag_position_in_a_flat_picture_is_moved_up() -> None:
    assert _tag_position((0, 8, 10, 12), (400, 20), (40, 16)) == (0, 4)
    assert _tag_position((0, 8, 10, 12), (30, 20), (40, 30)) == (0, 0)  # larger than the picture


def test_draw_more_probable_box_covers_the_less_probable() -> None:
    same = (50.0, 50.0, 200.0, 200.0)
    drawn = draw(GREY, [Detection("dog", 0.9, same), Detection("cat", 0.3, same)])
    assert tuple(drawn[200, 120]) == class_colour("dog")


def test_classes_of_a_network_have_different_colours() -> None:
    eighty = [f"class {i}" for i in range(80)]
    colours = {class_colour(label, eighty) for label in eighty}
    assert len(colours) == 80
    near = [np.abs(np.subtract(class_colour(a, VOC), class_colour(b, VOC))).sum() for a, b in itertools.pairwise(VOC)]
    assert min(near) > 150
    assert class_colour("dog") == class_colour("dog")


def contrast(first: tuple[int, int, int], second: tuple[int, int, int]) -> float:
    def luminance(colour: tuple[int, int, int]) -> float:
        parts = [v / 255 / 12.92 if v <= 10 else ((v / 255 + 0.055) / 1.055) ** 2.4 for v in colour]
        return float(np.dot(parts, [0.2126, 0.7152, 0.0722]))

    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_text_colour_contrasts_with_every_class_colour() -> None:
    for label in VOC:
        background = class_colour(label, VOC)
        assert contrast(background, text_colour(background)) >= 4.5  # WCAG 2.1 level AA


def test_caption_is_one_line() -> None:
    for label, text in (
        ("dog", "dog 50%"),
        ("two\nlines\tand\x00more", "two lines and more 50%"),
        ("", "50%"),
        ("x" * 100, "x" * 39 + "… 50%"),
        ('"quoted" \\ %s {0}', '"quoted" \\ %s {0} 50%'),
    ):
        assert caption(Detection(label, 0.5, (0, 0, 1, 1))) == text


def test_drawable_text_replaces_characters_that_the_font_lacks() -> None:
    assert _drawable("caf\u00e9 \U0001f600 dog", ImageFont.load_default(20)) in (
        "cafe ? dog",
        "caf\u00e9 ? dog",
    )


@settings(max_examples=60)
@given(
    label=st.text(st.characters(), max_size=60),
    probability=st.floats(0, 1),
    box=st.tuples(*[st.floats(-1e7, 1e7)] * 4),
    size=st.tuples(st.integers(1, 90), st.integers(1, 90)),
)
def test_draw_any_label_and_box_succeeds(
    label: str, probability: float, box: tuple[float, float, float, float], size: tuple[int, int]
) -> None:
    picture = np.zeros((*size, 3), np.uint8)
    assert draw(picture, [Detection(label, probability, box)], [label]).shape == picture.shape


def test_draw_label_grows_with_the_picture() -> None:
    small, large = (np.zeros((side, side, 3), np.uint8) for side in (200, 1600))
    inked = [
        (
            draw(p, [Detection("dog", 0.9, (len(p) / 4, len(p) / 4, len(p) * 3 / 4, len(p) * 3 / 4))])[
                : len(p) // 4 - 8
            ]
            > 0
        )
        .any(-1)
        .sum()
        for p in (small, large)
    ]
    assert inked[1] > 4 * inked[0]


def test_draw_picture_of_another_shape_is_refused() -> None:
    with raises(ShapeError, what="the picture", got="float64 [4, 4, 3]"):
        draw(np.zeros((4, 4, 3)), [])  # type: ignore[arg-type]  # the check that is tested
