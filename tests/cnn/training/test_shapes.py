"""The network that comes with the project finds what the scenes show, in float and in int8."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import cnn
from cnn.darknet.files import read_darknet
from cnn.float_model import run_float
from cnn.integer_model import dequantise, run_integer
from cnn.network import Detection, FloatArray, Network
from cnn.quantisation.calibration import calibrate
from cnn.quantisation.quantise import quantise
from cnn.quantized import QuantizedNetwork
from cnn.training.precision import Precision, mean_average_precision, wholly_right
from cnn.training.samples import SAMPLES, truth
from cnn.training.scenes import Scene, letterboxed
from host.vision.detection import detect
from host.vision.heads.head import Head
from host.vision.picture import letterbox, load_picture
from tests.kinds import as_kind

SHAPES = Path(cnn.__file__).parent / "models" / "shapes"
Pixels = npt.NDArray[np.uint8]
Rows = npt.NDArray[np.float64]
OutputOf = Callable[[Pixels], FloatArray]

SIZE, SCENES, FIRST_SEED = 160, 120, 6_000_000


@pytest.fixture(scope="module")
def shapes() -> Network:
    return read_darknet(SHAPES / "shapes.cfg", SHAPES / "shapes.weights", SHAPES / "shapes.names")


@pytest.fixture(scope="module")
def scenes() -> list[Scene]:
    return [letterboxed(FIRST_SEED + i, SIZE) for i in range(SCENES)]


def as_float(pixels: Pixels) -> FloatArray:
    return np.asarray(pixels.astype(np.float32) / np.float32(255))


def detections(network: Network, output_of: OutputOf, picture: Pixels, threshold: float = 0.01) -> Rows:
    """Rows of class, probability, x0, y0, x1, y1."""
    op = as_kind(Detection, network.nodes[-1].op)
    pixels, placement = letterbox(picture, SIZE, SIZE)
    found = detect([output_of(pixels)], [Head(op.kind, op.anchors, op.classes)], placement, network.labels, threshold)
    rows = [[network.labels.index(d.label), d.probability, *d.box] for d in found]
    return np.array(rows, float).reshape(-1, 6)


def float_output(network: Network, pixels: Pixels) -> FloatArray:
    return run_float(network, as_float(pixels))[-1]


def integer_output(quantized: QuantizedNetwork, pixels: Pixels) -> FloatArray:
    index = len(quantized.nodes) - 2  # the head's convolution; the region layer behind it is the host's
    return dequantise(np.asarray(run_integer(quantized, pixels)[index]), quantized.nodes[index].type)


def measured(network: Network, output_of: OutputOf, scenes: list[Scene]) -> tuple[Precision, float]:
    """Precision, and the share of pictures that are wholly right."""
    found = [detections(network, output_of, scene.picture) for scene in scenes]
    truths = [scene.truths for scene in scenes]
    return mean_average_precision(found, truths, len(network.labels)), wholly_right(found, truths)


def test_float_and_int8_precision(shapes: Network, scenes: list[Scene]) -> None:
    pictures = [as_float(letterboxed(4_000_000 + i, SIZE).picture.transpose(2, 0, 1)) for i in range(24)]
    quantized = quantise(shapes, calibrate(shapes, pictures))
    exact, exact_right = measured(shapes, partial(float_output, shapes), scenes)
    integer, integer_right = measured(shapes, partial(integer_output, quantized), scenes)
    assert exact.mean >= 0.96
    assert integer.mean >= exact.mean - 0.01  # within one point of float
    assert min(integer.by_class) >= 0.9
    assert min(exact_right, integer_right) >= 0.88


def test_a_network_that_sees_black_finds_nothing(shapes: Network) -> None:
    assert len(detections(shapes, partial(float_output, shapes), np.zeros((120, 160, 3), np.uint8), 0.24)) == 0


def sample_results(shapes: Network) -> Iterator[tuple[str, Rows, Rows]]:
    """For each sample file its detections above 0.5 and its truths."""
    for entry in json.loads((SHAPES / "samples" / "truth.json").read_text()):
        picture = load_picture(SHAPES / "samples" / entry["file"])
        assert picture.shape == (entry["height"], entry["width"], 3)
        truths = np.array([[shapes.labels.index(o["label"]), *o["box"]] for o in entry["objects"]])
        yield entry["file"], detections(shapes, partial(float_output, shapes), picture, 0.5), truths


def test_the_samples_for_demonstrations_are_wholly_right_and_most_others(shapes: Network) -> None:
    right = {file for file, found, truths in sample_results(shapes) if wholly_right([found], [truths]) == 1}
    assert {"hills.jpg", "forest.jpg"} <= right
    assert len(right) >= len(SAMPLES) - 1  # tall.jpg: a pale tree is taken for a balloon


def test_the_truth_beside_the_samples_is_what_their_seeds_draw() -> None:
    written = json.loads((SHAPES / "samples" / "truth.json").read_text())
    assert written == [truth(sample, sample.draw()) for sample in SAMPLES]
