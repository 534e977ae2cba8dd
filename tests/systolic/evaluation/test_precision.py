"""Average precision, checked against results computed by hand and against pycocotools on random boxes."""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Sequence

import numpy as np
import pytest

from host.vision.detection import Detection
from systolic.evaluation.layouts.labelled import Truth
from systolic.evaluation.precision import Precision, average_precisions
from systolic.evaluation.quality import agreement, total_agreement
from tests.support.cases import cases

SQUARE = (10.0, 10.0, 30.0, 30.0)
HALF = (10.0, 10.0, 30.0, 22.0)
"""A box inside SQUARE: their IoU is 0.6."""

LABELS = ("a", "b", "c")


def box(probability: float, place: tuple[float, float, float, float] = SQUARE, label: str = "a") -> Detection:
    return Detection(label, probability, place)


def precision(boxes: Sequence[Detection], truths: Sequence[Truth]) -> Precision:
    return average_precisions([boxes], [truths], 0.24)


def test_average_precisions_of_the_right_box_are_1() -> None:
    result = precision([box(0.9)], [Truth("a", SQUARE)])
    assert (result.map50, result.map50_95, result.precision, result.recall, result.mean_iou) == (1, 1, 1, 1, 1)


def test_average_precisions_of_iou_0_6_count_three_of_ten_thresholds() -> None:
    result = precision([box(0.9, HALF)], [Truth("a", SQUARE)])
    assert result.map50 == 1
    assert result.map50_95 == pytest.approx(0.3)
    assert result.mean_iou == pytest.approx(0.6)


def test_average_precisions_with_a_duplicate_or_wrong_box_are_lower() -> None:
    twice = precision([box(0.9), box(0.8)], [Truth("a", SQUARE)])
    assert (twice.map50, twice.precision) == (1, 0.5)
    wrong_first = precision([box(0.9, (50, 50, 60, 60)), box(0.8)], [Truth("a", SQUARE)])
    assert wrong_first.map50 == pytest.approx(0.5)


def test_average_precisions_rank_boxes_below_the_threshold() -> None:
    result = precision([box(0.1)], [Truth("a", SQUARE)])
    assert (result.map50, result.recall) == (1, 0)
    assert math.isnan(result.precision)


def test_average_precisions_ignore_difficult_objects() -> None:
    result = precision(
        [box(0.9), box(0.8, (50, 50, 60, 60))], [Truth("a", SQUARE), Truth("a", (50, 50, 60, 60), difficult=True)]
    )
    assert (result.map50, result.precision, result.recall) == (1, 1, 1)
    assert result.by_class["a"].truths == 1


def test_average_precisions_of_an_unlabelled_class_lower_only_the_precision() -> None:
    result = precision([box(0.9), box(0.9, label="z")], [Truth("a", SQUARE)])
    assert (result.map50, result.precision) == (1, 0.5)
    assert list(result.by_class) == ["a"]


def test_average_precisions_without_objects_are_nan() -> None:
    result = precision([box(0.9)], [])
    assert math.isnan(result.map50)
    assert result.precision == 0


def random_case(seed: int) -> tuple[list[list[Detection]], list[list[Truth]]]:
    """Return the boxes and objects of twelve random pictures.

    Boxes are near an object or far from all. Some are duplicates, some have equal probabilities, and some objects are
    crowds.
    """
    random = np.random.default_rng(seed)
    pictures, objects = [], []
    for _ in range(12):
        truths, boxes = [], []
        for _ in range(random.integers(0, 6)):
            x, y, w, h = random.uniform(0, 60), random.uniform(0, 60), random.uniform(5, 40), random.uniform(5, 40)
            label = str(random.choice(LABELS))
            truths.append(Truth(label, (x, y, x + w, y + h), crowd=bool(random.random() < 0.15)))
            for _ in range(random.integers(0, 4)):
                dx, dy, dw, dh = random.normal(0, 3, 4)
                place = (x + dx, y + dy, x + dx + max(w + dw, 1), y + dy + max(h + dh, 1))
                boxes.append(Detection(label, float(random.integers(1, 20) / 20), place))
        for _ in range(random.integers(0, 5)):
            x, y = random.uniform(0, 90, 2)
            boxes.append(Detection(str(random.choice(LABELS)), float(random.random()), (x, y, x + 9, y + 9)))
        pictures.append(boxes)
        objects.append(truths)
    return pictures, objects


def cocos(pictures: Sequence[Sequence[Detection]], objects: Sequence[Sequence[Truth]]) -> tuple[float, float]:
    """Return (mAP@0.5:0.95, mAP@0.5) as pycocotools computes them."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    def placed(place: tuple[float, float, float, float]) -> list[float]:
        return [place[0], place[1], place[2] - place[0], place[3] - place[1]]

    annotations = [
        {
            "id": 1,
            "image_id": image,
            "category_id": LABELS.index(truth.label),
            "bbox": placed(truth.box),
            "area": 100.0,
            "iscrowd": int(truth.crowd),
        }
        for image, truths in enumerate(objects)
        for truth in truths
    ]
    for number, annotation in enumerate(annotations, 1):
        annotation["id"] = number
    results = [
        {
            "image_id": image,
            "category_id": LABELS.index(each.label),
            "bbox": placed(each.box),
            "score": each.probability,
        }
        for image, boxes in enumerate(pictures)
        for each in boxes
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = {
            "info": {},
            "images": [{"id": image} for image in range(len(objects))],
            "categories": [{"id": number, "name": label} for number, label in enumerate(LABELS)],
            "annotations": annotations,
        }
        truth.createIndex()
        evaluation = COCOeval(truth, truth.loadRes(results), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return float(evaluation.stats[0]), float(evaluation.stats[1])


@cases("seed", range(40))
def test_average_precisions_of_random_boxes_equal_pycocotools(seed: int) -> None:
    pytest.importorskip("pycocotools")
    pictures, objects = random_case(seed)
    result = average_precisions(pictures, objects, 0.24)
    assert (result.map50_95, result.map50) == pytest.approx(cocos(pictures, objects), abs=1e-6)


# ---------------------------------------------------------------------------------------------- without labels


def test_agreement_matches_boxes_by_class_and_iou() -> None:
    result = agreement([box(0.9), box(0.8, label="b")], [box(0.7, HALF), box(0.6, label="c")])
    assert (result.matched, result.missed, result.added) == (1, 1, 1)
    assert result.mean_iou == pytest.approx(0.6)


def test_together_averages_the_iou_over_boxes() -> None:
    pairs = [agreement([box(0.9)], [box(0.9)]), agreement([box(0.9)], [box(0.9, HALF)]), agreement([], [])]
    assert total_agreement(pairs).mean_iou == pytest.approx(0.8)
    assert total_agreement(pairs).matched == 2
