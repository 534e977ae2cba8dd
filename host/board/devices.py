"""The pynq device that a design runs on: the caller's, the board, or a simulated board if there is none."""

from __future__ import annotations

import contextlib
import importlib.util
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from boards.errors import InvalidValueError, MissingToolError
from host.contract.parts import Manifest
from host.contract.simulation_library import find_library
from host.options import Options
from host.simulated.pace import pace


@contextlib.contextmanager
def device_for(folder: Path, manifest: Manifest, options: Options, device: Any = None) -> Iterator[Any]:
    """Return a context manager that gives the pynq device for a design: the board, or a simulated board that it closes
    at the end.

    A simulated board executes the simulation library of ``options``, at their time scale.

    Args:
        folder: The design's folder.
        manifest: The design's manifest.
        options: The library and the time scale.
        device: A pynq device. None takes the board that this runs on. InvalidValueError for anything else.
    """
    if device is not None:
        yield _checked(device)
        return
    board = board_device()
    if board is not None and options.library is None:
        yield board
        return
    from host.simulated.device import SimulatedBoard

    library = find_library(folder, options.library)
    board = SimulatedBoard(manifest, library, pace(folder, manifest, options.scale))
    try:
        yield board
    finally:
        board.close()


def board_device() -> Any:
    """Return the pynq device of the board that this program runs on, or None on other machines."""
    from pynq import Device

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        devices = Device.devices
    return devices[0] if devices else None


def _checked(device: Any) -> Any:
    from pynq import Device

    if not isinstance(device, Device):
        raise InvalidValueError("device", device, "a pynq.Device, or None for the board that this runs on")
    return device


def require_pynq() -> None:
    """Raise MissingToolError if pynq is not installed."""
    if importlib.util.find_spec("pynq") is None:
        raise MissingToolError(
            "pynq",
            "drive an accelerator",
            remedy="use the board's image, which holds it; off the board run pip install -e '.[board]' in an "
            "environment of its own, since pynq needs numpy below 2",
        )
