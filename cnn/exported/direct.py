"""Requantisers that no batch norm is behind: thresholds, inc and bias that a file gives, and sums of maps."""

from __future__ import annotations

from math import ceil, log2

import numpy as np

from boards.errors import InvalidValueError, UnsupportedError
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

    InvalidValueError if a row goes up and down.
    """
    steps = np.diff(rows, axis=1)
    sinks = np.any(steps < 0, axis=1)
    mixed = np.flatnonzero(sinks & np.any(steps > 0, axis=1))
    if mixed.size:
        what = f"the thresholds of filter {mixed[0]} of {step.layer.name!r}"
        raise InvalidValueError(what, rows[mixed[0]].tolist(), "rising or falling", where=step.layer.source)
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

    InvalidValueError if they are not, RangeError if they need too many bits, UnsupportedError if −1 and +1 leave, which
    only thresholds give.
    """
    if step.out == BIPOLAR:
        subject, remedy = f"{GIVEN_MULTIPLIERS!r} for −1 and +1", f"say 'requantise': {GIVEN!r}"
        raise UnsupportedError(subject, "they come from thresholds", where=step.layer.source, remedy=remedy)
    for name, values in (("inc", inc), ("bias", bias)):
        wrong = values[values != np.rint(values)]
        if wrong.size:
            what = f"a number of conv{step.kernel.number}_{name}"
            required = f"whole, since the network file says {GIVEN_MULTIPLIERS!r}"
            raise InvalidValueError(what, float(wrong[0]), required, where=step.layer.source, remedy="export it again")
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
