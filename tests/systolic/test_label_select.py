"""Test classifiers that end in TopK or ArgMax, from an ONNX file to labels chosen by a pipeline or by the host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import systolic
from cnn.integer_model import run_integer
from cnn.quantized import QuantizedNetwork
from cnn.stored.quantized_file import from_npz
from host import open_detector
from host.vision.heads.head import Head
from systolic.cli.main import main
from systolic.model import sample_pictures
from tests.support.host.manifests import manifest_fields
from tests.support.labels import CHOSEN, CLASSES, NAMES, file_of, sums_of_classes
from tests.support.onnx.trained import Trained

pytestmark = pytest.mark.engine

STYLES = {
    "systolic": [],
    "streaming": ["--style", "streaming", "--folding", "greedy", "--fps", "2000"],
}


def classifier(ending: str) -> Any:
    """Return an ONNX model with the given ending.

    The endings are "labels", "both" (labels and values), "softmax" (both, after a softmax), "softmax labels" and
    "argmax".
    """
    writer, last = sums_of_classes()
    if ending == "argmax":
        return file_of(writer, writer.put("ArgMax", [last], axis=1))
    last = writer.put("Softmax", [last], axis=1) if ending.startswith("softmax") else last
    values = writer.put("TopK", [last, writer.constant([CHOSEN], np.int64)], outputs=2, axis=1)
    labels = f"{values}_"
    return file_of(writer, *([labels] if ending in ("labels", "softmax labels") else [values, labels]))


def generated(ending: str, style: str, folder: Path) -> Path:
    """Generate a design of a classifier with the given ending and return its folder."""
    onnx.save(classifier(ending), folder / "net.onnx")
    (folder / "net.names").write_text("\n".join(NAMES))
    command = ["generate", str(folder / "net.onnx"), "--names", str(folder / "net.names"), "-o", str(folder / "design")]
    assert main([*command, "--board", "zcu104", *STYLES[style]]) == 0
    return folder / "design"


def integers_of(design: Path) -> QuantizedNetwork:
    """Return the quantised network that a design stores."""
    return from_npz((design / "network.npz").read_bytes(), "network.npz")


def expected_labels(design: Path, picture: Path, k: int) -> list[int]:
    """Return the labels of the k greatest last sums of the golden model, in numpy's stable order."""
    network = integers_of(design)
    index = next(i for i, node in enumerate(network.nodes) if node.name == "dense1")
    sums = run_integer(network, systolic.open(design).pixels(picture))[index]
    assert sums is not None
    return [int(label) for label in np.argsort(-sums.astype(np.int64).ravel(), kind="stable")[:k]]


def simulated(design: Path, picture: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Return the JSON of ``systolic simulate`` with the golden program."""
    capsys.readouterr()
    assert main(["simulate", str(design), "--picture", str(picture), "--golden", "--json", "-"]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


def head_of(design: Path) -> tuple[str, int]:
    """Return the kind and the channels of the only head in the manifest."""
    (head,) = manifest_fields(design)["heads"]
    return head["kind"], Head.from_json(head).channels


@pytest.mark.parametrize(
    ("ending", "style", "head"),
    [
        ("labels", "systolic", ("classes", CLASSES)),
        ("labels", "streaming", ("labels", CHOSEN)),
        ("both", "streaming", ("labels-and-values", 2 * CHOSEN)),
        ("softmax labels", "streaming", ("labels", CHOSEN)),
        ("softmax", "streaming", ("classes", CLASSES)),
    ],
)
def test_run_reports_labels_of_pipeline_or_host(
    ending: str, style: str, head: tuple[str, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Expect labels chosen by the pipeline. The host chooses them for an array, and for a pipeline whose softmax is an
    output."""
    design, picture = generated(ending, style, tmp_path), sample_pictures()[0]
    assert head_of(design) == head
    assert simulated(design, picture, capsys)["mismatches"] == 0
    assert main(["run", str(design), str(picture), "-o", str(tmp_path / "answer.png"), "--json", "-"]) == 0
    answer = json.loads(capsys.readouterr().out)["classes"]
    assert [each["label"] for each in answer] == [NAMES[label] for label in expected_labels(design, picture, CHOSEN)]
    assert {*answer[0]} == {"label"} | {"classes": {"probability"}, "labels-and-values": {"value"}}.get(head[0], set())
    assert main(["run", str(design), str(picture)]) == 0
    assert capsys.readouterr().out.count("kind ") == CHOSEN


def test_argmax_per_position_gives_a_segmentation(tmp_path: Path) -> None:
    """Use ArgMax over the channels of a map, for which both styles must give the same classes."""
    writer, random = Trained(), np.random.default_rng(5)
    source = writer.quant("picture", 8, 1 / 255, signed=0)
    kernel = writer.quant(writer.constant(random.normal(0, 0.3, (4, 3, 3, 3))), 4, 0.08, narrow=1)
    last = writer.put("Conv", [source, kernel], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    onnx.save(file_of(writer, writer.put("ArgMax", [last], axis=1, keepdims=0)), tmp_path / "net.onnx")
    network, classes = systolic.load(tmp_path / "net.onnx"), []
    searches: dict[str, dict[str, Any]] = {"systolic": {"array": "4x8x8"}, "streaming": {"search": "greedy"}}
    for style, options in searches.items():
        answer = systolic.design(network, "zcu104", style, **options).run(sample_pictures()[0])
        assert answer.mismatches == 0
        assert answer.result.segmentation is not None
        classes.append(answer.result.segmentation.classes)
    np.testing.assert_array_equal(classes[0], classes[1])
    assert len(np.unique(classes[0])) > 1


def test_label_select_takes_the_modelled_cycles(tmp_path: Path) -> None:
    design = systolic.open(generated("both", "streaming", tmp_path))
    report = design.trace(sample_pictures()[0]).report()
    (select,) = (layer for layer in report.layers if layer.name == "values1")
    assert select.cycles == select.modelled_cycles
    assert report.cycles_per_frame == max(layer.modelled_cycles for layer in report.layers)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("ending", ["both", "argmax"])
def test_labels_of_real_pictures_match_golden_model(
    ending: str, style: str, shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Check every executed value against the golden model, and the labels chosen by the pipeline or by the host."""
    design = generated(ending, style, tmp_path)
    pictures = sorted((shared / "data/pictures").iterdir())[:4]
    k = CHOSEN if ending == "both" else 1
    seen = set()
    for picture in pictures:
        told = simulated(design, picture, capsys)
        assert (told["mismatches"], told["golden_program"]["agrees"]) == (0, True)
        assert main(["run", str(design), str(picture), "--json", "-"]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert answer["mismatches"] == 0
        labels = expected_labels(design, picture, k)
        assert [each["label"] for each in answer["classes"]] == [NAMES[label] for label in labels]
        with open_detector(design) as detector:
            assert [score.index for score in detector.detect(picture).scores] == labels
        seen.add(tuple(labels))
    assert len(seen) > 1, "the pictures must have several classes"
