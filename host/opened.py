"""Opening a design on the board, or elsewhere with its simulation library."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from host.contract.manifest import read_manifest
from host.contract.simulation_library import find_library
from host.designs import design_folder
from host.detector import Detector
from host.options import Options
from host.styles import STYLES


def open_detector(folder: Path | str, options: Options = Options()) -> Detector:  # noqa: B008 (frozen)
    """Return an ``Accelerator`` if this machine is a board, else a detector that executes the simulation library.

    Both process a picture in the same steps: prepare, load, execute, collect, decode. An error says what is missing.
    """
    if _on_board():
        from host.accelerator import Accelerator

        return Accelerator(folder, options)
    return open_executed(folder, options)


def _on_board() -> bool:
    """Return whether pynq is installed and finds a device. Off the board pynq may be installed, but finds none."""
    if importlib.util.find_spec("pynq") is None:
        return False
    from host.board.devices import board_device

    return board_device() is not None


def open_executed(folder: Path | str, options: Options = Options()) -> Detector:  # noqa: B008 (frozen)
    """Return a detector that executes the design's simulation library on this machine, without a board or pynq.

    The library is ``options.library`` or the one in the design's folder. Options that concern a board are ignored.
    FileAccessError if there is no library.
    """
    options = Options.checked(options)
    path = design_folder(folder)
    manifest = read_manifest(path)
    library = find_library(path, options.library)
    backend = STYLES[manifest.style].execution(path, manifest, library, options.sets)
    return Detector(path, manifest, backend, options)
