"""Cycles of an opened design."""

from __future__ import annotations

import numpy as np

from systolic.styles.registry import style_of
from systolic.styles.style import OpenedDesign


def traced_cycles(design: OpenedDesign) -> int:
    """Return the traced cycles of a start on a black image."""
    picture = np.zeros(design.manifest.input.shape, np.uint8)
    return style_of(design).trace(design, picture, lambda _: None).report().timing.cycles
