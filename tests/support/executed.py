"""The execution of a network file's design on noise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import systolic
from systolic.model import Calibration


def executed(path: Path, style: str, **more: Any) -> Any:
    """Return the result of one frame on a ZCU104.

    The array is given, because a search would take longer than all other steps. Float networks are calibrated with
    three images of noise.

    Args:
        path: The network file.
        style: The style.
        more: Further options of the style.
    """
    network = systolic.load(path)
    shape, random = network.network.input_shape, np.random.default_rng(1)
    pictures = [random.integers(0, 256, (shape.height, shape.width, shape.channels), np.uint8) for _ in range(3)]
    options: dict[str, Any] = {"search": "greedy"} if style == "streaming" else {"array": "4x8x8"}
    design = systolic.design(network, "zcu104", style, calibrate=Calibration(tuple(pictures)), **options, **more)
    return design.simulate(pictures[-1])
