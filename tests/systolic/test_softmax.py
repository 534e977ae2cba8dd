"""Test classifiers that end in Softmax, from an ONNX file to probabilities computed by the pipeline or by the host."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import systolic
from boards.errors import (
    ChoiceError,
    MissingValueError,
    RangeError,
    UnknownKeyError,
    UnsupportedError,
)
from cnn.integer_model import dequantise, run_integer
from cnn.maps import FloatArray
from cnn.network import Node
from cnn.onnx.quantised.export import to_onnx
from cnn.ops import IntegerSoftmax, QSoftmax, Softmax
from cnn.ops.softmax import METHODS, softmax_of_positions
from cnn.stored.quantized_file import from_npz, to_npz
from host import open_detector
from host.vision.channels import load_frame, network_input
from host.vision.heads.head import Head
from systolic.cli.main import main
from systolic.evaluation.frames import Subject, compute
from systolic.model import Model, sample_pictures, with_softmax
from tests.support.errors import raises
from tests.support.host.manifests import manifest_fields
from tests.support.labels import CLASSES, NAMES, SIDE, file_of, sums_of_classes
from tests.support.onnx.writer import Writer

BOUND = 1 / 512 + 2.0**-16 + CLASSES / 2**21
"""The largest error of a share, except for shares above 255/256."""

STREAMING = ["--style", "streaming", "--folding", "greedy", "--fps", "2000"]


def classifier(folder: Path) -> Path:
    """Write a float network with two convolutions, a matrix product and a softmax, and return its file."""
    writer, random = Writer(), np.random.default_rng(3)
    last, channels = "picture", 3
    for filters in (8, 16):
        kernel = random.normal(0, (2 / (9 * channels)) ** 0.5, (filters, channels, 3, 3))
        last = writer.put("Conv", [last, writer.constant(kernel)], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        last = writer.put("MaxPool", [writer.put("Relu", [last])], kernel_shape=[4, 4], strides=[4, 4])
        channels = filters
    columns = random.normal(0, 0.5, (64, CLASSES))
    columns -= columns.mean(axis=0)  # no class is preferred
    last = writer.put("MatMul", [writer.put("Flatten", [last]), writer.constant(columns)])
    model = writer.model([writer.put("Softmax", [last], axis=1)], (1, 3, SIDE, SIDE))
    onnx.save(model, folder / "net.onnx")
    return folder / "net.onnx"


def trained(folder: Path, bits: int | None, chosen: bool = False) -> Path:
    """Write a quantised classifier and return its file.

    Args:
        bits: Bits of the values that the softmax reads, or None for the sums themselves.
        chosen: Whether the outputs are the labels and values of the three greatest shares.
    """
    writer, last = sums_of_classes()
    last = last if bits is None else writer.quant(last, bits, 0.0625)
    outputs = [writer.put("Softmax", [last], axis=1)]
    if chosen:
        values = writer.put("TopK", [outputs[0], writer.constant([3], np.int64)], outputs=2, axis=1)
        outputs = [values, f"{values}_"]
    onnx.save(file_of(writer, *outputs), folder / "net.onnx")
    return folder / "net.onnx"


def generated(network: Path, *options: str) -> Path:
    """Generate a pipeline of the network and return its folder."""
    folder = network.parent
    (folder / "net.names").write_text("\n".join(NAMES))
    command = ["generate", str(network), "--names", str(folder / "net.names"), "-o", str(folder / "design")]
    assert main([*command, "--board", "zcu104", *STREAMING, *options]) == 0
    return folder / "design"


def exact(design: Path, picture: Path) -> FloatArray:
    """Return the host's float softmax of the golden model's last sums."""
    network = from_npz((design / "network.npz").read_bytes(), "network.npz")
    index = next(i for i, node in enumerate(network.nodes) if node.name == "dense1")
    sums = run_integer(network, systolic.open(design).pixels(picture))[index]
    assert sums is not None
    return softmax_of_positions(dequantise(sums, network.nodes[index].type)).ravel()


def simulated(design: Path, picture: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Return the JSON of ``systolic simulate`` with the golden program."""
    capsys.readouterr()
    assert main(["simulate", str(design), "--picture", str(picture), "--golden", "--json", "-"]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


def told_of(design: Path, picture: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """Return the classes and probabilities that the executed design reports."""
    capsys.readouterr()
    assert main(["run", str(design), str(picture), "--json", "-"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["mismatches"] == 0
    classes: list[dict[str, Any]] = answer["classes"]
    return classes


def head_of(design: Path) -> tuple[str, int]:
    """Return the kind and the channels of the only head in the manifest."""
    (head,) = manifest_fields(design)["heads"]
    return head["kind"], Head.from_json(head).channels


def check_shares(classes: list[dict[str, Any]], expected: FloatArray) -> None:
    """Check the best label, the order and the probabilities against the host's softmax, within the precision of 8
    bits."""
    assert [each["label"] for each in classes[:1]] == [NAMES[int(np.argmax(expected))]]
    for each in classes:
        share = float(expected[NAMES.index(each["label"])])
        assert abs(each["probability"] - min(share, 255 / 256)) <= BOUND + 5e-5  # four digits are reported
    order = [expected[NAMES.index(each["label"])] for each in classes]
    assert all(later <= earlier + 1 / 256 for earlier, later in pairwise(order))


@pytest.mark.engine
def test_softmax_of_float_classifier_gives_probabilities(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    design, picture = generated(classifier(tmp_path), "--softmax", "stable"), sample_pictures()[0]
    assert head_of(design) == ("probabilities", CLASSES)
    told = simulated(design, picture, capsys)
    assert (told["mismatches"], told["golden_program"]["agrees"]) == (0, True)
    classes, expected = told_of(design, picture, capsys), exact(design, picture)
    assert len(classes) == 5
    check_shares(classes, expected)
    assert 0.1 < classes[0]["probability"] < 1


@pytest.mark.engine
@pytest.mark.parametrize("method", METHODS)
def test_softmax_of_real_pictures_matches_the_host(
    method: str, shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    design = generated(trained(tmp_path, 8), "--softmax", method)
    seen = set()
    for picture in sorted((shared / "data/pictures").iterdir())[:4]:
        told = simulated(design, picture, capsys)
        assert (told["mismatches"], told["golden_program"]["agrees"]) == (0, True)
        classes, expected = told_of(design, picture, capsys), exact(design, picture)
        with open_detector(design) as detector:
            scores = detector.detect(picture).scores
        assert [score.label for score in scores] == [each["label"] for each in classes]
        assert [round(score.probability or 0.0, 4) for score in scores] == [each["probability"] for each in classes]
        if method == "stable":
            check_shares(classes, expected)
        assert classes[0]["label"] == NAMES[int(np.argmax(expected))]
        if method == "argmax":
            assert [each["probability"] for each in classes] == [round(255 / 256, 4), 0, 0, 0, 0]
        seen.add(classes[0]["label"])
    assert len(seen) > 1, "the pictures must have several classes"


@pytest.mark.engine
@pytest.mark.parametrize("method", METHODS)
def test_softmax_takes_the_modelled_cycles(method: str, tmp_path: Path) -> None:
    design = systolic.open(generated(trained(tmp_path, 8), "--softmax", method))
    report = design.trace(sample_pictures()[0]).report()
    (block,) = (layer for layer in report.layers if layer.name == "softmax1")
    assert block.cycles == block.modelled_cycles


@pytest.mark.engine
def test_softmax_none_is_computed_by_the_host(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Expect the same as without the option: all sums are outputs, and the pipeline has no softmax block."""
    network, picture = trained(tmp_path, 8), sample_pictures()[0]
    design = generated(network, "--softmax", "none")
    files = {path.name: path.read_bytes() for path in design.rglob("*") if path.is_file() and path.parent.name == "src"}
    assert manifest_fields(design)["heads"] == []
    assert b"softmax" not in files["top.cpp"].lower() if "top.cpp" in files else True
    shares, expected = told_of(design, picture, capsys), exact(design, picture)
    assert [each["label"] for each in shares] == [NAMES[int(i)] for i in np.argsort(-expected, kind="stable")[:5]]
    assert [each["probability"] for each in shares] == [round(float(p), 4) for p in -np.sort(-expected)[:5]]


@pytest.mark.engine
def test_softmax_with_top_k_gives_probabilities_of_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    design, picture = generated(trained(tmp_path, 8, chosen=True), "--softmax", "stable"), sample_pictures()[0]
    assert head_of(design) == ("labels-and-probabilities", 6)
    classes = told_of(design, picture, capsys)
    assert [{*each} for each in classes] == [{"label", "probability"}] * 3
    check_shares(classes, exact(design, picture))


def test_npz_keeps_the_softmax(tmp_path: Path) -> None:
    for method in METHODS:
        model = with_softmax(systolic.load(trained(tmp_path, 8)), method)
        assert model.quantized is not None
        again = from_npz(to_npz(model.quantized))
        op, stored = model.quantized.nodes[-1].op, again.nodes[-1].op
        assert isinstance(op, QSoftmax)
        assert isinstance(stored, QSoftmax)
        assert (stored.method, again.nodes[-1].type) == (method, model.quantized.nodes[-1].type)
        assert (op.table is None) == (stored.table is None) == (method == "argmax")
        if op.table is not None and stored.table is not None:
            np.testing.assert_array_equal(op.table.values, stored.table.values)


def test_with_softmax_replaces_the_method(tmp_path: Path) -> None:
    first = with_softmax(systolic.load(trained(tmp_path, 8)), "argmax")
    again = with_softmax(first, "stable")
    assert again.network.nodes[-1].op == IntegerSoftmax("stable")
    assert again.quantized is not None
    op = again.quantized.nodes[-1].op
    assert isinstance(op, QSoftmax)
    assert op.method == "stable"
    assert with_softmax(again, "none") is again


def test_export_of_stable_softmax_is_a_float_softmax(tmp_path: Path) -> None:
    """Export the stable method, whose shares equal a float softmax within rounding. The other methods have no
    operator."""
    model = systolic.load(trained(tmp_path, 8))
    stable, latency = (with_softmax(model, method).quantized for method in ("stable", "latency"))
    assert stable is not None
    assert latency is not None
    (tmp_path / "again.onnx").write_bytes(to_onnx(stable))
    assert systolic.load(tmp_path / "again.onnx").network.nodes[-1].op == Softmax()
    with raises(UnsupportedError, subject="the export of 'softmax1' (net.onnx: Softmax '/Softmax_17') as qonnx"):
        to_onnx(latency)


def test_evaluation_uses_the_shares_of_the_integer_softmax(tmp_path: Path) -> None:
    """Expect the golden model's shares as probabilities, without another softmax."""
    model = with_softmax(systolic.load(trained(tmp_path, 8)), "stable")
    assert model.quantized is not None
    subject, picture = Subject(model.network, model.quantized, "plain", 0.45), sample_pictures()[0]
    frame = compute(subject, picture)
    pixels, _ = network_input(load_frame(picture), (3, SIDE, SIDE), "plain")
    shares = run_integer(model.quantized, pixels)[-1]
    assert shares is not None
    order = np.argsort(-shares.ravel().astype(int), kind="stable")[:5]
    told = [(score.index, score.probability) for score in frame.integers.scores]
    assert told == [(int(index), float(shares.ravel()[index] / 256)) for index in order]
    assert sum(score.probability or 0.0 for score in frame.floats.scores) > 0.5


def test_unsupported_softmax_is_refused_with_a_remedy(tmp_path: Path) -> None:
    sums = systolic.load(trained(tmp_path, None))
    with raises(RangeError, what="the bits that a softmax by stable looks up", got=16, high=8):
        systolic.design(sums, "zcu104", "streaming", softmax="stable")
    assert with_softmax(sums, "argmax").quantized is not None
    with raises(UnsupportedError, subject="--softmax legacy", remedy="take --softmax stable"):
        systolic.design(sums, "zcu104", "streaming", softmax="legacy")
    with raises(ChoiceError, what="--softmax", got="exact", choices=("none", "stable", "latency", "argmax")):
        systolic.design(sums, "zcu104", "streaming", softmax="exact")
    with raises(UnknownKeyError, keys=["softmax"], where="the options of the systolic style") as caught:
        systolic.design(sums, "zcu104", softmax="stable")
    assert "neither a divider nor a pass over channels" in caught.value.remedy
    with raises(MissingValueError, what="a softmax", where="ultranet", remedy="leave out --softmax"):
        systolic.design(systolic.load("ultranet", seed=1), "zcu104", "streaming", softmax="stable")


def test_grouped_softmax_in_the_pipeline_is_refused(tmp_path: Path) -> None:
    model = systolic.load(trained(tmp_path, 8))
    *nodes, last = model.network.nodes
    grouped = Node(last.name, Softmax(2), last.inputs, last.shape, last.source)
    parts = Model(type(model.network)("net", (*nodes, grouped)), "plain", {})
    with raises(UnsupportedError, subject="a softmax over 2 groups of 10×1×1"):
        with_softmax(parts, "stable")


def test_softmax_option_works_in_fold_and_is_refused_for_an_array(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = trained(tmp_path, 8)
    assert main(["generate", str(network), "-o", str(tmp_path / "d"), "--softmax", "stable"]) == 2
    assert "neither a divider nor a pass over channels" in capsys.readouterr().err
    folded = ["fold", str(network), "--folding", "greedy", "--softmax", "stable", "--save", str(tmp_path / "folding")]
    assert main(folded) == 0
    assert "softmax1" in (tmp_path / "folding").read_text()
