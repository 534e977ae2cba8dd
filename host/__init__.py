"""What runs beside the accelerator, on the board or on a simulated one.

``Accelerator`` needs pynq, which is looked for only when it is asked for: pictures, boxes and drawing do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from host.accelerator import Accelerator as Accelerator

__all__ = ["Accelerator"]


def __getattr__(name: str) -> object:
    if name == "Accelerator":
        from host.accelerator import Accelerator

        return Accelerator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
