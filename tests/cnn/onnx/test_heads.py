"""Tests of the heads of ONNX files, which are recognised by their layout or described in a heads file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from boards.errors import (
    ChoiceError,
    ConflictError,
    DamagedFileError,
    InvalidValueError,
    MismatchError,
    MissingValueError,
    RangeError,
    SeveralFaultsError,
    SystolicError,
    UnknownKeyError,
)
from cnn.float_model import run_float
from cnn.network import Network
from cnn.onnx.heads import METADATA, with_metadata
from cnn.onnx.network import read_onnx
from cnn.ops import HEADS, Detection
from host.vision.detection import decode
from host.vision.heads.head import Head
from host.vision.placement import Placement
from tests.support.cases import cases
from tests.support.errors import raises, refused
from tests.support.onnx.writer import Writer
from tests.support.onnx.yolov8 import Detector, Form

SMALL = Form(channels=4, repeats=1, side=64, classes=3)


def heads(network: Network) -> list[Detection]:
    return [node.op for node in network.nodes if isinstance(node.op, Detection)]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exported") / "yolov8.onnx"
    onnx.save(Detector(SMALL).model(), path)
    return path


def test_head_of_an_ultralytics_export_is_recognised(exported: Path, tmp_path: Path) -> None:
    read = read_onnx(exported)
    network, data = read.network, read.data
    assert [(head.kind, head.classes, head.bins) for head in heads(network)] == [("anchor-free", 3, 16)] * 3
    assert [str(node.shape) for node in network.nodes[-3:]] == ["67×8×8", "67×4×4", "67×2×2"]
    # The file that a design stores must give the same network again.
    (tmp_path / "again.onnx").write_bytes(data)
    again = read_onnx(tmp_path / "again.onnx")
    assert again.data == data
    assert heads(again.network) == heads(network)


def test_head_gives_the_boxes_of_the_exported_decoding(exported: Path) -> None:
    network = read_onnx(exported).network
    picture = np.random.default_rng(1).random((3, 64, 64), np.float32)
    (answer,) = onnxruntime.InferenceSession(str(exported)).run(None, {"picture": picture[None]})
    sides, classes = answer[0, :4], answer[0, 4:]
    outputs, placement, first = run_float(network, picture), Placement(64, 64, 64, 64, 0, 0, 64, 64), 0
    for node, output in zip(network.nodes[-3:], outputs[-3:], strict=True):
        head = heads(network)[0]
        count = node.shape.height * node.shape.width
        candidates = decode(output, Head(head.kind, (), head.classes, bins=head.bins), placement, 0.0)
        y, x = np.divmod(np.arange(count), node.shape.width)
        left, top, right, bottom = sides[:, first : first + count]
        width, height = node.shape.width, node.shape.height
        expected = [(x + 0.5 - left) / width, (y + 0.5 - top) / height, (x + 0.5 + right) / width]
        expected.append((y + 0.5 + bottom) / height)
        np.testing.assert_allclose(candidates.boxes.T, expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(candidates.probabilities.T, classes[:, first : first + count], atol=1e-5)
        first += count


def test_layout_with_other_weights_is_not_recognised(exported: Path, tmp_path: Path) -> None:
    model = onnx.load(exported)
    mark = next(array for array in model.graph.initializer if list(array.dims) == [1, 16, 1, 1])
    mark.raw_data = (np.arange(16, dtype=np.float32) + 1).tobytes()
    onnx.save(model, tmp_path / "other.onnx")
    with pytest.raises(SeveralFaultsError):
        read_onnx(tmp_path / "other.onnx")


@pytest.fixture
def two_maps(tmp_path: Path) -> Path:
    """Return a file with the tensors "conv0" of 12 channels and "conv1" of 6 channels."""
    writer = Writer()
    for filters in (12, 6):
        weights = writer.constant(np.ones((filters, 3, 1, 1)))
        writer.put("Conv", ["picture", weights], kernel_shape=[1, 1])
    onnx.save(writer.model(["conv0", "conv1"], (1, 3, 8, 8)), tmp_path / "two.onnx")
    return tmp_path / "two.onnx"


def read_with(network: Path, *entries: object) -> Network:
    path = network.with_name("heads.json")
    path.write_text(json.dumps({"heads": entries}))
    return read_onnx(network, cuts=(str(path),)).network


SCALED = {"kind": "scaled-yolo", "tensors": ["conv0"], "classes": 1, "anchors": [[10, 13], [33, 23]], "scale_xy": 2}
SSD = {"kind": "ssd", "tensors": ["conv0", "conv1"], "anchors": [[9, 9], [5, 5], [3, 3]], "softmax": True}


def test_heads_file_assigns_tensors_to_heads(two_maps: Path) -> None:
    network = read_with(two_maps, SCALED, {"kind": "segmentation", "tensors": ["conv1"]})
    scaled, segmentation = heads(network)
    assert (scaled.anchors, scaled.scale_xy) == (((10.0, 13.0), (33.0, 23.0)), 2.0)
    assert (segmentation.kind, segmentation.classes) == ("segmentation", 6)
    (ssd,) = heads(read_with(two_maps, SSD))
    assert (ssd.classes, ssd.channels) == (1, 18)
    outputs = run_float(read_with(two_maps, SSD), np.ones((3, 8, 8), np.float32))
    assert outputs[-1].shape == (18, 8, 8)


ENTRY = "heads.json: head 1"


@cases(
    "entry, fault",
    [
        ({**SCALED, "kind": "yolo5"}, ChoiceError("'kind'", "yolo5", tuple(HEADS), where=ENTRY)),
        (
            {**SCALED, "anchor": 1},
            UnknownKeyError(
                ["anchor"],
                ["kind", "tensors", "classes", "anchors", "softmax", "scale_xy", "bins"],
                where=ENTRY,
            ),
        ),
        (
            {**SCALED, "anchors": [[10, -13]]},
            InvalidValueError(
                "'anchors'", [[10, -13]], "a list of pairs of numbers above 0", where="heads.json: head 1"
            ),
        ),
        (
            {**SCALED, "anchors": []},
            MissingValueError("'anchors'", "a head of kind scaled-yolo needs them", where="heads.json: head 1"),
        ),
        (
            {**SCALED, "classes": 2},
            MismatchError(
                "channels of conv0 for 2 classes of a head of kind scaled-yolo, 2 anchors and 1 bins",
                12,
                14,
                where="two.onnx: head 1",
            ),
        ),
        (
            {**SCALED, "tensors": []},
            InvalidValueError("'tensors'", [], "a list of 1 to 8 names", where="heads.json: head 1"),
        ),
        (
            {**SCALED, "tensors": ["conv9"]},
            ChoiceError("a tensor to cut the network at", "conv9", ["conv0", "conv1"], where="two.onnx"),
        ),
        (
            {"kind": "segmentation", "tensors": ["conv1"], "anchors": [[1, 1]]},
            ConflictError(("'anchors'", "the kind segmentation"), "such a head has none", where="heads.json: head 1"),
        ),
        (
            {"kind": "anchor-free", "tensors": ["conv1"], "bins": 16},
            RangeError(
                "channels of conv1 for a class of a head of kind anchor-free, 0 anchors and 16 bins",
                6,
                65,
                where="two.onnx: head 1",
            ),
        ),
        ({**SCALED, "softmax": 1}, InvalidValueError("'softmax'", 1, "true or false", where=ENTRY)),
        (7, InvalidValueError("the value", 7, "a JSON object", where=ENTRY)),
    ],
)
def test_wrong_entry_of_a_heads_file_is_refused(entry: object, fault: SystolicError, two_maps: Path) -> None:
    with refused(fault):
        read_with(two_maps, entry)


@cases(
    "text, kind, fields",
    [
        ("", DamagedFileError, {"path": "heads.json"}),
        ("[1]", InvalidValueError, {"got": [1], "where": "heads.json"}),
        ('{"heads": []}', RangeError, {"got": 0, "low": 1, "where": "heads.json"}),
        ('{"head": [1]}', MissingValueError, {"what": "'heads'", "where": "heads.json"}),
        ('{"heads": {}}', InvalidValueError, {"what": "'heads'", "got": {}, "where": "heads.json"}),
    ],
)
def test_wrong_text_of_a_heads_file_is_refused(
    text: str, kind: type[SystolicError], fields: dict[str, object], two_maps: Path
) -> None:
    two_maps.with_name("heads.json").write_text(text)
    with raises(kind, **fields):
        read_onnx(two_maps, cuts=(str(two_maps.with_name("heads.json")),))


def test_wrong_heads_in_the_metadata_are_refused(two_maps: Path) -> None:
    model = onnx.load(two_maps)
    model.metadata_props.add(key=METADATA, value='{"heads": [{"kind": "yolo"}]}')
    onnx.save(model, two_maps)
    with raises(MissingValueError, what="'tensors'", where="two.onnx: systolic.heads: head 1"):
        read_onnx(two_maps)


def test_with_metadata_preserves_other_metadata(two_maps: Path) -> None:
    model = onnx.load(two_maps)
    for key in ("author", METADATA, "zoo", METADATA):
        model.metadata_props.add(key=key, value="[]")
    written = onnx.ModelProto.FromString(with_metadata(model, ()))
    assert [entry.key for entry in written.metadata_props] == ["author", "zoo"]
