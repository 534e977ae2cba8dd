"""Heads without an objectness, and segmentation, value by value against formulas written out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from boards.errors import ChoiceError, InvalidValueError, RangeError, ShapeError, SystolicError
from host.contract.parts import NetworkHead
from host.vision.detection import decode, detect
from host.vision.drawing import class_colour, draw
from host.vision.heads.boxes import decode_anchor_free, decode_cells, decode_ssd
from host.vision.heads.head import MAX_BIAS, Head
from host.vision.heads.segmentation import segment
from host.vision.placement import Placement
from tests.support.errors import raises

WHOLE = Placement(320, 160, 320, 160, 0, 0, 320, 160)


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def test_anchor_free_head_decodes_distances_to_the_sides() -> None:
    for bins in (1, 16):
        check_anchor_free(bins)


def check_anchor_free(bins: int) -> None:
    head = Head("anchor-free", (), 3, bins=bins)
    output = np.random.default_rng(bins).normal(0, 2, (4 * bins + 3, 5, 10)).astype(np.float32)
    candidates = decode_anchor_free(output, head, 0.5)
    expected, probabilities = [], []
    for row in range(5):
        for column in range(10):
            classes = [sigmoid(float(value)) for value in output[4 * bins :, row, column]]
            if max(classes) <= 0.5:
                continue
            sides = []
            for side in range(4):
                values = [math.exp(v) for v in output[side * bins : (side + 1) * bins, row, column].tolist()]
                mean = sum(i * value for i, value in enumerate(values)) / sum(values)
                sides.append(mean if bins > 1 else float(output[side, row, column]))
            x, y = column + 0.5, row + 0.5
            expected.append([(x - sides[0]) / 10, (y - sides[1]) / 5, (x + sides[2]) / 10, (y + sides[3]) / 5])
            probabilities.append(classes)
    np.testing.assert_allclose(candidates.boxes, expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(candidates.probabilities, probabilities, rtol=1e-6)


def test_ssd_head_decodes_moved_prior_boxes() -> None:
    for softmax in (True, False):
        check_ssd(softmax)


def check_ssd(softmax: bool) -> None:
    head = Head("ssd", ((30.0, 60.0), (90.0, 40.0)), 2, softmax=softmax)
    each = 2 + softmax
    output = np.random.default_rng(3).normal(0, 1.5, (8 + 2 * each, 3, 4)).astype(np.float32)
    candidates = decode_ssd(output, head, 160, 320, 0.4)
    expected = {}
    for anchor, (width, height) in enumerate(head.anchors):
        for row in range(3):
            for column in range(4):
                scores = output[8 + anchor * each : 8 + (anchor + 1) * each, row, column].tolist()
                powers = [math.exp(score) for score in scores]
                classes = [p / sum(powers) for p in powers][1:] if softmax else [sigmoid(s) for s in scores]
                x, y, w, h = output[4 * anchor : 4 * anchor + 4, row, column].tolist()
                middle = (column + 0.5) / 4 + 0.1 * x * width / 320, (row + 0.5) / 3 + 0.1 * y * height / 160
                half = width / 320 * math.exp(0.2 * w) / 2, height / 160 * math.exp(0.2 * h) / 2
                if max(classes) > 0.4:
                    box = (middle[0] - half[0], middle[1] - half[1], middle[0] + half[0], middle[1] + half[1])
                    expected[anchor, row, column] = (box, classes)
    np.testing.assert_allclose(candidates.boxes, [box for box, _ in expected.values()], rtol=1e-5)
    np.testing.assert_allclose(candidates.probabilities, [classes for _, classes in expected.values()], rtol=1e-5)


def test_detect_box_without_objectness_is_in_pixels() -> None:
    output = np.full((6, 4, 8), -9, np.float32)
    output[4:, 1, 2] = (2, -9)  # a cell is 40 × 40 pixels; the box reaches half a cell around its middle
    output[:4, 1, 2] = 0.5
    (detection,) = detect([output], [Head("anchor-free", (), 2)], WHOLE, ("a", "b"), 0.5)
    assert detection.box == pytest.approx((80, 40, 120, 80))
    assert detection.label == "a"
    assert detection.probability == pytest.approx(sigmoid(2))


def test_segment_gives_each_pixel_the_class_of_its_position() -> None:
    output = np.zeros((3, 2, 4), np.float32)
    output[1, :, :2], output[2, 1, 3] = 5, 7
    segmentation = segment(output, Head("segmentation", (), 3), WHOLE, ("sky", "road"))
    assert segmentation.classes.shape == (160, 320)
    expected = np.repeat(np.repeat([[1, 1, 0, 0], [1, 1, 0, 2]], 80, axis=0), 80, axis=1)
    np.testing.assert_array_equal(segmentation.classes, expected)
    parts = [(part.label, part.index, part.share) for part in segmentation.segments]
    assert parts == [("road", 1, 0.5), ("sky", 0, 0.375), ("class 2", 2, 0.125)]


def test_segment_of_a_letterboxed_picture_uses_its_part_of_the_map() -> None:
    output = np.stack([np.zeros((4, 4), np.float32), np.eye(4, dtype=np.float32)])
    placement = Placement(4, 2, 8, 8, 0, 2, 8, 4)  # 4 × 2 pixels fill rows 2…5 of 8 × 8
    segmentation = segment(output, Head("segmentation", (), 2), placement, ())
    np.testing.assert_array_equal(segmentation.classes, [[0, 1, 0, 0], [0, 0, 1, 0]])


def test_draw_segmentation_blends_the_colours_of_its_classes() -> None:
    picture = np.full((160, 320, 3), 100, np.uint8)
    output = np.zeros((2, 1, 2), np.float32)
    output[1, 0, 1] = 1
    segmentation = segment(output, Head("segmentation", (), 2), WHOLE, ("sky", "road"))
    drawn = draw(picture, (), ("sky", "road"), (), segmentation)
    for column, label in ((140, "sky"), (300, "road")):
        expected = [50 + part // 2 for part in class_colour(label, ("sky", "road"))]
        assert drawn[150, column].tolist() == expected
    assert (drawn[:10, :20] != drawn[150, 140]).any()  # the classes' names are drawn in the corner


HEAD = {"kind": "anchor-free", "anchors": [], "classes": 3, "coords": 4, "softmax": False}


def test_network_head_of_several_maps_survives_writing_and_reading() -> None:
    head = NetworkHead((4, 7), Head("anchor-free", (), 80, softmax=False, bins=16))
    values = head.to_values()
    assert (values["layers"], values["bins"]) == ([4, 7], 16)
    assert NetworkHead.from_values(values, "heads[0]") == head
    alone = NetworkHead((4,), Head("segmentation", (), 3))
    assert alone.to_values()["layer"] == 4
    assert NetworkHead.from_values(alone.to_values(), "heads[0]") == alone


def test_wrong_head_of_a_manifest_is_refused_with_its_place() -> None:
    rows: list[tuple[dict[str, object], type[SystolicError], dict[str, object]]] = [
        ({"layers": []}, InvalidValueError, {"where": "heads[0].layers", "got": []}),
        ({"layers": [0, "a"]}, RangeError, {"where": "heads[0].layer", "got": "a"}),
        ({"layers": [0, 5000]}, RangeError, {"where": "heads[0].layer", "got": 5000}),
        ({"layer": 1, "bins": 0}, RangeError, {"where": "heads[0]", "what": "bins of a head"}),
        ({"layer": 1, "anchors": [[1, 2]]}, InvalidValueError, {"what": "anchors of a anchor-free head"}),
        ({"layer": 1, "kind": "ssd"}, InvalidValueError, {"what": "anchors of a head", "got": ()}),
        ({"layer": 1, "kind": "free"}, ChoiceError, {"where": "heads[0]", "got": "free"}),
    ]
    for change, kind, fields in rows:
        with raises(kind, **fields):
            NetworkHead.from_values({**HEAD, **change}, "heads[0]")


def test_cells_head_decodes_squared_sides() -> None:
    """Compare with darknet's get_detection_detections, written out: classes, then objectness, then boxes."""
    side, boxes, classes = 3, 2, 4
    head = Head("cells", ((1.0, 1.0),) * boxes, classes, bins=side)
    values = np.random.default_rng(4).uniform(-0.2, 1.2, side * side * (classes + 5 * boxes)).astype(np.float32)
    candidates = decode_cells(values.reshape(-1, 1, 1), head, 0.3)
    expected, probabilities = [], []
    for cell in range(side * side):
        for box in range(boxes):
            index = cell * boxes + box
            scale = float(values[side * side * classes + index])
            joint = [scale * float(values[cell * classes + i]) for i in range(classes)]
            x, y, w, h = values[side * side * (classes + boxes) + 4 * index :][:4].tolist()
            if max(joint) > 0.3:
                x, y = (cell % side + x) / side, (cell // side + y) / side
                expected.append([x - w * w / 2, y - h * h / 2, x + w * w / 2, y + h * h / 2])
                probabilities.append([min(max(p, 0), 1) for p in joint])
    assert 3 < len(expected) < side * side * boxes
    np.testing.assert_allclose(candidates.boxes, expected, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(candidates.probabilities, probabilities, rtol=1e-5)
    assert len(detect([values.reshape(-1, 1, 1)], [head], WHOLE, ("a", "b"), 0.3)) > 0
    with raises(ShapeError, got=(126, 1, 2), required=(126, 1, 1)):
        decode_cells(np.zeros((126, 1, 2), np.float32), head)


def test_gaussian_yolo_head_equals_the_formula_of_darknet() -> None:
    """Compare with darknet's get_gaussian_yolo_detections, written out."""
    head = Head("gaussian-yolo", ((30.0, 60.0), (90.0, 40.0)), 3, scale_xy=1.1)
    output = np.random.default_rng(5).normal(0, 1.5, (2 * 12, 4, 5)).astype(np.float32)
    candidates = decode(output, head, WHOLE, 0.4)
    expected, probabilities = [], []
    for anchor, (width, height) in enumerate(head.anchors):
        for row in range(4):
            for column in range(5):
                cell = output[anchor * 12 : anchor * 12 + 12, row, column].tolist()
                if sigmoid(cell[8]) <= 0.4:
                    continue
                x = (column + 1.1 * sigmoid(cell[0]) - 0.05) / 5
                y = (row + 1.1 * sigmoid(cell[2]) - 0.05) / 4
                w, h = math.exp(cell[4]) * width / 320, math.exp(cell[6]) * height / 160
                expected.append([x - w / 2, y - h / 2, x + w / 2, y + h / 2])
                variance = sum(sigmoid(cell[i]) for i in (1, 3, 5, 7)) / 4
                probabilities.append([sigmoid(cell[8]) * sigmoid(p) * (1 - variance) for p in cell[9:]])
    assert len(expected) > 5
    np.testing.assert_allclose(candidates.boxes, expected, rtol=1e-6)
    np.testing.assert_allclose(candidates.probabilities, probabilities, rtol=1e-6)


def test_segmentation_head_of_more_than_65536_classes_is_refused() -> None:
    output = np.zeros((65536, 1, 1), np.float32)
    output[-1] = 1
    head = Head("segmentation", (), 65536)
    assert segment(output, head, WHOLE, ()).segments[0].index == 65535
    with raises(RangeError, what="classes of a head", got=65537, low=1, high=65536):
        Head("segmentation", (), 65537)


def test_detect_with_the_greatest_bias_gives_finite_boxes() -> None:
    for kind in ("cells", "ssd", "anchor-free"):
        anchors = () if kind == "anchor-free" else ((4.0, 9.0),)
        plain = Head(kind, anchors, 2)
        head = Head(kind, anchors, 2, bias=(MAX_BIAS,) * plain.channels)
        boxes = detect([np.zeros((head.channels, 1, 1), np.float32)], [head], WHOLE, ())
        assert all(np.isfinite(box.box).all() for box in boxes)
        with raises(InvalidValueError, what="bias of a head", required=f"empty or {plain.channels} finite numbers"):
            Head(kind, anchors, 2, bias=(1e39,) * plain.channels)
