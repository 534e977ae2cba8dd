"""host/vision/detection.py: boxes equal the boxes of a float reference and of formulas written out."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from boards.errors import (
    ChoiceError,
    InvalidValueError,
    MismatchError,
    MissingValueError,
    RangeError,
    ShapeError,
    SystolicError,
)
from host.vision.detection import TOGETHER, Detection, clipped, detect, suppress
from host.vision.heads.boxes import decode_one_object, decode_region, decode_yolo
from host.vision.heads.head import KINDS, Head
from host.vision.picture import load_picture, resize
from host.vision.placement import Placement
from tests.support.errors import raises

VOC_HEAD = Head("region", ((1.08, 1.19), (3.42, 4.41), (6.63, 11.38), (9.42, 5.11), (16.62, 10.52)), 20)
SQUARE = Placement(100, 100, 64, 64, 0, 0, 64, 64)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_detect_boxes_of_the_dog_equal_the_float_reference(shared: Path) -> None:
    data = shared / "data"
    layers = np.load(data / "expected/yolo-lite-voc-trial3-noBatch_dog_224_layers.npz")
    labels = (data / "networks/voc.names").read_text().split()
    _, placement = resize(load_picture(data / "pictures/dog.jpg"), 224, 224)
    found = detect([layers["l11_convolutional"][0]], [VOC_HEAD], placement, labels)
    expected = json.loads((data / "expected/yolo-lite-voc-trial3-noBatch_dog_224.json").read_text())
    assert [one.label for one in found] == [one["label"] for one in expected]
    for one, wanted in zip(found, expected, strict=True):
        assert one.probability == pytest.approx(wanted["prob"], abs=1e-3)
        assert one.box == pytest.approx(wanted["box_xyxy"], abs=0.5)


def quiet_output(head: Head, height: int, width: int) -> np.ndarray:
    """Return an output without objects: every objectness is −20."""
    output = np.zeros((len(head.anchors), 5 + head.classes, height, width), np.float32)
    output[:, 4] = -20
    return output


def test_decode_region_box_equals_the_formula() -> None:
    head = Head("region", ((1.0, 2.0), (3.0, 0.5)), 3)
    output = quiet_output(head, 4, 8)
    output[1, :, 2, 5] = (0.3, -0.7, 0.2, -0.4, 2.0, 1.0, 3.0, 0.5)
    found = decode_region(output.reshape(-1, 4, 8), head)
    x, y = (5 + sigmoid(0.3)) / 8, (2 + sigmoid(-0.7)) / 4
    w, h = 3.0 * math.exp(0.2) / 8, 0.5 * math.exp(-0.4) / 4
    assert found.boxes[0] == pytest.approx([x - w / 2, y - h / 2, x + w / 2, y + h / 2], rel=1e-6)
    powers = [math.exp(v) for v in (1.0, 3.0, 0.5)]
    assert found.probabilities[0] == pytest.approx([sigmoid(2.0) * p / sum(powers) for p in powers], rel=1e-6)
    assert len(found.boxes) == 1


def test_decode_region_without_softmax_has_a_sigmoid_per_class() -> None:
    head = Head("region", ((1.0, 2.0),), 2, softmax=False)
    output = quiet_output(head, 1, 1)
    output[0, :, 0, 0] = (0, 0, 0, 0, 1.0, 2.0, -1.0)
    found = decode_region(output.reshape(-1, 1, 1), head)
    assert found.probabilities[0] == pytest.approx([sigmoid(1) * sigmoid(2), sigmoid(1) * sigmoid(-1)])


def test_decode_yolo_box_equals_the_formula() -> None:
    head = Head("yolo", ((10, 14), (23, 27)), 2)
    output = quiet_output(head, 13, 26)
    output[0, :, 3, 7] = (0.1, 0.2, 0.3, 0.4, 3.0, 2.0, 1.5)
    found = decode_yolo(output.reshape(-1, 13, 26), head, 416, 832)
    x, y = (7 + sigmoid(0.1)) / 26, (3 + sigmoid(0.2)) / 13
    w, h = 10 * math.exp(0.3) / 832, 14 * math.exp(0.4) / 416
    assert found.boxes[0] == pytest.approx([x - w / 2, y - h / 2, x + w / 2, y + h / 2], rel=1e-6)
    # Classes of YOLOv3 do not exclude each other: their sum exceeds 1.
    assert found.probabilities[0] == pytest.approx([sigmoid(3) * sigmoid(2), sigmoid(3) * sigmoid(1.5)])


def test_decode_yolo_box_with_scale_xy_equals_the_formula() -> None:
    for kind, scale in (("yolo", 1.05), ("scaled-yolo", 2.0)):
        head = Head(kind, ((10, 14), (23, 27)), 2, scale_xy=scale)
        output = quiet_output(head, 13, 26)
        output[1, :, 3, 7] = (0.1, 0.2, 0.3, -0.4, 3.0, 2.0, 1.5)
        boxes = decode_yolo(output.reshape(-1, 13, 26), head, 416, 832).boxes
        x, y = (7 + sigmoid(0.1) * scale - (scale - 1) / 2) / 26, (3 + sigmoid(0.2) * scale - (scale - 1) / 2) / 13
        factors = [(2 * sigmoid(t)) ** 2 if kind == "scaled-yolo" else math.exp(t) for t in (0.3, -0.4)]
        w, h = 23 * factors[0] / 832, 27 * factors[1] / 416
        assert boxes[0] == pytest.approx([x - w / 2, y - h / 2, x + w / 2, y + h / 2], rel=1e-6)


def test_detect_box_of_two_classes_is_reported_as_both() -> None:
    head = Head("yolo", ((32, 32),), 2)
    output = quiet_output(head, 2, 2)
    output[0, :, 0, 0] = (0, 0, 0, 0, 5.0, 5.0, 4.0)
    found = detect([output.reshape(-1, 2, 2)], [head], SQUARE, ["dog", "animal"])
    assert [one.label for one in found] == ["dog", "animal"]
    assert found[0].box == found[1].box == pytest.approx((0, 0, 50, 50))


def test_detect_suppresses_boxes_across_heads() -> None:
    coarse, fine = Head("yolo", ((32, 32),), 1), Head("yolo", ((32, 32),), 1)
    first, second = quiet_output(coarse, 2, 2), quiet_output(fine, 4, 4)
    first[0, :, 0, 0] = (0, 0, 0, 0, 3.0, 5.0)  # centre 16, 16
    second[0, :, 0, 0] = (9, 9, 0, 0, 5.0, 5.0)  # centre 16, 16 too
    second[0, :, 3, 3] = (0, 0, 0, 0, 2.0, 5.0)
    found = detect([first.reshape(-1, 2, 2), second.reshape(-1, 4, 4)], [coarse, fine], SQUARE, ["dog"])
    assert [round(one.probability, 3) for one in found] == [
        round(sigmoid(5) * sigmoid(5), 3),
        round(sigmoid(2) * sigmoid(5), 3),
    ]


def test_boxes_of_different_classes_do_not_suppress_each_other() -> None:
    head = Head("region", ((1.0, 1.0), (1.0, 1.0)), 2)
    output = quiet_output(head, 1, 1)
    output[0, :, 0, 0] = (0, 0, 0, 0, 5, 9, 0)
    output[1, :, 0, 0] = (0, 0, 0, 0, 5, 0, 9)
    assert len(detect([output.reshape(-1, 1, 1)], [head], SQUARE, ["a", "b"])) == 2
    output[1, :, 0, 0] = (0, 0, 0, 0, 4, 9, 0)
    assert len(detect([output.reshape(-1, 1, 1)], [head], SQUARE, ["a", "b"])) == 1


def test_detect_class_without_a_label_is_named_by_its_number() -> None:
    head = Head("region", ((1.0, 1.0),), 2)
    output = quiet_output(head, 1, 1)
    output[0, :, 0, 0] = (0, 0, 0, 0, 9, 0, 9)
    assert detect([output.reshape(-1, 1, 1)], [head], SQUARE, ["only"])[0].label == "class 1"


def slow_suppress(boxes: np.ndarray, probabilities: np.ndarray, overlap: float) -> list[int]:
    """Return the indices of the boxes that darknet's do_nms_sort keeps, compared pair by pair."""

    def area(box: np.ndarray) -> float:
        return float(max(box[2] - box[0], 0) * max(box[3] - box[1], 0))

    kept: list[int] = []
    for i in sorted(range(len(boxes)), key=lambda i: -probabilities[i]):
        for j in kept:
            corner, end = np.maximum(boxes[i][:2], boxes[j][:2]), np.minimum(boxes[i][2:], boxes[j][2:])
            shared = area(np.concatenate([corner, end])) if (end > corner).all() else 0.0
            if shared / (area(boxes[i]) + area(boxes[j]) - shared) > overlap:
                break
        else:
            kept.append(i)
    return kept


@settings(max_examples=30)
@given(
    seed=st.integers(0, 1 << 30),
    count=st.integers(0, 4 * TOGETHER),
    size=st.floats(0.1, 0.6),
    overlap=st.floats(0.1, 0.9),
)
@example(1, 60, 0.6, 0.45)
@example(2, 4 * TOGETHER, 0.2, 0.2)
def test_suppress_equals_the_definition_of_darknet(seed: int, count: int, size: float, overlap: float) -> None:
    """Check also more boxes than ``suppress`` compares at once."""
    rng = np.random.default_rng(seed)
    start = rng.uniform(0, 1, (count, 2))
    boxes = np.concatenate([start, start + rng.uniform(0.05, size, start.shape)], 1)
    probabilities = rng.uniform(0, 1, count)
    assert suppress(boxes, probabilities, overlap).tolist() == slow_suppress(boxes, probabilities, overlap)


def test_detect_quiet_output_returns_no_boxes() -> None:
    output = quiet_output(VOC_HEAD, 7, 7).reshape(-1, 7, 7)
    assert detect([output], [VOC_HEAD], SQUARE, []) == ()
    assert detect([], [], SQUARE, []) == ()


def test_extreme_values_give_finite_boxes() -> None:
    head = Head("region", ((1.0, 1.0),), 2)
    output = np.full((7, 3, 3), 3e38, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = detect([output], [head], SQUARE, ["a", "b"])
        assert detect([-output], [head], SQUARE, ["a", "b"]) == ()
    assert found
    assert all(math.isfinite(value) for one in found for value in (*one.box, one.probability))


def test_boxes_are_clipped_only_on_request() -> None:
    detection = Detection("a", 0.5, (-5.0, 10.0, 120.0, 90.0))
    assert detection.clipped(100, 80) == Detection("a", 0.5, (0.0, 10.0, 100.0, 80.0))
    assert clipped([detection, detection], 100, 80) == (detection.clipped(100, 80),) * 2
    assert clipped([], 100, 80) == ()


def test_detect_output_of_another_shape_is_refused() -> None:
    what = "the output for a region head of 5 anchors and 20 classes"
    for shape in ((120, 7, 7), (125, 7)):
        with raises(ShapeError, what=what, got=f"shape {shape}", required="shape (125, height, width)"):
            detect([np.zeros(shape, np.float32)], [VOC_HEAD], SQUARE, [])


def test_detect_output_with_nan_or_infinity_is_refused() -> None:
    output = np.zeros((125, 2, 2), np.float32)
    output[3, 1, 1] = np.inf
    with raises(InvalidValueError, got=math.inf, required="finite"):
        detect([output], [VOC_HEAD], SQUARE, [])
    output[3, 1, 1] = np.nan
    with raises(InvalidValueError, required="finite"):
        detect([output], [VOC_HEAD], SQUARE, [])


def test_detect_with_fewer_outputs_than_heads_is_refused() -> None:
    with raises(MismatchError, got=0, expected=1):
        detect([], [VOC_HEAD], SQUARE, [])


def test_head_survives_writing_and_reading_as_json() -> None:
    head = Head("yolo", ((10.0, 14.0), (23.0, 27.0)), 80, 4, False)
    assert Head.from_json(json.loads(json.dumps(head.to_json()))) == head
    stretched = Head("scaled-yolo", ((10.0, 14.0),), 80, 4, False, scale_xy=2.0)
    assert Head.from_json(json.loads(json.dumps(stretched.to_json()))) == stretched


def test_head_from_a_wrong_description_is_refused() -> None:
    pairs, numbers = "pairs of numbers above 0 and below 1,000,000", "a list of pairs of numbers"
    rows: list[tuple[str, object, type[SystolicError], dict[str, object]]] = [
        ("kind", "sdd", ChoiceError, {"what": "the kind of a head", "got": "sdd", "choices": KINDS}),
        ("scale_xy", 0, RangeError, {"got": 0.0, "low": 0, "high": 10, "exclusive": True}),
        ("scale_xy", 10.5, RangeError, {"got": 10.5}),
        ("scale_xy", float("nan"), RangeError, {"high": 10}),
        ("scale_xy", "far", InvalidValueError, {"got": "far", "required": "a number"}),
        ("bins", 0, RangeError, {"got": 0, "low": 1, "high": 64}),
        ("bins", 65, RangeError, {"got": 65}),
        ("bins", "x", InvalidValueError, {"required": "a whole number"}),
        ("coords", 5, MismatchError, {"got": 5, "expected": 4}),
        ("classes", 0, RangeError, {"got": 0, "low": 1, "high": 65536}),
        ("classes", None, InvalidValueError, {"got": None, "required": "a whole number"}),
        ("anchors", [], InvalidValueError, {"got": (), "required": pairs}),
        ("anchors", [[1, -1]], InvalidValueError, {"required": pairs}),
        ("anchors", [[1, float("nan")]], InvalidValueError, {"required": pairs}),
        ("anchors", [[1, 2, 3]], InvalidValueError, {"got": [[1, 2, 3]], "required": numbers}),
        ("anchors", 7, InvalidValueError, {"got": 7, "required": numbers}),
        ("anchors", [["a" * 5000, 1]], InvalidValueError, {"required": numbers}),
        ("bias", [0, "x"], InvalidValueError, {"required": "a list of numbers"}),
        ("k", "x", InvalidValueError, {"required": "a whole number"}),
    ]
    for key, value, kind, fields in rows:
        what = fields.pop("what", f"{key} of a head")
        with raises(kind, what=what, **fields) as caught:
            Head.from_json({**VOC_HEAD.to_json(), key: value})
        assert len(str(caught.value)) < 400
    for key in ("anchors", "kind", "classes", "coords", "softmax"):
        values = VOC_HEAD.to_json()
        del values[key]
        with raises(MissingValueError, what=f"{key!r} of a head"):
            Head.from_json(values)


# ---------------------------------------------------------------- one object


def test_decode_one_object_box_equals_the_formula() -> None:
    """Check the cell with the greatest mean objectness. Its anchors are averaged after sigmoid and exponential."""
    head = Head("one-object", ((20.0, 30.0), (40.0, 10.0)), 1, softmax=False)
    output = quiet_output(head, 3, 5)
    output[0, :, 1, 3] = (0.3, -0.7, 0.2, -0.4, 2.0, 9.0)
    output[1, :, 1, 3] = (0.1, 0.5, -0.3, 0.6, 1.0, -9.0)
    output[0, 4, 2, 4] = 20.0  # the greatest of all, but not with the other anchor
    found = decode_one_object(output.reshape(-1, 3, 5), head, 48, 80)
    x = (3 + (sigmoid(0.3) + sigmoid(0.1)) / 2) / 5
    y = (1 + (sigmoid(-0.7) + sigmoid(0.5)) / 2) / 3
    w = (20 * math.exp(0.2) + 40 * math.exp(-0.3)) / 2 / 80
    h = (30 * math.exp(-0.4) + 10 * math.exp(0.6)) / 2 / 48
    assert found.boxes == pytest.approx(np.array([[x - w / 2, y - h / 2, x + w / 2, y + h / 2]]))
    assert found.probabilities == pytest.approx(np.array([[(sigmoid(2.0) + sigmoid(1.0)) / 2]]))


def test_detect_one_object_averages_the_classes_of_its_anchors() -> None:
    head = Head("one-object", ((20.0, 20.0), (20.0, 20.0)), 3, softmax=False)
    output = quiet_output(head, 2, 2)
    output[:, 4:, 1, 0] = ((3.0, 0.0, 1.0, -1.0), (3.0, 0.0, 2.0, -2.0))
    (found,) = detect([output.reshape(-1, 2, 2)], [head], SQUARE, ["a", "b", "c"], 0.6)
    assert found.label == "b"
    assert found.probability == pytest.approx(sigmoid(3.0) * (sigmoid(1.0) + sigmoid(2.0)) / 2)


def test_detect_adds_the_bias_of_a_head_to_its_channels() -> None:
    for kind in ("region", "yolo", "one-object"):
        random = np.random.default_rng(3)
        head = Head(kind, ((20.0, 30.0), (40.0, 10.0)), 2)
        bias = random.normal(0, 1, head.channels)
        output = random.normal(0, 1, (head.channels, 3, 4)).astype(np.float32)
        biased = Head(kind, head.anchors, 2, bias=tuple(bias.tolist()))
        found = detect([output], [biased], SQUARE, ["a", "b"], 0.02)
        expected = detect([(output + bias[:, None, None]).astype(np.float32)], [head], SQUARE, ["a", "b"], 0.02)
        assert found, kind
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert one.box == pytest.approx(other.box, rel=1e-5, abs=1e-3)
        assert Head.from_json(json.loads(json.dumps(biased.to_json()))) == biased


def test_head_bias_of_another_length_is_refused() -> None:
    with raises(InvalidValueError, what="bias of a head", got=(1.0, 2.0), required="empty or 6 finite numbers"):
        Head("one-object", ((20.0, 20.0),), 1, bias=(1.0, 2.0))


def test_detect_box_of_the_trained_ultranet_equals_the_expected_box(shared: Path) -> None:
    """Decode the integers of the network's last layer. The expected box has one decimal."""
    with np.load(shared / "data/ultranet/ultranet_4w4a.npz") as arrays:
        bias = arrays["conv8_b"]
    with np.load(shared / "data/ultranet/boat6_0_int_golden.npz") as arrays:
        output = (arrays["conv8_acc"] / 105).astype(np.float32)
    head = Head("one-object", ((20.0, 20.0),) * 6, 1, softmax=False, bias=tuple(bias.tolist()))
    (found,) = detect([output], [head], Placement(640, 360, 320, 160, 0, 0, 320, 160), ["object"])
    assert found.box == pytest.approx((334.0, 81.6, 349.9, 90.6), abs=0.05)
    assert found.probability == pytest.approx(0.704, abs=5e-4)


def test_detect_sorts_boxes_by_descending_probability() -> None:
    head = Head("yolo", ((8, 8),), 1)
    output = quiet_output(head, 4, 4)
    for place, objectness in ((0, 1.0), (1, 3.0), (2, 2.0), (3, 4.0)):
        output[0, :, place, place] = (0, 0, 0, 0, objectness, 5.0)
    found = detect([output.reshape(-1, 4, 4)], [head], SQUARE, ["dog"])
    assert [one.probability for one in found] == pytest.approx([sigmoid(v) * sigmoid(5) for v in (4, 3, 2, 1)])


def test_head_anchors_outside_0_to_1000000_are_refused() -> None:
    for anchor in ((0.0, 1.0), (1.0, 0.0), (1e6, 1.0), (1.0, 1e6), (-1.0, 1.0)):
        with raises(InvalidValueError, what="anchors of a head", got=((2.0, 2.0), anchor)):
            Head("region", ((2.0, 2.0), anchor), 1)
    assert Head("region", ((999_999.0, 1e-3),), 1).anchors == ((999_999.0, 1e-3),)
