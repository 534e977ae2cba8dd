"""A loaded network with its files, and its quantisation by calibration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

import numpy as np
import numpy.typing as npt

from boards import board as board_room
from boards.board import Board
from boards.errors import ConflictError
from boards.progress import Progress, ProgressStep, silent
from cnn import zoo
from cnn.network import Network
from cnn.quantisation.calibration import choose_ranges, observe
from cnn.quantisation.quantise import quantise_format
from cnn.quantisation.zero_points import quantise_with_zero_points
from cnn.quantized import QuantizedNetwork
from cnn.softmax import integers_on_accelerator, on_accelerator
from host.vision.picture import Pixels
from systolic.evaluation.mixed import PICTURES, Pipeline, Trial, quantise_for
from systolic.pictures import calibration_inputs, network_input_of, network_inputs, views_of

MAX_RANGE_BITS = 12
"""Limit for the bits at which ``mse`` and the other methods choose ranges.

At 16 bits the activations may have 8 to 16 bits (cnn/quantisation/widths.py), so the ranges are chosen for 12.
"""

USUAL_BOARD = "zcu104"
"""The board whose frame rate mixed precision keeps a share of, if the calibration names no pipeline."""


@dataclass(frozen=True, eq=False)
class Model:
    """A loaded network with the files that it was read from. It is a float network, or was quantised in training.

    Attributes:
        network: The float network. For a network that was quantised in training: its float form.
        fit: The method that resizes pictures, unless the user chooses another one.
        files: The files that the network was loaded from, by their path in a design. A design contains them, so that
            its float network can be run.
        quantized: The integers of a network that was quantised in training, which needs no calibration; else None.
        notes: One sentence for each ambiguous fact of the file, with the interpretation that was chosen.
        random: Whether the weights were drawn at random.
    """

    network: Network
    fit: str
    files: Mapping[str, bytes]
    quantized: QuantizedNetwork | None = None
    notes: tuple[str, ...] = ()
    random: bool = False

    @property
    def known(self) -> Network | QuantizedNetwork:
        """The quantised network of a model that was quantised in training, else the float network."""
        return self.quantized or self.network

    def __repr__(self) -> str:
        return repr(self.known)

    def _repr_html_(self) -> str:
        shape, labels = self.network.input_shape, ", ".join(self.network.labels)
        return (
            f"<p><b>{escape(self.network.name)}</b>: {len(self.network.nodes)} layers, {shape.width} × {shape.height} "
            f"pixels of {shape.channels} channels; labels: {escape(labels) or 'none'}</p>"
        )


@dataclass(frozen=True)
class Calibration:
    """The pictures and options with which a float network is quantised.

    Attributes:
        pictures: The pictures on which activation ranges are measured: files, or uint8 arrays of shape (height, width,
            channels).
        method: The method that chooses a range from the measured values: "max", "percentile", "mse" or "entropy".
        fit: The method that resizes pictures, one of FITS; None for the model's own.
        bits: The bits of weights and activations: 4, 8 or 16. None means 8, or the integers of a model that was
            quantised in training.
        reconstruct: Fit the weights of each layer to its outputs on the first pictures and parts of them, instead of
            rounding each weight to the nearest integer.
        mixed: Choose 4 or 8 bits per layer instead of ``bits``. The choice loses the least accuracy among those that
            reach this share of the frame rate that the pipeline has with 4 bits in all layers.
        pipeline: The board and the folding options for ``mixed``; None for the design's, or for a ZCU104.
        zero_points: Give the outputs of ReLU, leaky ReLU and other activation functions a zero point, so that they use
            all integers.
    """

    pictures: tuple[Path | Pixels, ...]
    method: str = "mse"
    fit: str | None = None
    bits: int | None = None
    reconstruct: bool = False
    mixed: float | None = None
    pipeline: Pipeline | None = None
    zero_points: bool = False


@dataclass(frozen=True, eq=False)
class DesignInputs:
    """The parts of a design that the mapping does not have: the network's files, a test picture, the resize method.

    Attributes:
        files: The files that the network was loaded from, by their path in the design.
        picture: The input of the test bench, uint8 of shape (channels, height, width).
        fit: The method that resizes pictures.
    """

    files: Mapping[str, bytes]
    picture: npt.NDArray[np.uint8]
    fit: str = "plain"


def with_softmax(model: Model, method: str) -> Model:
    """Return the model with its final softmax on the accelerator instead of the host.

    Args:
        model: The model.
        method: A method of ``cnn.softmax``, or "none": the host computes the softmax, and the model is not changed.

    Raises:
        SystolicError: One of the errors of ``on_accelerator`` and ``integers_on_accelerator``.
    """
    if method == "none":
        return model
    integers = model.quantized and integers_on_accelerator(model.quantized, method)
    return replace(model, network=on_accelerator(model.network, method), quantized=integers)


def networks() -> tuple[str, ...]:
    """Return the names of the built-in networks."""
    return tuple(zoo.names())


def boards() -> tuple[Board, ...]:
    """Return the boards of this package, sorted by name."""
    return tuple(board_room.load(name) for name in board_room.names())


def sample_pictures(network: str = "shapes") -> tuple[Path, ...]:
    """Return the sample pictures of a built-in network.

    Without pictures, a calibration uses the samples of ``shapes``.
    """
    folder = zoo.folder(network) / "samples"
    return tuple(sorted(path for path in folder.iterdir() if path.suffix in (".png", ".jpg")))


def any_picture(channels: int) -> Path | Pixels:
    """Return a picture for a calibration whose values do not matter: a sample picture of the package, or noise.

    It is noise if the network reads neither 1 nor 3 channels, because no sample has another number.
    """
    if channels in (1, 3):
        return sample_pictures()[0]
    return np.random.default_rng(0).integers(0, 256, (64, 64, channels), np.uint8)


def inputs_of(model: Model, calibration: Calibration) -> DesignInputs:
    """Return the model's files as ``DesignInputs``, with the first calibration picture as test picture.

    For a model with its own integers, the calibration may hold the samples by default. Then the picture is one with the
    number of channels that the network reads. Raises the errors of ``network_input_of``.
    """
    fit, picture = calibration.fit or model.fit, calibration.pictures[0]
    are_samples = isinstance(picture, Path) and picture == sample_pictures()[0]
    if model.quantized is not None and are_samples:
        picture = any_picture(model.network.input_shape.channels)
    return DesignInputs(model.files, network_input_of(model.network, picture, fit), fit)


def quantise_model(model: Model, calibration: Calibration, progress: Progress = silent) -> QuantizedNetwork:
    """Return the quantised network: the integers of a model quantised in training, else the calibrated network.

    Raises:
        ConflictError: The model has its own integers, and the calibration asks for others.
    """
    if model.quantized is not None:
        _check_own(model.quantized, calibration)
        return model.quantized
    network, bits = model.network, 8 if calibration.bits is None else calibration.bits
    fit, total = calibration.fit or model.fit, len(calibration.pictures)
    statistics = observe(
        network,
        calibration_inputs(network, calibration.pictures, fit),
        progress=lambda count: progress(ProgressStep(f"calibrating, picture {count} of {total}", count, total)),
    )
    views = tuple(views_of(network, calibration.pictures, fit)) if calibration.reconstruct else ()
    if calibration.mixed is not None:
        measured = tuple(network_inputs(network, calibration.pictures[:PICTURES], fit))
        trial = Trial(statistics, calibration.method, measured, views)
        pipeline = calibration.pipeline or Pipeline(board_room.load(USUAL_BOARD))
        return quantise_for(network, trial, calibration.mixed, pipeline, progress)
    if views:
        progress(f"fitting the weights to {len(views)} views of pictures")
    if calibration.zero_points:
        return quantise_with_zero_points(network, statistics, calibration.method, bits, views)
    ranges = choose_ranges(statistics, calibration.method, bits=min(bits, MAX_RANGE_BITS))
    return quantise_format(network, ranges, bits, views)


def _check_own(quantised: QuantizedNetwork, calibration: Calibration) -> None:
    """Raise ConflictError if options ask to quantise a network again that was quantised in training."""
    flags = {
        f"--bits {calibration.bits}": calibration.bits is not None,
        "--reconstruct": calibration.reconstruct,
        "--mixed": calibration.mixed is not None,
        "--zero-points": calibration.zero_points,
    }
    for flag in (flag for flag, asked in flags.items() if asked):
        raise ConflictError(
            (f"the network {quantised.name}", flag),
            "the network was quantised in training and keeps its integers",
            remedy=f"leave out {flag.split()[0]}",
        )
