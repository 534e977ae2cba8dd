"""The last layer of a classifier becomes its most probable classes, in reports and drawings."""

from __future__ import annotations

import numpy as np
import pytest

from boards.errors import InvalidValueError, RangeError, ShapeError
from host.vision.detection import Score, classify
from host.vision.drawing import caption, draw
from host.vision.heads.head import Head
from host.vision.heads.labels import chosen, chosen_of_pixels
from host.vision.placement import Placement
from tests.support.errors import raises


def test_classify_scores_are_sorted_by_probability() -> None:
    values = np.array([0.0, 2.0, 1.0, -3.0], np.float32).reshape(4, 1, 1)
    scores = classify(values, ("a", "b"), top=3)
    assert [(score.label, score.index) for score in scores] == [("b", 1), ("class 2", 2), ("a", 0)]
    powers = np.exp([2.0, 1.0, 0.0]) / np.exp([0.0, 2.0, 1.0, -3.0]).sum()
    assert [score.probability for score in scores] == pytest.approx(list(powers), rel=1e-6)


def test_classify_large_and_equal_values_keep_their_order() -> None:
    scores = classify(np.array([3e38, 3e38, -3e38], np.float32), ())
    assert [(score.index, score.probability) for score in scores] == [(0, 0.5), (1, 0.5), (2, 0.0)]


def picked(head: Head, output: list[float], labels: tuple[str, ...] = ("a", "b", "c", "d")) -> tuple[Score, ...]:
    return chosen(np.array(output, np.float32).reshape(-1, 1, 1), head, labels)


def test_chosen_by_host_or_network_names_the_labels() -> None:
    """Check classes that the host chooses and classes that the network chooses.

    The host computes probabilities from the values of all classes. Labels of the network have none.
    """
    by_host = picked(Head("classes", (), 4, k=2), [0.0, 2.0, 2.0, -3.0])
    assert [(score.label, score.index, score.value) for score in by_host] == [("b", 1, None), ("c", 2, None)]
    assert by_host[0].probability == pytest.approx(np.exp(2) / np.exp([0.0, 2.0, 2.0, -3.0]).sum())
    assert picked(Head("labels", (), 4, k=2), [3, 0]) == (Score("d", None, 3), Score("a", None, 0))
    valued = picked(Head("labels-and-values", (), 5, k=2), [4, 1, 0.5, -0.25])
    assert valued == (Score("class 4", None, 4, 0.5), Score("b", None, 1, -0.25))


def test_chosen_probabilities_are_reported_unchanged() -> None:
    """Check that no further softmax is applied.

    Among equal probabilities the first class is chosen. The probability of a label is in the second half of the output.
    """
    all_of_them = picked(Head("probabilities", (), 4, k=3), [0.25, 0.125, 0.0, 0.25])
    assert all_of_them == (Score("a", 0.25, 0), Score("d", 0.25, 3), Score("b", 0.125, 1))
    beside = picked(Head("labels-and-probabilities", (), 4, k=2), [2, 0, 0.75, 0.125])
    assert beside == (Score("c", 0.75, 2), Score("a", 0.125, 0))


def test_chosen_label_of_no_class_is_refused() -> None:
    head = Head("labels", (), 4, k=2)
    for output, got in (([3.0, 4.0], 4), ([-1.0, 0.0], -1), ([0.0, 2.0**70], 2**70)):
        with raises(RangeError, what="a label in the accelerator's output", got=got, low=0, high=3):
            picked(head, output)
    with raises(ShapeError, got="shape (3, 1, 1)", required="shape (2, height, width)"):
        picked(head, [1, 2, 3])


def test_classes_head_of_several_positions_or_invalid_k_is_refused() -> None:
    with raises(ShapeError, what="the output for a classes head", got=(4, 2, 3), required=(4, 1, 1)):
        chosen(np.zeros((4, 2, 3), np.float32), Head("classes", (), 4, k=1), ())
    for k in (0, 5):
        with raises(RangeError, what="k of a labels head", got=k, low=1, high=4):
            Head("labels", (), 4, k=k)
    with raises(InvalidValueError, what="bias of a labels head", got=(1.0,)):
        Head("labels", (), 4, bias=(1.0,), k=1)


def test_labels_of_positions_are_classes_of_pixels() -> None:
    placement = Placement(4, 2, 4, 2, 0, 0, 4, 2)
    output = np.array([[[2, 0], [0, 0]], [[0, 1], [1, 1]]], np.float32)  # the second best of each position too
    seen = chosen_of_pixels(output, Head("labels", (), 3, k=2), placement, ("sky", "road", "tree"))
    np.testing.assert_array_equal(seen.classes, [[2, 2, 0, 0], [0, 0, 0, 0]])
    assert [(part.label, part.share) for part in seen.segments] == [("sky", 0.75), ("tree", 0.25)]


def test_score_without_probability_is_reported_by_label() -> None:
    assert caption(Score("cat", None, 0)) == "cat"
    assert caption(Score("cat", 0.75, 0)) == "cat 75%"


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
