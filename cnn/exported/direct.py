"""Requantisers that no batch norm is behind: thresholds, inc and bias that a file gives, and sums of maps."""

from __future__ import annotations

from math import ceil, log2

import numpy as np

from boards.errors import NetworkError
from cnn.datatype import BIPOLAR, DataType
from cnn.exported.integers import Step, product_shift, shifted
from cnn.exported.topology import Topology
from cnn.network import FloatArray
from cnn.quantized import MultiplyShift, Requantiser, Thresholds
from cnn.quantized_check import THRESHOLD_LIMIT

GIVEN = "given_thresholds"
"""What a topology calls thresholds that are arrays of their own."""

GIVEN_MULTIPLIERS = "given_multiply_shift"
"""What it calls inc and bias that are."""

MULTIPLIER_BITS = 15


def given_thresholds(step: Step, rows: FloatArray) -> Thresholds:
    """As a file has them: float32 [filters, levels], each row rising, or falling where the layer does; the v-th sum is
    the least, or the greatest, that gives the v-th value above the least.

    NetworkError where a row goes up and down.
    """
    steps = np.diff(rows, axis=1)
    sinks = np.any(steps < 0, axis=1)
    mixed = np.flatnonzero(sinks & np.any(steps > 0, axis=1))
    if mixed.size:
        raise NetworkError(
            f"{step.layer.source}: the thresholds of a filter of {step.layer.name!r} must rise or fall, but those of "
            f"filter {mixed[0]} do both"
        )
    sums = np.ceil(np.where(sinks[:, None], -rows, rows).astype(np.float64))
    return Thresholds(np.clip(sums, -THRESHOLD_LIMIT, THRESHOLD_LIMIT).astype(np.int64), sinks)


def norm_of_thresholds(step: Step, rows: FloatArray) -> dict[str, FloatArray]:
    """The batch norm, its epsilon 0, that meets ``rows`` in the first and the last of each filter."""
    out = step.out
    edges = (np.arange(out.levels) + 0.5) * out.step + out.low
    width = (rows[:, -1] - rows[:, 0]).astype(np.float64)
    slope = np.divide(edges[-1] - edges[0], width, out=np.ones_like(width), where=width != 0)
    offset = edges[0] - slope * rows[:, 0]
    plain = np.zeros(len(rows), np.float32)
    gamma, beta = (np.asarray(values / out.high, np.float32) for values in (slope * step.sums, offset))
    return {"gamma": gamma, "beta": beta, "mean": plain, "var": plain + 1}


def given_multipliers(topology: Topology, step: Step, inc: FloatArray, bias: FloatArray) -> MultiplyShift:
    """As a file has them, whole numbers [filters]; the shift follows from the bits of the layer.

    NetworkError where they are none, need too many bits, or −1 and +1 leave, which only thresholds give.
    """
    if step.out == BIPOLAR:
        raise NetworkError(f"{step.layer.source}: −1 and +1 come from thresholds; say 'requantise': '{GIVEN}'")
    for name, values in (("inc", inc), ("bias", bias)):
        if not np.array_equal(values, np.rint(values)):
            raise NetworkError(
                f"{step.layer.source}: conv{step.kernel.number}_{name} must hold whole numbers, since the network file "
                f"says {GIVEN_MULTIPLIERS!r}; export it again"
            )
    return shifted(topology, step, inc, bias)


def norm_of_multipliers(topology: Topology, step: Step, inc: FloatArray, bias: FloatArray) -> dict[str, FloatArray]:
    """The batch norm, its epsilon 0, that ``inc`` and ``bias`` are."""
    unit = float(np.ldexp(step.out.high, product_shift(topology, step)))
    plain = np.zeros(len(inc), np.float32)
    gamma, beta = (np.asarray(values, np.float32) for values in (inc * (step.sums / unit), bias / unit))
    return {"gamma": gamma, "beta": beta, "mean": plain, "var": plain + 1}


def requantised_sum(scale: float, out: DataType, channels: int) -> Requantiser:
    """Of sums of which one is worth ``scale``: 1.0 becomes the greatest of ``out``, by a multiplier of 15 bits."""
    ratio = scale * out.high
    shift = MULTIPLIER_BITS - ceil(log2(ratio))
    full = (np.full(channels, value, np.int64) for value in (0, round(ratio * 2**shift), 0, shift))
    return Requantiser(*full)
