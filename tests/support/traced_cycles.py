"""Cycles of an opened design."""

from __future__ import annotations

import numpy as np

from systolic.styles.registry import style_of
from systolic.styles.style import OpenedDesign


def traced_cycles(design: OpenedDesign) -> int:
    """Of a start on a black picture."""
    picture = np.zeros(design.manifest.input.shape, np.uint8)
    return style_of(design).trace(design, picture, lambda _: None).report().timing.cycles
