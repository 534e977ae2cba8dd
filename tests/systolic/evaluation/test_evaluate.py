"""``systolic evaluate`` on pictures drawn by the tests, with a trained network, a classifier and a design."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from boards.errors import ConflictError, FileAccessError, InvalidValueError, RangeError, SystolicError
from systolic.cli.commands import evaluate
from systolic.evaluation.fidelity import Tried
from tests.support.cases import cases
from tests.support.command_line import call, refused
from tools.demo.objects import LABELS
from tools.demo.scenes import draw_scene

WIDTH, HEIGHT = 200, 160

CLASSIFIER = """[net]\nwidth=16\nheight=12\nchannels=3
[convolutional]\nfilters=8\nsize=3\npad=1\nstride=1\nactivation=leaky\nbatch_normalize=1
[avgpool]
[convolutional]\nfilters=3\nsize=1\nactivation=linear
[softmax]
"""


def draw(folder: Path, count: int) -> Path:
    """Draw ``count`` scenes of the objects that ``shapes`` detects, and return their folder in YOLO's layout."""
    (folder / "images").mkdir(parents=True)
    (folder / "labels").mkdir()
    for number in range(count):
        scene = draw_scene(7_000_000 + number, WIDTH, HEIGHT)
        Image.fromarray(scene.picture).save(folder / f"images/{number}.png")
        lines = [
            f"{int(label)} {(x0 + x1) / 2 / WIDTH} {(y0 + y1) / 2 / HEIGHT} {(x1 - x0) / WIDTH} {(y1 - y0) / HEIGHT}\n"
            for label, x0, y0, x1, y1 in scene.truths
        ]
        (folder / f"labels/{number}.txt").write_text("".join(lines))
    return folder


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten scenes: enough for several worker processes to start. Tests only read this folder."""
    return draw(tmp_path_factory.mktemp("scenes"), 10)


def test_evaluate_of_a_detector_reports_both_forms_and_their_agreement(scenes: Path, tmp_path: Path) -> None:
    worst = tmp_path / "worst.png"
    done = call("evaluate", "shapes", "--data", scenes, "--worst", worst, "--json", "-", "--workers", "1")
    assert done.code == 0
    values = done.json
    assert (values["pictures"], values["bits"], values["layout"]) == (10, 8, "darknet / YOLO")
    for form in ("float", "integer"):
        assert values[form]["map50"] > 0.9
        assert 0.4 < values[form]["map50_95"] < values[form]["map50"]
        assert values[form]["recall"] > 0.9
        assert set(values[form]["by_class"]) <= set(LABELS)
    agreed = values["agreement"]
    assert agreed["matched"] > 15
    assert agreed["missed"] + agreed["added"] <= 2
    assert 0.9 < agreed["mean_iou"] < 1
    assert all(25 < ratio < 50 for ratio in values["head_sqnr_db"].values())
    assert Image.open(worst).width > 3 * 480


@pytest.mark.engine
def test_evaluate_with_two_workers_gives_the_same_values(scenes: Path) -> None:
    one, two = (call("evaluate", "shapes", "--data", scenes, "--json", "-", "--workers", n).json for n in (1, 2))
    assert one == two


@pytest.mark.engine
def test_evaluate_at_four_bits_warns_of_the_loss(scenes: Path) -> None:
    done = call("evaluate", "shapes", "--data", scenes, "--bits", "4", "--workers", "1")
    assert done.code == 0
    assert "mAP@0.5" in done.out
    assert "boxes matched" in done.out
    assert "the integers lose" in done.error
    assert f"points of the float network; {Tried(bits=4).advice}\n" in done.error


def test_evaluate_without_labels_compares_floats_and_integers(scenes: Path, tmp_path: Path) -> None:
    done = call("evaluate", "shapes", "--data", scenes / "images", "--pictures", "3", "--json", "-", "--workers", "1")
    assert done.json["labelled"]  # the folder labels is next to the folder images
    samples = Path(__file__).resolve().parents[3] / "cnn/models/shapes/samples"
    saved = tmp_path / "values.json"
    text = call("evaluate", "shapes", "--data", samples, "--json", saved, "--pictures", "2").out
    values = json.loads(saved.read_text())
    assert (values["pictures"], values["labelled"], values["float"], values["integer"]) == (2, False, None, None)
    assert values["agreement"]["matched"] >= 4
    assert values["agreement"]["missed"] <= 1
    assert "no labels: floats and integers are compared with each other" in text


@pytest.mark.engine
def test_evaluate_of_a_design_executes_it(tiny_design: Path, scenes: Path) -> None:
    pictures = scenes / "images"
    done = call("evaluate", tiny_design, "--data", pictures.parent, "--executed", "2", "--pictures", "3", "--json", "-")
    # The six labelled classes do not fit the design's three classes, which have no names.
    refused(done, RangeError, got=5, low=0, high=2)
    lone = scenes.parent / "lone"
    lone.mkdir(exist_ok=True)
    for number in range(3):
        (lone / f"{number}.png").write_bytes((pictures / f"{number}.png").read_bytes())
    done = call("evaluate", tiny_design, "--data", lone, "--executed", "2", "--threshold", "0.05", "--json", "-")
    executed = done.json["executed"]
    assert (executed["pictures"], executed["mismatches"]) == (2, 0)
    assert executed["agreement"]["matched"] > 0
    assert (executed["agreement"]["missed"], executed["agreement"]["added"]) == (0, 0)
    assert executed["agreement"]["mean_iou"] == pytest.approx(1)
    assert "2 pictures" in call("evaluate", tiny_design, "--data", lone, "--executed", "2").out


def test_evaluate_of_a_classifier_reports_top1(tmp_path: Path) -> None:
    (tmp_path / "net.cfg").write_text(CLASSIFIER)
    random = np.random.default_rng(3)
    for number in range(3):
        folder = tmp_path / "data" / str(number)
        folder.mkdir(parents=True)
        for picture in range(2):
            Image.fromarray(random.integers(0, 256, (20, 20, 3), np.uint8)).save(folder / f"{picture}.png")
    arguments = ("evaluate", tmp_path / "net.cfg", "--seed", "1", "--data", tmp_path / "data")
    values = call(*arguments, "--json", "-").json
    assert values["layout"] == "classification folders"
    assert values["float"]["top5"] is values["integer"]["top5"] is None
    assert 0 < values["float"]["top1"] < 1
    assert values["agreement"]["matched"] + values["agreement"]["missed"] == 6
    assert set(values["float"]["by_class"]) == {"class 0", "class 1", "class 2"}
    assert "top-1" in call(*arguments, "--worst", tmp_path / "worst.png").out
    assert (tmp_path / "worst.png").is_file()


def test_evaluate_of_a_one_object_head_reports_the_mean_iou(tmp_path: Path) -> None:
    """Evaluate UltraNet, which was trained with integers, on the contest's layout: an XML file next to each picture."""
    for number in range(2):
        Image.fromarray(np.full((64, 128, 3), 90 * number, np.uint8)).save(tmp_path / f"{number}.jpg")
        box = "<xmin>8</xmin><ymin>8</ymin><xmax>60</xmax><ymax>50</ymax>"
        text = f"<annotation><object><name>boat</name><bndbox>{box}</bndbox></object></annotation>"
        (tmp_path / f"{number}.xml").write_text(text)
    values = call("evaluate", "ultranet", "--seed", "1", "--size", "64x32", "--data", tmp_path, "--json", "-").json
    assert (values["layout"], values["bits"]) == ("DAC-SDC", 4)
    assert values["bits_by_layer"]["conv4"] == 4
    assert 0 <= values["integer"]["mean_iou"] <= 1
    assert values["integer"]["mean_iou"] is not None


@cases(
    "arguments, expected, fields",
    [
        (("--data", "nowhere"), FileAccessError, {"path": "nowhere"}),
        (("--data", ".", "--conf", 2), RangeError, {"what": "--conf", "got": 2.0, "low": 0, "high": 1}),
        (("--data", ".", "--workers", 0), RangeError, {"what": "--workers", "got": 0, "low": 1}),
        (("--data", ".", "--executed", 1), InvalidValueError, {"got": "shapes"}),
        (("--data", ".", "--worst", "x.y"), FileAccessError, {"path": "x.y"}),
    ],
)
def test_evaluate_with_a_wrong_option_is_refused(
    arguments: tuple[object, ...],
    expected: type[SystolicError],
    fields: dict[str, object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(call("evaluate", "shapes", *arguments), expected, **fields)


def test_evaluate_refuses_a_wrong_label_before_it_calibrates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def calibrated(*_arguments: object) -> None:
        raise AssertionError("the network was calibrated before the labels were read")

    monkeypatch.setattr(evaluate, "quantise_model", calibrated)
    label = draw(tmp_path, 1) / "labels/0.txt"
    label.write_text("99 0.5 0.5 0.1 0.1\n")
    refused(call("evaluate", "shapes", "--data", tmp_path), RangeError, got=99, low=0, high=5, where=f"{label}:1")


def test_evaluate_of_a_design_refuses_bits(tiny_design: Path, scenes: Path) -> None:
    done = call("evaluate", tiny_design, "--data", scenes, "--bits", "4")
    refused(done, ConflictError, subjects=(str(tiny_design), "--bits"))


def test_evaluate_names_a_broken_picture(scenes: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes((scenes / "images/0.png").read_bytes()[:500])
    refused(call("evaluate", "shapes", "--data", tmp_path), r"broken\.png")
