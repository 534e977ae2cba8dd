"""A network file on noise: its design, generated and executed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import systolic
from systolic.model import Calibration


def executed(path: Path, style: str, **more: Any) -> Any:
    """The result of one frame on a ZCU104; the array is given, because to search for one takes longer than all else.
    Networks of floats are calibrated on three pictures of noise. more: options of the style."""
    network = systolic.load(path)
    shape, random = network.network.input_shape, np.random.default_rng(1)
    pictures = [random.integers(0, 256, (shape.height, shape.width, shape.channels), np.uint8) for _ in range(3)]
    options: dict[str, Any] = {"search": "greedy"} if style == "streaming" else {"array": "4x8x8"}
    design = systolic.design(network, "zcu104", style, calibrate=Calibration(tuple(pictures)), **options, **more)
    return design.simulate(pictures[-1])
