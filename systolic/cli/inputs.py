"""What options name: a network, pictures to calibrate on, files to write. Wrong ones are refused before the work."""

from __future__ import annotations

import argparse
from pathlib import Path

from boards.errors import ChoiceError, ConflictError, RangeError, UnsupportedError
from cnn import zoo
from cnn.onnx.advice import Check
from systolic.cli.completion import NETWORK_ENDINGS
from systolic.cli.messages import log
from systolic.extending.added import is_added
from systolic.extending.objects import refuse_keras_file
from systolic.model import Calibration, Model, load_checked, sample_pictures
from systolic.pictures import picture_files
from systolic.preprocessing import preprocess
from systolic.styles.options import saved_text
from systolic.styles.streaming.arguments import SEARCHES
from systolic.styles.streaming.exploration import MADE_BY

_CAFFE = "python -m caffe2onnx.convert --prototxt net.prototxt --caffemodel net.caffemodel --onnx net.onnx"
_COMPILED = "this one is compiled for another machine: take the .onnx file that it was made from"
_EXPORTED = {
    **dict.fromkeys((".pt", ".pth"), "write an .onnx file with torch.onnx.export(model, example, 'net.onnx')"),
    ".tflite": "write an .onnx file with python -m tf2onnx.convert --tflite net.tflite --output net.onnx",
    ".pb": "write an .onnx file with python -m tf2onnx.convert --saved-model FOLDER --output net.onnx",
    **dict.fromkeys((".caffemodel", ".prototxt"), f"write an .onnx file with {_CAFFE}"),
    **dict.fromkeys((".engine", ".plan", ".trt", ".xmodel", ".blob", ".hef"), _COMPILED),
}
"""Files of other frameworks, each with the call that turns the network into an .onnx file."""

FORMATS = "a darknet .cfg, an .onnx file, an exported .json or param.h"


def check_network(name: str) -> None:
    """Raise ChoiceError for a name that is no built-in network's, UnsupportedError for a file of another format."""
    if name in zoo.names() or name.endswith(NETWORK_ENDINGS) or is_added(name):
        return
    refuse_keras_file(name)
    if Path(name).suffix or Path(name).exists():
        raise UnsupportedError(
            f"{name} as a network",
            f"a network is {FORMATS}, or a built-in one; systolic networks lists those",
            remedy=_EXPORTED.get(Path(name).suffix.lower(), ""),
        )
    raise ChoiceError("a built-in network", name, zoo.names(), remedy="systolic networks tells more of each")


def model_of(
    options: argparse.Namespace, seed: int | None, names: Path | None = None, check: Check | None = None
) -> Model:
    """Read the network that the options name, and tell what of it was read in one of two ways. check: raises where a
    network cannot be mapped."""
    model = load_checked(options.network, options.weights, names, seed, options.size, options.cut, check)
    for note in model.notes:
        log.warning("%s", note)
    return preprocess(model, options.mean, options.std, options.channel_order)


def seed_of(options: argparse.Namespace) -> int | None:
    """Return the seed of random weights for a network of which only the shapes matter; None if it has weights."""
    name = options.network
    built_in = name in zoo.names() and zoo.has_numbers(name)
    has_numbers = name.endswith((".onnx", ".h")) or built_in or is_added(name)
    return 1 if options.weights is None and options.seed is None and not has_numbers else options.seed


def calibration_from(options: argparse.Namespace) -> Calibration:
    """Return the calibration that the options ask for. Raises ConflictError for options that exclude each other."""
    reconstruct, zero_points = (getattr(options, name, False) for name in ("reconstruct", "zero_points"))
    pictures = picture_files(options.calibrate) or sample_pictures()
    if options.mixed is not None and options.bits is not None:
        raise ConflictError(
            ("--mixed", "--bits"), "--mixed chooses the bits of each layer", remedy="leave one of them out"
        )
    if options.mixed is not None and zero_points:
        raise ConflictError(
            ("--mixed", "--zero-points"),
            "layers whose bits --mixed chooses have no zero points",
            remedy="leave one of them out, or give --bits instead of --mixed",
        )
    return Calibration(
        pictures, options.method, options.fit, options.bits, reconstruct, options.mixed, zero_points=zero_points
    )


def check_search(options: argparse.Namespace) -> None:
    """Raise an error if a search of schedules cannot start."""
    check_network(options.network)
    check_whole("--workers", options.workers, 1)


def check_saved(schedule: Path | None, folding: str) -> None:
    """Raise an error for a saved schedule or folding that cannot be read, before anything is calibrated."""
    if schedule is not None:
        saved_text(schedule, "schedule", "systolic schedule --save FILE")
    if folding not in SEARCHES:
        saved_text(Path(folding), "folding", MADE_BY)


def check_whole(flag: str, value: int | None, low: int, high: int | None = None) -> None:
    """Raise RangeError for a number that an option may not have."""
    if value is not None and (value < low or (high is not None and value > high)):
        raise RangeError(flag, value, low, high, integer=True)


def check_share(flag: str, value: float) -> None:
    """Raise RangeError for a number that is not between 0 and 1."""
    if not 0 <= value <= 1:
        raise RangeError(flag, value, 0, 1)
