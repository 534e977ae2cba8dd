"""The one way of pictures through a design, one of them or many: the host's detector over the freshly built library.

Where pynq is installed the accelerator runs under it, on the board or a simulated one; elsewhere the simulation library
is executed by itself.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from boards.progress import Progress, silent
from host import Options, open_detector
from host.detector import Detector
from systolic.execution.build import Variant, build


def detector_of(
    folder: Path,
    options: Options = Options(),  # noqa: B008 (frozen)
    variant: Variant = Variant(),  # noqa: B008 (frozen)
    tell: Progress = silent,
) -> Detector:
    """A detector on a generated folder, compiled first; to be closed.

    variant: another than the native library is executed on a simulated board, or by itself, and never on a board.
    """
    library = build(folder, variant, tell)
    return open_detector(
        folder, options if replace(variant, quick=False) == Variant() else replace(options, library=library)
    )
