"""The figures, texts and sheets of an evaluation whose answers are constants: each figure was computed by hand."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from boards.errors import RangeError
from cnn.float_model import run_float
from cnn.integer_model import dequantise, run_integer
from cnn.maps import Padding, Shape
from cnn.ops import HEADS, Convolution
from cnn.quantisation.calibration import calibrate, observe
from cnn.quantisation.fidelity import heads
from cnn.quantisation.quantise import quantise
from cnn.quantisation.zero_points import quantise_with_zero_points
from host.vision.detection import Detection, Score
from systolic.evaluation import evaluate, report
from systolic.evaluation.evaluate import EvaluationOptions, read_pictures
from systolic.evaluation.fidelity import Tried
from systolic.evaluation.frames import Frame, ImageResult, Subject, compute, compute_all
from systolic.evaluation.layouts.labelled import LabelledPicture, LabelledSet, Truth
from systolic.evaluation.quality import classification_quality, detection_quality
from systolic.evaluation.report import Evaluation, Executed
from systolic.model import Calibration, Model, sample_pictures
from tests.support import networks
from tests.support.cases import cases
from tests.support.errors import raises

BOX = (0.0, 0.0, 10.0, 10.0)
HALF = (0.0, 0.0, 10.0, 6.0)
AWAY = (50.0, 50.0, 60.0, 60.0)


def seen(*boxes: tuple[float, tuple[float, float, float, float]]) -> ImageResult:
    return ImageResult(tuple(Detection("boat", probability, box) for probability, box in boxes))


def classes(*order: int) -> ImageResult:
    """Return an answer with the three classes numbered ``order``, the most probable first."""
    names = ("red", "green", "blue")
    return ImageResult(scores=tuple(Score(names[i], 0.5 - 0.1 * place, i) for place, i in enumerate(order)))


def evaluation(
    answers: list[tuple[ImageResult, ImageResult]],
    pictures: list[LabelledPicture],
    executed: Executed | None = None,
    classifier: bool = False,
    ratios: Any = (("head", 30.5),),
) -> Evaluation:
    """Return the evaluation of ``answers``, each by the float network and the integers, to ``pictures``.

    The subject is a minimal substitute, because the report reads only the network's name, labels and kind.
    """
    subject: Any = SimpleNamespace(
        network=SimpleNamespace(name="net", labels=("boat",)),
        quantised=SimpleNamespace(nodes=()),
        is_classifier=classifier,
        sees_one_object=False,
        classes=7 if classifier else 1,
        tried=Tried(),
    )
    frames = tuple(Frame(20, 20, exact, approximate, (1.0,), (0.1,)) for exact, approximate in answers)
    return Evaluation(subject, LabelledSet("lists", tuple(pictures), ("a note",)), frames, 0.24, dict(ratios), executed)


PLACE = Path("picture.png")


def row(text: str, name: str) -> list[float]:
    """Return the numbers that follow ``name`` in the line of the report that starts with it."""
    (line,) = (line for line in text.splitlines() if line.split()[:1] == [name])
    return [float(cell) for cell in line.split()[1:]]


BOAT = LabelledPicture(PLACE, (Truth("boat", BOX),))


# --- reports ---------------------------------------------------------------------------------------------------------


def test_evaluation_of_boxes_reports_quality_and_agreement() -> None:
    """Report one box with an IoU of 0.6, one that the integers miss and one that they add; precision is 0.5."""
    answers = [(seen((0.9, BOX), (0.5, AWAY)), seen((0.9, HALF))), (seen(), seen((0.3, AWAY), (0.2, BOX)))]
    whole = evaluation(answers, [BOAT, LabelledPicture(PLACE, ())])
    values = whole.values()
    assert values["agreement"] == {"matched": 1, "missed": 1, "added": 1, "mean_iou": 0.6}
    assert (values["network"], values["layout"], values["pictures"], values["labelled"]) == ("net", "lists", 2, True)
    assert (values["bits"], values["bits_by_layer"], values["threshold"], values["notes"]) == (8, {}, 0.24, ["a note"])
    assert "executed" not in values
    assert values["float"]["precision"] == values["integer"]["precision"] == 0.5
    assert (values["float"]["mean_iou"], values["integer"]["mean_iou"]) == (1.0, 0.6)
    assert (values["float"]["map50_95"], values["integer"]["map50_95"]) == (1.0, 0.3)
    assert whole.losses == {
        "map50": 0.0,
        "map50_95": pytest.approx(70),
        "precision": 0.0,
        "recall": 0.0,
        "mean_iou": pytest.approx(40),
    }
    lost = "the integers lose mAP@0.5:0.95 70.00 points, mean IoU 40.00 points of the float network"
    assert whole.warnings == ["a note", f"{lost}; {Tried().advice}"]
    vars(whole.subject).update(tried=Tried(trained=True))
    assert whole.warnings[1] == f"{lost}; {Tried(trained=True).advice}"
    text = whole.text()
    assert text.startswith("net: 2 pictures (lists)\n\n")
    assert "integers compared with floats: 1 boxes matched, 1 missed, 1 added, mean IoU 0.600; " in text
    assert text.endswith("SQNR at the heads: head 30.5 dB")
    assert row(text, "mAP@0.5:0.95") == pytest.approx([100.0, 30.0, -70.0], abs=0.01)
    assert row(text, "boat") == pytest.approx([1, 100.0, 100.0], abs=0.01)


def test_evaluation_without_labels_has_no_quality() -> None:
    whole = evaluation([(seen((0.9, BOX)), seen((0.9, BOX)))], [LabelledPicture(PLACE)])
    assert whole.values()["float"] is whole.values()["integer"] is None
    assert whole.losses == {}
    assert whole.warnings[0] == "a note"
    assert not any("lose" in warning for warning in whole.warnings)
    assert "no labels: floats and integers are compared with each other" in whole.text()


def words(tried: Tried) -> set[str]:
    """Return the options and commands that an advice names."""
    return set(re.findall(r"--[a-z-]+(?: \d+)?|systolic [a-z]+", tried.advice))


def test_advice_names_only_options_that_were_not_tried() -> None:
    assert words(Tried()) == {"--calibrate", "--bits 16", "systolic train"}
    assert words(Tried(calibrated=True)) == {"--bits 16", "systolic train"}
    assert words(Tried(bits=4)) == {"--calibrate", "--reconstruct", "--zero-points", "--bits 8", "systolic train"}
    assert words(Tried(bits=4, calibrated=True, reconstruct=True)) == {"--zero-points", "--bits 8", "systolic train"}
    assert words(Tried(bits=4, reconstruct=True, zero_points=True, calibrated=True)) == {"--bits 8", "systolic train"}
    assert words(Tried(mixed=True, calibrated=True)) == {"--reconstruct", "--bits 8", "--mixed", "systolic train"}
    assert words(Tried(bits=16, calibrated=True)) == set()
    assert words(Tried(random=True)) == {"--seed", "--weights"}
    assert words(Tried(trained=True)) == set()
    assert words(Tried(bits=4, generated=True)) == {"--bits", "systolic train"}


def test_tried_follows_the_calibration() -> None:
    floats = subject().network
    quantised = subject().quantised
    pixels = np.zeros((6, 8, 3), np.uint8)
    model = Model(floats, "plain", {})
    assert Tried.of(model, quantised, Calibration(sample_pictures())) == Tried(bits=8)
    own = Calibration((pixels,), reconstruct=True, mixed=0.5)
    assert Tried.of(model, quantised, own) == Tried(bits=8, calibrated=True, reconstruct=True, mixed=True)
    trained = Model(floats, "plain", {}, quantised, random=True)
    assert Tried.of(trained, quantised, Calibration(sample_pictures(), zero_points=True)) == Tried(
        trained=True, random=True, bits=8, zero_points=True
    )


def test_evaluation_warns_of_a_low_sqnr_only_without_labels() -> None:
    """Warn of a low SQNR only without labels and without trained integers.

    Labels show directly whether boxes are wrong. Trained integers are the reference themselves, and their distance to
    the floats does not matter.
    """
    same = seen((0.9, BOX))
    low: Any = (("head", 3.0),)
    unlabelled = evaluation([(same, same)], [LabelledPicture(PLACE)], ratios=low)
    assert len(unlabelled.warnings) == 2
    assert len(evaluation([(same, same)], [BOAT], ratios=low).warnings) == 1
    vars(unlabelled.subject).update(tried=Tried(trained=True))
    assert unlabelled.warnings == ["a note"]


def test_evaluation_of_classes_reports_shares_of_pictures() -> None:
    answers = [(classes(0, 1, 2), classes(0, 2, 1)), (classes(1, 0, 2), classes(2, 1, 0)), (classes(2, 1, 0),) * 2]
    pictures = [LabelledPicture(PLACE, category=name) for name in ("red", "green", "red")]
    whole = evaluation(answers, pictures, classifier=True)
    assert whole.values()["agreement"] == {"matched": 2, "missed": 1, "added": 0, "mean_iou": None}
    assert whole.losses == {"top1": pytest.approx(100 / 3), "top5": 0.0}
    text = whole.text()
    assert "integers compared with floats: 2 the same class, 1 missed, 0 added; SQNR" in text
    assert row(text, "top-1") == pytest.approx([66.67, 33.33, -33.33], abs=0.01)
    assert row(text, "green") == pytest.approx([1, 100.0, 0.0], abs=0.01)
    assert row(text, "red") == pytest.approx([2, 50.0, 50.0], abs=0.01)


@cases("mismatches, verdict", [(0, "every bit equal"), (1234, "THE DESIGN IS NOT RIGHT")])
def test_evaluation_reports_mismatches_of_an_executed_design(mismatches: int, verdict: str) -> None:
    executed = Executed((seen((0.9, HALF)),), mismatches, "simulated")
    whole = evaluation([(seen((0.9, BOX)),) * 2] * 2, [BOAT, BOAT], executed)
    assert whole.text().endswith(
        f"executed on 1 pictures (simulated): {mismatches:,} integers differ from the golden model: {verdict}"
    )
    values = whole.values()["executed"]
    assert (values["label"], values["pictures"], values["mismatches"]) == ("simulated", 1, mismatches)
    assert values["agreement"] == {"matched": 1, "missed": 0, "added": 0, "mean_iou": 0.6}
    assert values["quality"]["map50_95"] == 0.3


def test_classification_quality_counts_the_fifth_class_in_top5() -> None:
    """Count the fifth of seven classes for top-5 but not the sixth; a class without a score ranks last."""
    names = tuple("abcdefg")
    answers = ImageResult(scores=tuple(Score(name, 0.5, i) for i, name in enumerate(names)))
    pictures = [LabelledPicture(PLACE, category=name) for name in ("a", "b", "e", "f", "z")]
    quality = classification_quality([answers] * 5, pictures, 7)
    assert [quality.top1, quality.top5] == pytest.approx([1 / 5, 3 / 5])
    assert quality.by_class["f"] == {"pictures": 1, "top1": 0.0, "top5": 0.0}
    assert quality.by_class["e"] == {"pictures": 1, "top1": 0.0, "top5": 1.0}


def test_classification_quality_of_one_label_limits_top5() -> None:
    """Count a class as wrong in top-5 if the network's output is a single label and the label is another."""
    answers = ImageResult(scores=(Score("a", None, 0),))
    quality = classification_quality([answers] * 2, [LabelledPicture(PLACE, category=name) for name in ("a", "b")], 9)
    assert (quality.top1, quality.top5) == (0.5, 0.5)


def test_evaluation_of_five_classes_has_no_top5() -> None:
    answers = [(classes(0, 1, 2), classes(0, 2, 1)), (classes(1, 0, 2), classes(2, 1, 0))]
    pictures = [LabelledPicture(PLACE, category=name) for name in ("red", "green")]
    whole = evaluation(answers, pictures, classifier=True)
    assert "top-5" in whole.text()
    vars(whole.subject).update(classes=5)
    whole = replace(whole)
    assert "top-5" not in whole.text()
    values = whole.values()["integer"]
    assert (values["top1"], values["top5"], values["by_class"]["red"]["top5"]) == (0.5, None, None)
    assert whole.losses == {"top1": 50.0}


def test_evaluation_rounds_losses_like_the_table() -> None:
    """Report a loss of 3 in 80 pictures as 3.75 points in the warning and in the table."""
    right, wrong = classes(0, 1, 2), classes(1, 0, 2)
    whole = evaluation(
        [(right, wrong)] * 3 + [(right, right)] * 77,
        [LabelledPicture(PLACE, category="red")] * 80,
        classifier=True,
    )
    assert any("top-1 3.75 points" in warning for warning in whole.warnings)
    assert row(whole.text(), "top-1") == [100.0, 96.25, -3.75]


def test_agreement_counts_a_different_class_as_missed() -> None:
    answers = [(classes(0, 1, 2), classes(0, 1, 2))] + [(classes(0, 1, 2), classes(1, 0, 2))] * 3
    pictures = [LabelledPicture(PLACE, category="red")] * 4
    agreed = evaluation(answers, pictures, classifier=True).agreement
    assert agreed == {"matched": 1, "missed": 3, "added": 0, "mean_iou": None}


def test_detection_quality_requires_an_iou_of_a_half() -> None:
    for height, right in ((5.2, 1.0), (4.8, 0.0)):
        quality = detection_quality([seen((0.9, (0.0, 0.0, 10.0, height)))], [BOAT], 0.24, False)
        assert (quality.precision.precision, quality.precision.recall) == (right, right)


def test_detection_quality_of_one_object_counts_the_most_probable_box() -> None:
    answers = [seen((0.9, HALF), (0.8, BOX)), seen(), seen((0.9, BOX))]
    pictures = [BOAT, BOAT, LabelledPicture(PLACE, ())]
    assert detection_quality(answers, pictures, 0.24, True).mean_iou == pytest.approx(0.3)  # of two with an object
    assert detection_quality(answers, pictures, 0.24, False).mean_iou == pytest.approx(0.6)


# --- frames ----------------------------------------------------------------------------------------------------------


SHAPE = Shape(3, 6, 8)


def subject(*kinds: str, filters: int = 7, whole: bool = False) -> Subject:
    """Return a subject with one convolution and heads of ``kinds`` that read it.

    Args:
        whole: The convolution's kernel covers the whole picture, so that its output is one pixel.
    """
    random = np.random.default_rng(4)
    op = networks.convolution(random, 3, filters)
    out = Shape(filters, SHAPE.height, SHAPE.width)
    if whole:
        weights = random.normal(0, 0.1, (filters, 3, SHAPE.height, SHAPE.width)).astype(np.float32)
        op = Convolution(weights, np.zeros(filters, np.float32), None, 1, Padding(), 1, "linear")
        out = Shape(filters, 1, 1)
    layers: list[Any] = [("conv", op, [0], out)]
    layers += [(kind, HEADS[kind](((2.0, 2.0),), 2, False), [1], out) for kind in kinds]
    floats = networks.network(SHAPE, *layers)
    return Subject(floats, quantise(floats, calibrate(floats, networks.pictures(SHAPE, 2), "max")), "plain", 0.45)


@cases(
    "kinds, filters, whole, classes, is_classifier, one_object",
    [
        (("region",), 7, False, 2, False, False),
        (("one-object",), 7, False, 2, False, True),
        (("yolo",), 7, False, 2, False, False),
        ((), 7, False, 0, False, False),
        ((), 5, True, 5, True, False),
        ((), 2, True, 2, True, False),
        ((), 1, True, 0, False, False),
        (("region",), 7, True, 2, False, False),
    ],
)
def test_subject_derives_its_kind_from_heads_and_outputs(
    kinds: tuple[str, ...], filters: int, whole: bool, classes: int, is_classifier: bool, one_object: bool
) -> None:
    ours = subject(*kinds, filters=filters, whole=whole)
    assert (ours.is_classifier, ours.classes, ours.sees_one_object) == (is_classifier, classes, one_object)
    assert [(nodes, head.kind) for nodes, head in ours.heads] == [((1,), kind) for kind in kinds]
    assert ours.outputs == heads(ours.quantised)


def test_compute_gives_boxes_and_energies_of_both_networks(tmp_path: Path) -> None:
    """Check the energies of a head against a sum over its values, and that boxes are clipped to the picture."""
    ours = subject("region")
    pixels = np.random.default_rng(9).integers(0, 256, (6, 8, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    frame = compute(ours, tmp_path / "a.png")
    picture = np.ascontiguousarray(pixels.transpose(2, 0, 1))
    exact = run_float(ours.network, picture.astype(np.float32) / np.float32(255))[1].astype(np.float64)
    array = run_integer(ours.quantised, picture)[1]
    assert array is not None
    approximate = dequantise(array, ours.quantised.nodes[1].type)
    assert (frame.width, frame.height) == (8, 6)
    assert list(frame.signal) == pytest.approx([sum(value * value for value in exact.ravel().tolist())])
    assert list(frame.noise) == pytest.approx([((exact - approximate) ** 2).sum()])
    assert 0 < frame.noise[0] < frame.signal[0] / 100
    for answers in (frame.floats, frame.integers):
        assert answers.detections
        for x0, y0, x1, y1 in (detection.box for detection in answers.detections):
            assert 0 <= x0 <= x1 <= 8
            assert 0 <= y0 <= y1 <= 6
    shown = frame.floats.above_threshold(0.24)
    assert shown == tuple(each for each in frame.floats.detections if each.probability > 0.24)
    edge = ImageResult((Detection("a", 0.24, BOX), Detection("a", 0.25, BOX)))
    assert [each.probability for each in edge.above_threshold(0.24)] == [0.25]
    told: list[int] = []
    assert compute_all(ours, [tmp_path / "a.png"] * 3, 4, told.append) == (frame,) * 3
    assert told == [1, 2, 3]


def test_compute_finds_the_outputs_of_a_network_with_inserted_nodes(tmp_path: Path) -> None:
    """Quantise with zero points, which insert a node after each leaky layer, so that the output has another index."""
    pixels = np.random.default_rng(9).integers(0, 256, (6, 8, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    random, out = np.random.default_rng(4), Shape(7, SHAPE.height, SHAPE.width)
    floats = networks.network(
        SHAPE,
        ("first", networks.convolution(random, 3, 8), [0], Shape(8, SHAPE.height, SHAPE.width)),
        ("last", networks.convolution(random, 8, 7, activation="linear"), [1], out),
        ("region", HEADS["region"](((2.0, 2.0),), 2, False), [2], out),
    )
    seen = observe(floats, networks.pictures(SHAPE, 2))
    ours = Subject(floats, quantise_with_zero_points(floats, seen, "max", 4), "plain", 0.45)
    assert (ours.outputs, heads(ours.quantised), ours.quantised_nodes[2]) == ((2,), (3,), 3)
    frame = compute(ours, tmp_path / "a.png")
    picture = np.ascontiguousarray(pixels.transpose(2, 0, 1))
    array = run_integer(ours.quantised, picture)[3]
    assert array is not None
    exact = run_float(floats, picture.astype(np.float32) / np.float32(255))[2].astype(np.float64)
    noise = ((exact - dequantise(array, ours.quantised.nodes[3].type)) ** 2).sum()
    assert list(frame.noise) == pytest.approx([noise])
    assert frame.integers.detections


def test_compute_gives_the_classes_of_both_networks(tmp_path: Path) -> None:
    ours = subject(filters=5, whole=True)
    pixels = np.random.default_rng(9).integers(0, 256, (6, 8, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    frame = compute(ours, tmp_path / "a.png")
    exact = run_float(ours.network, pixels.transpose(2, 0, 1).astype(np.float32) / np.float32(255))[1].ravel()
    order = sorted(range(5), key=lambda index: -exact[index])
    assert [score.index for score in frame.floats.scores] == order
    assert frame.floats.detections == ()
    assert len(frame.integers.scores) == 5


def test_subject_with_two_outputs_is_not_a_classifier() -> None:
    random = np.random.default_rng(4)
    weights = random.normal(0, 0.1, (5, 3, SHAPE.height, SHAPE.width)).astype(np.float32)
    op = Convolution(weights, np.zeros(5, np.float32), None, 1, Padding(), 1, "linear")
    out = Shape(5, 1, 1)
    floats = networks.network(SHAPE, ("one", op, [0], out), ("two", op, [0], out))
    two = Subject(floats, quantise(floats, calibrate(floats, networks.pictures(SHAPE, 2), "max")), "plain", 0.45)
    assert (two.outputs, two.is_classifier, two.classes) == ((1, 2), False, 0)


def test_detection_quality_counts_the_hundred_most_probable_boxes() -> None:
    """Check the limit of 100 boxes per picture, which COCO defines."""
    wrong = [(0.9 - 0.001 * i, AWAY) for i in range(99)]
    for others, recall in ((wrong, 1.0), ([*wrong, (0.5, AWAY)], 0.0)):
        quality = detection_quality([seen(*others, (0.4, BOX))], [BOAT], 0.24, False)
        assert quality.precision.recall == recall


def test_ratios_sum_energies_over_all_pictures() -> None:
    ours = subject("region")
    frames = [
        Frame(8, 6, ImageResult(), ImageResult(), (signal,), (noise,)) for signal, noise in ((600.0, 0.5), (400.0, 9.5))
    ]
    assert evaluate._ratios(ours, frames) == {"conv": pytest.approx(20.0)}
    exact = [Frame(8, 6, ImageResult(), ImageResult(), (600.0,), (0.0,))]
    assert evaluate._ratios(ours, exact) == {"conv": np.inf}


@cases(
    "limit, places",
    [(1, [0]), (2, [0, 6]), (3, [0, 3, 6]), (4, [0, 2, 4, 6]), (6, [0, 1, 2, 4, 5, 6]), (7, range(7)), (9, range(7))],
)
def test_read_pictures_with_a_limit_spreads_over_the_set(limit: int, places: Any, tmp_path: Path) -> None:
    for number in range(7):
        Image.new("RGB", (4, 4)).save(tmp_path / f"{number}.png")
    labelled = read_pictures(subject("region"), EvaluationOptions(tmp_path, limit=limit))
    assert [picture.path.stem for picture in labelled.pictures] == [str(place) for place in places]
    with raises(RangeError, what="--pictures", got=0, low=1):
        read_pictures(subject("region"), EvaluationOptions(tmp_path, limit=0))


def test_evaluate_reports_progress(tmp_path: Path) -> None:
    for number in range(4):
        Image.new("RGB", (4, 4)).save(tmp_path / f"{number}.png")
    told: list[str] = []
    ours, options = subject("region"), EvaluationOptions(tmp_path)
    whole = evaluate.evaluate(ours, read_pictures(ours, options), options, progress=told.append)
    assert told == [f"picture {n} of 4, {25 * n}%" for n in range(1, 5)]
    assert (len(whole.frames), whole.executed, whole.threshold) == (4, None, 0.24)


# --- the worst pictures ----------------------------------------------------------------------------------------------


def test_difference_ranks_unmatched_boxes_first() -> None:
    """Rank pictures by their unmatched boxes, then by 1 - IoU of the matched boxes.

    Pictures with classes rank by whether the most probable class differs, then by the difference of its probability.
    """
    same, nearly, missed = seen((0.9, BOX)), seen((0.9, HALF)), seen((0.2, BOX))
    whole = evaluation([(same, same), (same, nearly), (same, missed), (missed, missed)], [BOAT] * 4)
    differences = [report._difference(whole, place) for place in range(4)]
    assert differences == [(0.0, 0.0), (0.0, pytest.approx(0.4)), (1.0, 0.0), (0.0, 0.0)]
    answers = [(classes(0, 1, 2), classes(0, 2, 1)), (classes(1, 0, 2), classes(2, 1, 0))]
    further = ImageResult(scores=(Score("red", 0.75, 0),))
    whole = evaluation([*answers, (further, classes(0, 1, 2))], [LabelledPicture(PLACE, category="red")] * 3)
    assert [report._difference(whole, place) for place in range(3)] == [(0.0, 0.0), (1.0, 0.0), (0.0, 0.25)]


def test_save_worst_draws_the_worst_pictures_first(tmp_path: Path) -> None:
    """Draw the sheet of five pictures of 20 × 10 pixels, each in its own grey.

    The first picture has no error, and the sheet leaves it out.
    """
    pictures, answers = [], []
    for number in range(5):
        path = tmp_path / f"{number}.png"
        Image.new("RGB", (20, 10), (40 * number,) * 3).save(path)
        pictures.append(LabelledPicture(path, ()))
        answers.append((seen(*((0.9, (18.0 - 4 * i, 8.0, 19.0 - 4 * i, 9.0)) for i in range(number))), seen()))
    report.save_worst(evaluation(answers, pictures), tmp_path / "sheet.png")
    sheet = np.asarray(Image.open(tmp_path / "sheet.png"))
    assert sheet.shape == (24 + 4 * (240 + 6), 3 * (480 + 6), 3)
    for row, grey in enumerate((160, 120, 80, 40)):
        top = 24 + row * 246
        for column in range(3):
            assert sheet[top + 3, column * 486 + 3].tolist() == [grey] * 3
            assert sheet[top + 243, column * 486 + 3].tolist() == [255] * 3
            assert sheet[top + 3, column * 486 + 483].tolist() == [255] * 3
    report.save_worst(evaluation(answers, [LabelledPicture(p.path) for p in pictures]), tmp_path / "two.png")
    assert Image.open(tmp_path / "two.png").size == (2 * 486, 24 + 4 * 246)
    scaled = report._scaled(Detection("boat", 0.5, (1.0, 2.0, 3.0, 4.0)), 2.5)
    assert scaled == Detection("boat", 0.5, (2.5, 5.0, 7.5, 10.0))


def test_columns_hold_labels_floats_and_integers() -> None:
    exact, approximate = seen((0.9, BOX), (0.1, AWAY)), seen((0.8, HALF))
    whole = evaluation([(exact, approximate)], [BOAT])
    assert report._columns(whole.frames[0], BOAT, whole) == [
        ([Detection("boat", 1.0, BOX)], []),
        ((Detection("boat", 0.9, BOX),), ()),
        ((Detection("boat", 0.8, HALF),), ()),
    ]
    picture = LabelledPicture(PLACE, category="red")
    named = evaluation([(classes(0, 1, 2), classes(1, 0, 2))], [picture], classifier=True)
    assert report._columns(named.frames[0], picture, named) == [
        ([], [Score("red", 1.0, 0)]),
        ((), (Score("red", 0.5, 0),)),
        ((), (Score("green", 0.5, 1),)),
    ]
    head = report._head(("a", "b"))
    assert head.shape == (24, 2 * 486, 3)
    assert head[:, :486].min() < 100
    assert head[:, 486:].min() < 100
