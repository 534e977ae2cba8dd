"""A network with the files that it came from, and its integers by calibration."""

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

WIDE_BITS = 12
"""What the least squared error is asked at for 16 bits: activations have 8 to 16 of them (quantisation/widths.py)."""

USUAL_BOARD = "zcu104"
"""Whose rate bits by layer keep a share of, where nothing is said."""


@dataclass(frozen=True, eq=False)
class Model:
    """``files``: the network in the form it came in, kept in the design so that its float reference can be run.

    fit: how pictures are brought to size where the user does not say. quantized: of a network that was quantised by
    training its integers, which need no calibration; ``network`` is then its float form. notes: sentences, of what was
    read in one of two ways. random: whether a seed drew the weights.
    """

    network: Network
    fit: str
    files: Mapping[str, bytes]
    quantized: QuantizedNetwork | None = None
    notes: tuple[str, ...] = ()
    random: bool = False

    @property
    def known(self) -> Network | QuantizedNetwork:
        """What can be looked at before anything is calibrated."""
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
    """pictures: what activation ranges are measured on, files or uint8 [height, width, channels]. method: max,
    percentile, mse or entropy.

    fit: one of FITS; the model's own where it is None. bits: of weights and activations, 4, 8 or 16; 8 where it is
    None, and then a model may bring integers of its own. reconstruct: fit the weights to the first pictures and parts
    of them, layer by layer, instead of rounding each to the nearest. mixed: 4 or 8 bits a layer instead of ``bits``,
    those that lose least at this share of the rate that 4 bits have as a pipeline. pipeline: on which board, and how it
    is folded; that of the design where one is made, else a ZCU104. zero_points: behind ReLU, leaky ReLU and functions,
    so that all integers are used.
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
    """What a design carries beside its mapping.

    files: the network in the form it came in. picture: uint8 [channels, height, width], the frame of the test bench.
    fit: how pictures are brought to size.
    """

    files: Mapping[str, bytes]
    picture: npt.NDArray[np.uint8]
    fit: str = "plain"


def with_softmax(model: Model, method: str) -> Model:
    """Return the model with its softmax on the accelerator, by a method of cnn.softmax; "none" leaves it to the host.
    Raises the errors of ``on_accelerator`` and ``integers_on_accelerator``."""
    if method == "none":
        return model
    integers = model.quantized and integers_on_accelerator(model.quantized, method)
    return replace(model, network=on_accelerator(model.network, method), quantized=integers)


def networks() -> tuple[str, ...]:
    """The built-in networks, by name."""
    return tuple(zoo.names())


def boards() -> tuple[Board, ...]:
    """Every board that is known."""
    return tuple(board_room.load(name) for name in board_room.names())


def sample_pictures(network: str = "shapes") -> tuple[Path, ...]:
    """That come with a built-in network; those of ``shapes`` are what calibration uses where none are given."""
    folder = zoo.folder(network) / "samples"
    return tuple(sorted(path for path in folder.iterdir() if path.suffix in (".png", ".jpg")))


def any_picture(channels: int) -> Path | Pixels:
    """What does where shapes alone decide: an embedded sample, or noise where no picture has so many channels."""
    if channels in (1, 3):
        return sample_pictures()[0]
    return np.random.default_rng(0).integers(0, 256, (64, 64, channels), np.uint8)


def inputs_of(model: Model, calibration: Calibration) -> DesignInputs:
    """Return the design's files with the first picture of the calibration as the test bench's frame: any where a model
    has its own integers and none was given. Raises the errors of ``network_input_of``."""
    fit, picture = calibration.fit or model.fit, calibration.pictures[0]
    are_samples = isinstance(picture, Path) and picture == sample_pictures()[0]
    if model.quantized is not None and are_samples:
        picture = any_picture(model.network.input_shape.channels)
    return DesignInputs(model.files, network_input_of(model.network, picture, fit), fit)


def quantise_model(model: Model, calibration: Calibration, tell: Progress = silent) -> QuantizedNetwork:
    """Return the model's integers: its own, or those that calibration gives; ConflictError if the model has its own and
    the calibration asks for others."""
    if model.quantized is not None:
        _check_own(model.quantized, calibration)
        return model.quantized
    network, bits = model.network, 8 if calibration.bits is None else calibration.bits
    fit, total = calibration.fit or model.fit, len(calibration.pictures)
    statistics = observe(
        network,
        calibration_inputs(network, calibration.pictures, fit),
        progress=lambda count: tell(ProgressStep(f"calibrating, picture {count} of {total}", count, total)),
    )
    views = tuple(views_of(network, calibration.pictures, fit)) if calibration.reconstruct else ()
    if calibration.mixed is not None:
        measured = tuple(network_inputs(network, calibration.pictures[:PICTURES], fit))
        trial = Trial(statistics, calibration.method, measured, views)
        pipeline = calibration.pipeline or Pipeline(board_room.load(USUAL_BOARD))
        return quantise_for(network, trial, calibration.mixed, pipeline, tell)
    if views:
        tell(f"fitting the weights to {len(views)} views of pictures")
    if calibration.zero_points:
        return quantise_with_zero_points(network, statistics, calibration.method, bits, views)
    ranges = choose_ranges(statistics, calibration.method, bits=min(bits, WIDE_BITS))
    return quantise_format(network, ranges, bits, views)


def _check_own(quantised: QuantizedNetwork, calibration: Calibration) -> None:
    """Raise ConflictError if a calibration asks for other integers than the network has."""
    flags = {
        f"--bits {calibration.bits}": calibration.bits is not None,
        "--reconstruct": calibration.reconstruct,
        "--mixed": calibration.mixed is not None,
        "--zero-points": calibration.zero_points,
    }
    for flag in (flag for flag, asked in flags.items() if asked):
        raise ConflictError(
            (f"the network {quantised.name}", flag),
            "the network was quantised when it was trained, and keeps its integers",
            remedy=f"leave out {flag.split()[0]}",
        )
