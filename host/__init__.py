"""What runs beside the accelerator, on the board, on a simulated one, or with the simulation library alone.

``Accelerator`` needs pynq, which is looked for only when it is asked for: pictures, boxes and drawing do not.
``open_detector`` takes the board where there is one, and needs no pynq.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boards.errors import HostError as HostError
    from host.accelerator import Accelerator as Accelerator
    from host.opened import open_detector as open_detector
    from host.options import Options as Options

__all__ = ["Accelerator", "HostError", "Options", "open_detector"]

_ROOMS = {
    "Accelerator": "host.accelerator",
    "HostError": "boards.errors",
    "Options": "host.options",
    "open_detector": "host.opened",
}


def __getattr__(name: str) -> object:
    if name in _ROOMS:
        return getattr(importlib.import_module(_ROOMS[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
