"""Average precision against cases worked by hand."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from boards.errors import NetworkError
from cnn.training.precision import (
    average_precision,
    evaluate,
    iou,
    mean_average_precision,
    wholly_right,
)

BOX = (10.0, 10.0, 30.0, 30.0)
FAR = (60.0, 60.0, 80.0, 80.0)


def rows(*values: tuple[float, ...], columns: int) -> npt.NDArray[np.float64]:
    return np.array(values, float).reshape(-1, columns)


def test_iou_by_hand() -> None:
    others = np.array([BOX, FAR, (20, 10, 40, 30), (10, 10, 20, 30)], float)
    assert iou(np.array(BOX), others) == pytest.approx([1, 0, 200 / 600, 0.5])


@pytest.mark.parametrize(
    ("right", "truths", "area"),
    [
        ([True, True], 2, 1.0),
        ([True], 2, 0.5),
        ([True, False, True], 2, 0.5 + 0.5 * 2 / 3),
        ([False, True], 1, 0.5),
        ([False, True, True, False], 4, 0.25 * 2 / 3 * 2),  # the envelope lifts 1/2 to the later 2/3
        ([], 3, 0.0),
    ],
)
def test_average_precision_is_the_area_under_the_envelope(right: list[bool], truths: int, area: float) -> None:
    assert average_precision(np.array(right, bool), truths) == pytest.approx(area)


def test_a_second_detection_of_the_same_truth_is_wrong() -> None:
    truths = [rows((0, *BOX), (0, *FAR), columns=5)]
    found = [rows((0, 0.9, *BOX), (0, 0.8, *BOX), (0, 0.7, *FAR), columns=6)]
    assert mean_average_precision(found, truths, 1).mean == pytest.approx(0.5 + 0.5 * 2 / 3)


def test_the_most_probable_detection_claims_the_truth_whatever_the_order_of_rows() -> None:
    truths = [rows((0, *BOX), columns=5)]
    found = [rows((0, 0.2, *FAR), (0, 0.6, 12, 10, 32, 30), (0, 0.9, *BOX), columns=6)]
    assert mean_average_precision(found, truths, 1).mean == 1.0


def test_overlap_of_exactly_the_threshold_counts() -> None:
    truths, found = [rows((0, *BOX), columns=5)], [rows((0, 0.9, 10, 10, 20, 30), columns=6)]
    assert mean_average_precision(found, truths, 1).mean == 1.0
    assert mean_average_precision(found, truths, 1, threshold=0.51).mean == 0.0


def test_ranking_runs_across_pictures() -> None:
    truths = [rows((0, *BOX), columns=5), rows((0, *BOX), columns=5)]
    found = [rows((0, 0.5, *BOX), columns=6), rows((0, 0.9, *FAR), (0, 0.8, *BOX), columns=6)]
    assert mean_average_precision(found, truths, 1).mean == pytest.approx(2 / 3)  # wrong, right, right


def test_classes_are_apart_and_those_without_truths_do_not_count() -> None:
    truths = [rows((0, *BOX), (1, *FAR), columns=5)]
    found = [rows((0, 0.9, *BOX), (1, 0.9, *BOX), (2, 0.9, *FAR), columns=6)]
    precision = mean_average_precision(found, truths, 3)
    assert precision.by_class[:2] == (1.0, 0.0)
    assert np.isnan(precision.by_class[2])
    assert precision.mean == 0.5


def test_evaluate_runs_the_network_on_every_picture() -> None:
    pictures = [np.full((4, 4, 3), v, np.uint8) for v in (0, 1)]
    truths = [rows(columns=5), rows((0, *BOX), columns=5)]

    def run_network(picture: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
        return rows((0, 0.9, *BOX), columns=6) if picture.max() else rows(columns=6)

    assert evaluate(run_network, pictures, truths, 1).mean == 1.0


def test_a_missing_picture_is_refused() -> None:
    with pytest.raises(NetworkError, match="same pictures, got 0 and 1 pictures; pass one array a picture"):
        mean_average_precision([], [rows(columns=5)], 1)


def test_rows_of_the_wrong_length_are_refused() -> None:
    with pytest.raises(NetworkError, match=r"detections as rows of 6 values, got shape \(1, 5\) for picture 0"):
        mean_average_precision([np.zeros((1, 5))], [rows(columns=5)], 1)


def test_a_probable_second_class_on_an_object_leaves_the_mean_but_not_the_picture() -> None:
    truths = [rows((0, *BOX), (1, *FAR), columns=5)]
    right = [rows((0, 0.99, *BOX), (1, 0.98, *FAR), columns=6)]
    doubled = [rows((0, 0.99, *BOX), (1, 0.98, *FAR), (1, 0.9, *BOX), columns=6)]
    assert mean_average_precision(doubled, truths, 2).mean == 1.0
    assert wholly_right(right, truths) == 1.0
    assert wholly_right(doubled, truths) == 0.0
    assert wholly_right(doubled, truths, probability=0.95) == 1.0


def test_a_lost_object_a_wrong_class_or_a_loose_box_is_not_wholly_right() -> None:
    truths = [rows((0, *BOX), columns=5)] * 4
    found = [(0, 0.9, *BOX), (1, 0.9, *BOX), (0, 0.4, *BOX), (0, 0.9, *FAR)]
    assert wholly_right([rows(f, columns=6) for f in found], truths) == 0.25
