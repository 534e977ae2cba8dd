"""Reading and checking the inputs that options name: networks, calibration pictures, saved files, numbers.

Wrong inputs are refused before the work starts.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from boards.errors import ConflictError, RangeError
from cnn import zoo
from cnn.onnx.advice import Check
from systolic.cli.messages import log
from systolic.front_ends.front_end import LoadOptions
from systolic.front_ends.registry import front_end_named
from systolic.loading import load_named
from systolic.model import Calibration, Model, sample_pictures
from systolic.pictures import picture_files
from systolic.preprocessing import preprocess
from systolic.styles.options import saved_text
from systolic.styles.streaming.arguments import SEARCHES
from systolic.styles.streaming.exploration import MADE_BY
from systolic.transforming import transform


def check_network(name: str) -> None:
    """Raise an error unless ``name`` is a built-in network or a network file of a known format."""
    front_end_named(name)


def model_of(
    options: argparse.Namespace, seed: int | None, names: Path | None = None, check: Check | None = None
) -> Model:
    """Return the network of NET, normalised and transformed as the options say, and log the reader's notes as warnings.

    Args:
        names: The file of class labels.
        check: A function that raises an error for a network that cannot be mapped.
    """
    given = LoadOptions(options.weights, names, seed, options.size, tuple(options.cut), check)
    model = load_named(options.network, given)
    for note in model.notes:
        log.warning("%s", note)
    model = preprocess(model, options.mean, options.std, options.channel_order)
    return transform(model, *options.passes) if getattr(options, "passes", ()) else model


def seed_of(options: argparse.Namespace) -> int | None:
    """Return the seed of random weights for a command that needs only layer shapes. None if the network has weights."""
    name = options.network
    has_numbers = name in zoo.names() and zoo.has_numbers(name)
    needs_numbers = "weights" in front_end_named(name).takes and not has_numbers
    return 1 if options.weights is None and options.seed is None and needs_numbers else options.seed


def calibration_from(options: argparse.Namespace) -> Calibration:
    """Return the calibration pictures and the quantisation options of a command line.

    Raises:
        ConflictError: Two options exclude each other.
    """
    reconstruct, zero_points = (getattr(options, name, False) for name in ("reconstruct", "zero_points"))
    pictures = picture_files(options.calibrate) or sample_pictures()
    if options.mixed is not None and options.bits is not None:
        raise ConflictError(
            ("--mixed", "--bits"), "--mixed chooses the bits of each layer", remedy="leave out one of them"
        )
    if options.mixed is not None and zero_points:
        raise ConflictError(
            ("--mixed", "--zero-points"),
            "layers whose bits --mixed chooses have no zero points",
            remedy="leave out one of them, or give --bits instead of --mixed",
        )
    return Calibration(
        pictures, options.method, options.fit, options.bits, reconstruct, options.mixed, zero_points=zero_points
    )


def check_search(options: argparse.Namespace) -> None:
    """Raise an error if a schedule search cannot start: NET is unknown, or --workers is below 1.

    Raises:
        SystolicError: The network is neither a file nor a built-in network (the errors of ``front_end_named``).
        RangeError: ``--workers`` is below 1.
    """
    check_network(options.network)
    check_whole("--workers", options.workers, 1)


def check_saved(schedule: Path | None, folding: str) -> None:
    """Raise an error if a saved schedule or folding cannot be read. It runs before the calibration, which is slow."""
    if schedule is not None:
        saved_text(schedule, "schedule", "systolic schedule --save FILE")
    if folding not in SEARCHES:
        saved_text(Path(folding), "folding", MADE_BY)


def check_whole(flag: str, value: int | None, low: int, high: int | None = None) -> None:
    """Raise RangeError if a given number is not between ``low`` and ``high``."""
    if value is not None and (value < low or (high is not None and value > high)):
        raise RangeError(flag, value, low, high, integer=True)


def check_share(flag: str, value: float) -> None:
    """Raise RangeError if a number is not between 0 and 1."""
    if not 0 <= value <= 1:
        raise RangeError(flag, value, 0, 1)
