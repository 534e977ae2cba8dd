"""The host runtime: it runs next to the accelerator, on the board, on a simulated board or with the simulation library.

``Accelerator`` needs pynq. pynq is imported only when ``Accelerator`` is first used, so reading pictures, decoding
boxes and drawing work without it. ``open_detector`` uses the board if the machine has one; without a board it needs no
pynq.
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
"""Maps each public name to the module that defines it. Every other name is defined in ``boards.errors``."""

_DEPRECATED = "HostError"
"""The name that the base error had in 0.1. It is ``SystolicError`` now, and ``except host.HostError`` still works.

Release 0.3 removes the old name, as in ``systolic``.
"""


def __getattr__(name: str) -> object:
    if name == _DEPRECATED:
        name = "SystolicError"
    if name in __all__:
        return getattr(importlib.import_module(_ROOMS.get(name, "boards.errors")), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
