"""How near a design's integers come to the float network where it counts, at the heads, and when that is too far."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cnn.ops import QConvolution, QDense
from cnn.quantisation.fidelity import heads_sqnr_db, steps_off
from cnn.quantized import QuantizedNetwork
from systolic.model import Calibration, Model, sample_pictures
from systolic.pictures import network_inputs

LEAST_SQNR_DB = 15.0
"""Below it the error is more than a sixth of the signal. 8 bits keep even random weights above it; 4 bits that were not
trained do not reach it (docs/explanation/quantisation.md)."""

PICTURES = 2
"""That it is measured on: the more pictures, the same ratio, and each takes a second for a large network."""


MOST_BITS = 16
"""Of an engine's weights."""

LOW_BITS = 4
"""Up to which --reconstruct and --zero-points gain more than they may lose (docs/explanation/quantisation.md)."""


@dataclass(frozen=True)
class Tried:
    """How integers were made: advice names only what was not tried.

    trained: they came with the network. random: a seed drew the weights. bits: the greatest of a layer's weights.
    calibrated: on pictures of the user's own. mixed: bits by layer, in place of one number. generated: into a design,
    which does not say what else was tried.
    """

    trained: bool = False
    random: bool = False
    bits: int = 8
    calibrated: bool = False
    reconstruct: bool = False
    zero_points: bool = False
    mixed: bool = False
    generated: bool = False

    @staticmethod
    def of(model: Model, quantised: QuantizedNetwork, calibration: Calibration) -> Tried:
        """What was asked of ``quantise_model``."""
        embedded = sample_pictures()
        return Tried(
            trained=model.quantized is not None,
            random=model.random,
            bits=weight_bits(quantised),
            calibrated=not all(isinstance(each, Path) and each in embedded for each in calibration.pictures),
            reconstruct=calibration.reconstruct,
            zero_points=calibration.zero_points,
            mixed=calibration.mixed is not None,
        )

    @property
    def advice(self) -> str:
        """The remedies that are left, as the end of a sentence."""
        if self.trained:
            return "they came with the network, so that no option of quantisation changes them"
        if self.random:
            return "its weights are random numbers of --seed: take a trained network, or give its --weights"
        if self.generated:
            remedies = ["generate it again with more --bits"] if self.bits < MOST_BITS else []
            return " or ".join([*remedies, *self._training]) or "no more bits are to be had"
        remedies = [] if self.calibrated else ["--calibrate with pictures of the kind that it will see"]
        few = self.bits <= LOW_BITS or self.mixed
        free = [] if self.reconstruct or not few else ["--reconstruct"]
        free += [] if self.zero_points or self.mixed or not few else ["--zero-points"]
        remedies += [f"take {' and '.join(free)}, which cost no cycle"] if free else []
        more = "take --bits 8 in place of --mixed" if self.mixed else f"take --bits {2 * self.bits}"
        remedies += [more] if self.bits < MOST_BITS else []
        return ", or ".join([*remedies, *self._training]) or "no more bits are to be had"

    @property
    def _training(self) -> list[str]:
        """systolic train has at most 8 bits."""
        return ["train its integers with systolic train"] if self.bits < MOST_BITS else []


def weight_bits(network: QuantizedNetwork) -> int:
    """The greatest of a layer's weights, 8 of a network without any."""
    ops = (node.op for node in network.nodes)
    return max((op.weight_type.bits for op in ops if isinstance(op, (QConvolution, QDense))), default=8)


@dataclass(frozen=True)
class HeadFidelity:
    """sqnr_db: by head, None where it is exact or all zeros. measured: pictures, of those calibrated on. steps_off: by
    each function that is looked up in pieces of lines the most steps of its output that it is off, over all inputs."""

    sqnr_db: Mapping[str, float | None]
    measured: int
    calibrated: int
    steps_off: Mapping[str, int]
    tried: Tried

    @property
    def warning(self) -> str:
        """A sentence where a head is below LEAST_SQNR_DB, else nothing."""
        return warning_of(self.sqnr_db, self.tried)

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
        Tried.of(model, quantised, calibration),
    )


def rounded(ratio_db: float) -> float | None:
    """Two decimals, None where it is no number."""
    return round(ratio_db, 2) if math.isfinite(ratio_db) else None


def warning_of(heads_db: Mapping[str, float | None], tried: Tried) -> str:
    """heads_db: SQNR by head. The sentence where one is too low, with what was not tried, else nothing."""
    low = [f"{name} {_told(ratio)}" for name, ratio in heads_db.items() if ratio is not None and ratio < LEAST_SQNR_DB]
    if not low:
        return ""
    return (
        f"the integers are far from the float network: SQNR at the heads is below {LEAST_SQNR_DB:g} dB "
        f"({', '.join(low)}), expect wrong boxes and classes; {tried.advice}"
    )


def _told_off(steps: Mapping[str, int]) -> str:
    worst = max(steps, key=lambda name: steps[name])
    return (
        f"functions in pieces of lines: {len(steps)}, at most {steps[worst]} step(s) of the output off, {worst} "
        "(computed for every value of the input)"
    )


def _told(ratio_db: float | None) -> str:
    return "exact" if ratio_db is None else f"{ratio_db:.1f} dB"
