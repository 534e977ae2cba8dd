"""How near a design's integers come to the float network where it counts, at the heads, and when that is too far."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cnn.quantisation.fidelity import heads_sqnr_db, steps_off
from cnn.quantized import QuantizedNetwork
from systolic.model import Calibration, Model
from systolic.pictures import network_inputs

LEAST_SQNR_DB = 15.0
"""Below it the error is more than a sixth of the signal. 8 bits keep even random weights above it; 4 bits that were not
trained do not reach it (docs/explanation/quantisation.md)."""

PICTURES = 2
"""That it is measured on: the more pictures, the same ratio, and each takes a second for a large network."""


@dataclass(frozen=True)
class HeadFidelity:
    """sqnr_db: by head, None where it is exact or all zeros. measured: pictures, of those calibrated on. steps_off: by
    each function that is looked up in pieces of lines the most steps of its output that it is off, over all inputs."""

    sqnr_db: Mapping[str, float | None]
    measured: int
    calibrated: int
    steps_off: Mapping[str, int]

    @property
    def warning(self) -> str:
        """A sentence where a head is below LEAST_SQNR_DB, else nothing."""
        return warning_of(self.sqnr_db)

    def values(self) -> dict[str, Any]:
        """One JSON object."""
        return {"sqnr_db": dict(self.sqnr_db), "pictures": self.measured, "steps_off": dict(self.steps_off)}

    def text(self) -> str:
        """A line for a terminal; another where functions are looked up in pieces of lines."""
        ratios = ", ".join(f"{name} {_told(ratio)}" for name, ratio in self.sqnr_db.items())
        pictures = f"{self.measured} of {self.calibrated} calibration pictures"
        heads = f"SQNR at the heads: {ratios} (measured on the golden model, against the float network, on {pictures})"
        return heads + (f"\n{_told_off(self.steps_off)}" if self.steps_off else "")


def head_fidelity(model: Model, quantised: QuantizedNetwork, calibration: Calibration) -> HeadFidelity | None:
    """Over the first calibration pictures. None of a network that was quantised by training: its integers are its own.

    Raises the errors of ``network_inputs`` if a picture cannot be read.
    """
    if model.quantized is not None:
        return None
    pictures = calibration.pictures[:PICTURES]
    inputs = network_inputs(model.network, pictures, calibration.fit or model.fit)
    ratios = heads_sqnr_db(model.network, quantised, inputs)
    return HeadFidelity(
        {name: rounded(ratio) for name, ratio in ratios.items()},
        len(pictures),
        len(calibration.pictures),
        steps_off(model.network, quantised),
    )


def rounded(ratio_db: float) -> float | None:
    """Two decimals, None where it is no number."""
    return round(ratio_db, 2) if math.isfinite(ratio_db) else None


def warning_of(heads_db: Mapping[str, float | None]) -> str:
    """heads_db: SQNR by head. The sentence where one is too low, else nothing."""
    low = [f"{name} {_told(ratio)}" for name, ratio in heads_db.items() if ratio is not None and ratio < LEAST_SQNR_DB]
    if not low:
        return ""
    return (
        f"the integers are far from the float network: SQNR at the heads is below {LEAST_SQNR_DB:g} dB "
        f"({', '.join(low)}), expect wrong boxes and classes; --calibrate with pictures of the kind that it will see, "
        "take --zero-points and --reconstruct, which cost no cycle, more --bits, or a network that was trained with "
        "these bits"
    )


def _told_off(steps: Mapping[str, int]) -> str:
    worst = max(steps, key=lambda name: steps[name])
    return (
        f"functions in pieces of lines: {len(steps)}, at most {steps[worst]} step(s) of the output off, {worst} "
        "(computed for every value of the input)"
    )


def _told(ratio_db: float | None) -> str:
    return "exact" if ratio_db is None else f"{ratio_db:.1f} dB"
