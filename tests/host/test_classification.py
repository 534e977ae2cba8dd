"""A classifier's last layer becomes its most probable classes, told and drawn."""

from __future__ import annotations

import numpy as np
import pytest

from host.vision.detection import Score, classify
from host.vision.drawing import draw


def test_the_most_probable_classes_come_first() -> None:
    values = np.array([0.0, 2.0, 1.0, -3.0], np.float32).reshape(4, 1, 1)
    scores = classify(values, ("a", "b"), top=3)
    assert [(score.label, score.index) for score in scores] == [("b", 1), ("class 2", 2), ("a", 0)]
    powers = np.exp([2.0, 1.0, 0.0]) / np.exp([0.0, 2.0, 1.0, -3.0]).sum()
    assert [score.probability for score in scores] == pytest.approx(list(powers), rel=1e-6)


def test_large_values_do_not_overflow_and_equal_ones_keep_their_order() -> None:
    scores = classify(np.array([3e38, 3e38, -3e38], np.float32), ())
    assert [(score.index, score.probability) for score in scores] == [(0, 0.5), (1, 0.5), (2, 0.0)]


def test_classes_are_drawn_one_below_the_other() -> None:
    picture = np.full((120, 200, 3), 90, np.uint8)
    scores = (Score("cat", 0.75, 0), Score("dog", 0.2, 1))
    one, both = (
        np.argwhere((draw(picture, (), ("cat", "dog"), some) != 90).any(axis=2)) for some in (scores[:1], scores)
    )
    assert one.min(axis=0).tolist() == both.min(axis=0).tolist() == [0, 0]
    assert both.max(axis=0)[0] > 1.5 * one.max(axis=0)[0]
    assert both.max(axis=0)[0] < 60
    np.testing.assert_array_equal(draw(picture, (), (), ()), picture)
