"""A design opened by whatever is here: a board, or the simulation library alone."""

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
    """An ``Accelerator`` on a board, else the design executed by its simulation library.

    Both take a picture the same way: prepare, load, execute, collect, decode. An error says what is missing.
    """
    if _on_board():
        from host.accelerator import Accelerator

        return Accelerator(folder, options)
    return open_executed(folder, options)


def _on_board() -> bool:
    """Whether pynq is here and has a device: off the board it may be installed, and has none."""
    if importlib.util.find_spec("pynq") is None:
        return False
    from host.board.devices import board_device

    return board_device() is not None


def open_executed(folder: Path | str, options: Options = Options()) -> Detector:  # noqa: B008 (frozen)
    """The design executed by its simulation library, ``options.library`` or the one in its folder; no board, no pynq.

    FileAccessError if there is none. Options of a board do not matter.
    """
    options = Options.checked(options)
    path = design_folder(folder)
    manifest = read_manifest(path)
    library = find_library(path, options.library)
    backend = STYLES[manifest.style].execution(path, manifest, library, options.sets)
    return Detector(path, manifest, backend, options)
