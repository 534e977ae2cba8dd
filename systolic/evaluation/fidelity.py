"""The SQNR of a quantised network's outputs (its heads) against the float network, and the warning if it is low."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cnn.ops import QConvolution, QDense
from cnn.quantisation.fidelity import heads_sqnr_db, table_errors
from cnn.quantized import QuantizedNetwork
from systolic.model import Calibration, Model, sample_pictures
from systolic.pictures import network_inputs

MIN_SQNR_DB = 15.0
"""The SQNR below which a head is reported. At 15 dB, the RMS error is more than a sixth of the RMS signal.

8 bits keep even random weights above this limit. 4 bits do not reach it without training
(docs/explanation/quantisation.md).
"""

PICTURES = 2
"""The number of images that the SQNR is measured on. More images give the same ratio, and each takes a second for a
large network."""


MAX_BITS = 16
"""The most bits that an engine's weights can have."""

LOW_BITS = 4
"""The most bits for which --reconstruct and --zero-points gain more than they may lose
(docs/explanation/quantisation.md)."""


@dataclass(frozen=True)
class Tried:
    """The quantisation options that were used for a network, so that advice on a low SQNR names only other options.

    Attributes:
        trained: Whether the network was quantised by training, so that its integers are part of the model.
        random: Whether the weights are random numbers of a seed.
        bits: The most weight bits of any layer.
        calibrated: Whether the user gave the calibration images.
        reconstruct: Whether the option --reconstruct was used.
        zero_points: Whether the option --zero-points was used.
        mixed: Whether the bits were chosen per layer.
        generated: Whether the network was read from a generated design, which does not record the other options.
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
        """Return the quantisation options that ``quantise_model`` was called with."""
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
        """The quantisation options that could still raise the SQNR, as the end of a sentence."""
        if self.trained:
            return "the integers are part of the network, and no quantisation option changes them"
        if self.random:
            return "the weights are random numbers of --seed: take a trained network, or give its --weights"
        if self.generated:
            remedies = ["generate it again with more --bits"] if self.bits < MAX_BITS else []
            return " or ".join([*remedies, *self._training]) or "more bits are not available"
        remedies = [] if self.calibrated else ["--calibrate with pictures like those that it will process"]
        few = self.bits <= LOW_BITS or self.mixed
        free = [] if self.reconstruct or not few else ["--reconstruct"]
        free += [] if self.zero_points or self.mixed or not few else ["--zero-points"]
        remedies += [f"take {' and '.join(free)}, which cost no cycle"] if free else []
        more = "take --bits 8 in place of --mixed" if self.mixed else f"take --bits {2 * self.bits}"
        remedies += [more] if self.bits < MAX_BITS else []
        return ", or ".join([*remedies, *self._training]) or "more bits are not available"

    @property
    def _training(self) -> list[str]:
        """The advice to train the network, as a list of one; empty at 16 bits, because training gives at most 8."""
        return ["train its integers with systolic train"] if self.bits < MAX_BITS else []


def weight_bits(network: QuantizedNetwork) -> int:
    """Return the most weight bits of any layer, or 8 for a network without weights."""
    ops = (node.op for node in network.nodes)
    return max((op.weight_type.bits for op in ops if isinstance(op, (QConvolution, QDense))), default=8)


@dataclass(frozen=True)
class HeadFidelity:
    """The SQNR in dB of the network's outputs (heads) on the golden model, against the float network.

    Attributes:
        sqnr_db: The SQNR in dB by the head's name. None if the head is exact or all zeros.
        measured: The number of images that the SQNR was measured on.
        calibrated: The number of images that the network was calibrated on.
        table_errors: By the name of each layer with a piecewise-linear table, its greatest error over all inputs, in
            quantisation steps of its output.
        tried: The quantisation options that were used.
    """

    sqnr_db: Mapping[str, float | None]
    measured: int
    calibrated: int
    table_errors: Mapping[str, int]
    tried: Tried

    @property
    def warning(self) -> str:
        """The warning if an output's SQNR is below ``MIN_SQNR_DB``, else ""."""
        return warning_of(self.sqnr_db, self.tried)

    def values(self) -> dict[str, Any]:
        """Return the SQNR of the heads, the number of images and the table errors as a JSON object."""
        return {"sqnr_db": dict(self.sqnr_db), "pictures": self.measured, "steps_off": dict(self.table_errors)}

    def text(self) -> str:
        """Return the SQNR of the heads as a line for a terminal, and a second line for piecewise-linear tables."""
        ratios = ", ".join(f"{name} {_told(ratio)}" for name, ratio in self.sqnr_db.items())
        pictures = f"{self.measured} of {self.calibrated} calibration pictures"
        heads = f"SQNR at the heads: {ratios} (measured on the golden model, against the float network, on {pictures})"
        return heads + (f"\n{_told_off(self.table_errors)}" if self.table_errors else "")


def head_fidelity(model: Model, quantised: QuantizedNetwork, calibration: Calibration) -> HeadFidelity | None:
    """Measure the SQNR of the network's outputs on the first ``PICTURES`` calibration images.

    Return None for a network that was quantised by training, because it does not approximate a float network.

    Raises:
        SystolicError: An error of ``network_inputs`` for an image that cannot be read.
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
        table_errors(model.network, quantised),
        Tried.of(model, quantised, calibration),
    )


def rounded(ratio_db: float) -> float | None:
    """Return an SQNR in dB rounded to two decimals, or None if it is infinite or NaN."""
    return round(ratio_db, 2) if math.isfinite(ratio_db) else None


def warning_of(heads_db: Mapping[str, float | None], tried: Tried) -> str:
    """Return a warning that names the outputs (heads) with too low an SQNR and the remedies not tried yet, or "".

    Args:
        heads_db: The SQNR in dB by the head's name.
        tried: The quantisation options that were used.
    """
    low = [f"{name} {_told(ratio)}" for name, ratio in heads_db.items() if ratio is not None and ratio < MIN_SQNR_DB]
    if not low:
        return ""
    return (
        f"the integers are far from the float network: SQNR at the heads is below {MIN_SQNR_DB:g} dB "
        f"({', '.join(low)}). Expect wrong boxes and classes; {tried.advice}"
    )


def _told_off(steps: Mapping[str, int]) -> str:
    worst = max(steps, key=lambda name: steps[name])
    return (
        f"piecewise-linear tables: {len(steps)}, with an error of at most {steps[worst]} step(s) of the output, at "
        f"{worst} (computed for every value of the input)"
    )


def _told(ratio_db: float | None) -> str:
    return "exact" if ratio_db is None else f"{ratio_db:.1f} dB"
