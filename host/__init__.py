"""What runs beside the accelerator, on the board, on a simulated one, or with the simulation library alone.

``Accelerator`` needs pynq, which is looked for only when it is asked for: pictures, boxes and drawing do not.
``open_detector`` takes the board where there is one, and needs no pynq.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boards.errors import AcceleratorError as AcceleratorError
    from boards.errors import ChoiceError as ChoiceError
    from boards.errors import DamagedFileError as DamagedFileError
    from boards.errors import DoesNotFitError as DoesNotFitError
    from boards.errors import FileAccessError as FileAccessError
    from boards.errors import InvalidValueError as InvalidValueError
    from boards.errors import MismatchError as MismatchError
    from boards.errors import MissingToolError as MissingToolError
    from boards.errors import MissingValueError as MissingValueError
    from boards.errors import RangeError as RangeError
    from boards.errors import ShapeError as ShapeError
    from boards.errors import StateError as StateError
    from boards.errors import SystolicError as SystolicError
    from boards.errors import ToolError as ToolError
    from boards.errors import UnsupportedError as UnsupportedError
    from host.accelerator import Accelerator as Accelerator
    from host.opened import open_detector as open_detector
    from host.options import Options as Options
    from host.pipeline import FrameError as FrameError

    HostError = SystolicError

__all__ = [
    "Accelerator",
    "AcceleratorError",
    "ChoiceError",
    "DamagedFileError",
    "DoesNotFitError",
    "FileAccessError",
    "FrameError",
    "InvalidValueError",
    "MismatchError",
    "MissingToolError",
    "MissingValueError",
    "Options",
    "RangeError",
    "ShapeError",
    "StateError",
    "SystolicError",
    "ToolError",
    "UnsupportedError",
    "open_detector",
]

_ROOMS = {
    "Accelerator": "host.accelerator",
    "FrameError": "host.pipeline",
    "Options": "host.options",
    "open_detector": "host.opened",
}
"""Public name → the module that has it; the other names are those of boards.errors."""

_DEPRECATED = "HostError"
"""The name of the error in 0.1. It is SystolicError now, so that ``except host.HostError`` goes on working until 0.3
removes it, as in ``systolic``."""


def __getattr__(name: str) -> object:
    if name == _DEPRECATED:
        name = "SystolicError"
    if name in __all__:
        return getattr(importlib.import_module(_ROOMS.get(name, "boards.errors")), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
