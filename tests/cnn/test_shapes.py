"""Tests of the accuracy of the built-in network "shapes": in float, in 8 and 4 bits, and trained in 4 bits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import cnn
from boards import board as board_room
from boards.board import Board
from cnn.float_model import run_float
from cnn.integer_model import dequantise, run_integer
from cnn.maps import FloatArray
from cnn.network import Network
from cnn.ops import Region
from cnn.quantized import QuantizedNetwork
from host.vision.detection import Detection, detect
from host.vision.picture import letterbox, load_picture
from systolic.evaluation.layouts.labelled import Truth
from systolic.evaluation.mixed import Pipeline
from systolic.evaluation.precision import Precision, average_precisions
from systolic.evaluation.quality import agreement
from systolic.loading import load_model
from systolic.model import Calibration, quantise_model, sample_pictures
from systolic.network_outputs import head_of
from systolic.styles.streaming.exploration import explore
from systolic.styles.streaming.options import StreamingOptions
from tests.support.kinds import as_kind
from tools.demo.objects import LABELS
from tools.demo.samples import SAMPLES, truth
from tools.demo.scenes import Scene, letterboxed

SHAPES = Path(cnn.__file__).parent / "models" / "shapes"
Pixels = npt.NDArray[np.uint8]
OutputOf = Callable[[Pixels], FloatArray]

SIZE, FIRST_SEED = 160, 7_000_000
ALL_SCENES = 300
TO_THE_END = StreamingOptions(deadline=None)
LIKELY = 0.5
"""The lowest probability of a box that counts as seen."""

all_scenes = pytest.mark.parametrize("scenes", [ALL_SCENES], indirect=True)


@pytest.fixture(scope="module")
def shapes() -> Network:
    return load_model("shapes").network


@pytest.fixture(scope="module")
def scenes(request: pytest.FixtureRequest) -> list[Scene]:
    return [letterboxed(FIRST_SEED + i, SIZE) for i in range(request.param)]


@pytest.fixture(scope="module")
def boxes(shapes: Network, scenes: list[Scene]) -> list[list[Detection]]:
    """Return the boxes that the float network finds in each scene, with their probabilities."""
    return [detections(shapes, partial(float_output, shapes), scene.picture) for scene in scenes]


@pytest.fixture(scope="module")
def exact(boxes: list[list[Detection]], scenes: list[Scene]) -> Precision:
    return precision(boxes, scenes)


def detections(network: Network, output_of: OutputOf, picture: Pixels, threshold: float = 0.01) -> list[Detection]:
    op = as_kind(Region, network.nodes[-1].op)
    pixels, placement = letterbox(picture, SIZE, SIZE)
    return list(detect([output_of(pixels)], [head_of(op)], placement, network.labels, threshold))


def float_output(network: Network, pixels: Pixels) -> FloatArray:
    return run_float(network, np.asarray(pixels.astype(np.float32) / np.float32(255)))[-1]


def integer_output(quantized: QuantizedNetwork, pixels: Pixels) -> FloatArray:
    index = len(quantized.nodes) - 2  # the convolution of the head; the region layer after it runs on the host
    return dequantise(np.asarray(run_integer(quantized, pixels)[index]), quantized.nodes[index].type)


def truths_of(scene: Scene) -> list[Truth]:
    return [Truth(LABELS[int(row[0])], (row[1], row[2], row[3], row[4])) for row in scene.truths.tolist()]


def precision(boxes: Sequence[Sequence[Detection]], scenes: Sequence[Scene]) -> Precision:
    return average_precisions(boxes, [truths_of(scene) for scene in scenes], LIKELY)


def wholly_right(boxes: Sequence[Detection], truths: Sequence[Truth]) -> bool:
    """Return whether every object is found once and nothing else is found."""
    objects = [Detection(each.label, 1.0, each.box) for each in truths]
    return agreement(objects, [box for box in boxes if box.probability > LIKELY]).differing == 0


def integers_of(bits: int) -> QuantizedNetwork:
    """Quantise by calibration with the built-in samples, as ``systolic evaluate shapes`` does."""
    return quantise_model(load_model("shapes"), Calibration(sample_pictures(), bits=bits))


def points_lost(network: Network, quantized: QuantizedNetwork, scenes: list[Scene], exact: Precision) -> float:
    """Return the loss of mAP@0.5, in percentage points."""
    boxes = [detections(network, partial(integer_output, quantized), scene.picture) for scene in scenes]
    return 100 * (exact.map50 - precision(boxes, scenes).map50)


@pytest.mark.engine
@all_scenes
def test_float_network_finds_nearly_all_objects(
    boxes: list[list[Detection]], scenes: list[Scene], exact: Precision
) -> None:
    assert exact.map50 >= 0.96
    assert min(each.ap50 for each in exact.by_class.values()) >= 0.9
    right = [wholly_right(seen, truths_of(scene)) for seen, scene in zip(boxes, scenes, strict=True)]
    assert np.mean(right) >= 0.88


@pytest.mark.engine
@all_scenes
def test_8_bits_lose_at_most_0_3_points(shapes: Network, scenes: list[Scene], exact: Precision) -> None:
    assert points_lost(shapes, integers_of(8), scenes, exact) <= 0.3


@pytest.mark.engine
@all_scenes
def test_4_bits_lose_at_most_8_points(shapes: Network, scenes: list[Scene], exact: Precision) -> None:
    assert points_lost(shapes, integers_of(4), scenes, exact) <= 8.0


@pytest.mark.engine
@all_scenes
def test_4_bits_with_fitted_weights_and_zero_points_lose_at_most_1_point(
    shapes: Network, scenes: list[Scene], exact: Precision
) -> None:
    calibration = Calibration(sample_pictures(), bits=4, reconstruct=True, zero_points=True)
    assert points_lost(shapes, quantise_model(load_model("shapes"), calibration), scenes, exact) <= 1.0


def fastest(integers: QuantizedNetwork, board: Board) -> float:
    """Return the modelled frames/s of the folding that ``systolic fold`` finds."""
    return explore(integers, board, options=TO_THE_END).frames_per_second


@pytest.mark.engine
@all_scenes
@pytest.mark.parametrize("board", [board_room.load("zcu104"), board_room.load("ultra96-v2")], ids=lambda b: b.name)
def test_mixed_bits_at_four_fifths_of_the_4_bit_rate_lose_at_most_0_7_points(
    shapes: Network, scenes: list[Scene], exact: Precision, board: Board
) -> None:
    pytest.importorskip("ortools", reason="exact folding needs OR-tools: pip install -e '.[solver]'")
    mixed = quantise_model(
        load_model("shapes"), Calibration(sample_pictures(), mixed=0.8, pipeline=Pipeline(board, options=TO_THE_END))
    )
    assert fastest(mixed, board) >= 0.8 * fastest(integers_of(4), board)
    assert points_lost(shapes, mixed, scenes, exact) <= 0.7


@pytest.mark.engine
@all_scenes
def test_training_in_4_bits_loses_at_most_1_5_points(scenes: list[Scene], exact: Precision) -> None:
    trained = load_model("shapes-w4a4")
    assert trained.quantized is not None
    assert {node.type.datatype.name for node in trained.quantized.nodes} == {"UINT8", "UINT4", "INT16"}
    assert points_lost(trained.network, trained.quantized, scenes, exact) <= 1.5


def test_black_image_gives_no_boxes(shapes: Network) -> None:
    assert len(detections(shapes, partial(float_output, shapes), np.zeros((120, 160, 3), np.uint8), 0.24)) == 0


def sample_results(shapes: Network) -> Iterator[tuple[str, list[Detection], list[Truth]]]:
    """Yield the name of each sample file, the boxes found in it, and its true boxes."""
    for entry in json.loads((SHAPES / "samples" / "truth.json").read_text()):
        picture = load_picture(SHAPES / "samples" / entry["file"])
        assert picture.shape == (entry["height"], entry["width"], 3)
        truths = [Truth(each["label"], tuple(each["box"])) for each in entry["objects"]]
        yield entry["file"], detections(shapes, partial(float_output, shapes), picture), truths


def test_demonstration_samples_are_wholly_right(shapes: Network) -> None:
    right = {file for file, seen, truths in sample_results(shapes) if wholly_right(seen, truths)}
    assert {"hills.jpg", "forest.jpg"} <= right
    assert len(right) >= len(SAMPLES["shapes"]) - 1  # tall.jpg: a pale tree is taken for a balloon


def test_sample_truths_follow_from_their_seeds() -> None:
    written = json.loads((SHAPES / "samples" / "truth.json").read_text())
    assert written == [truth(sample, sample.draw()) for sample in SAMPLES["shapes"]]
