"""Fits the requantiser that gives the file's integers for all sums that a layer can reach.

In a file, the output integer is a monotonic function of the sum. So the least sum that reaches each output integer
describes the function completely, for the file and for a requantiser. Two functions differ for the sums between their
edges. The requantiser with the fewest differing sums is chosen:

    Requantiser: bias and zero point are added to the sum, as whole numbers.

    MultiplyShift: they are added to the product, which is finer than the sum: a sum of 1 counts as ``multiplier``. This
    form is tried if the first form differs from the file, and is taken if it differs less.

Each form is tried with halves rounded up, and then with halves rounded to even as in the file.

A multiplier has 16 bits. A file's factor that is not a power of two is a float32 number of 24 bits. If sums take many
values, 16 bits cannot separate all of them as the file does. Then the multiplier and the offset with the fewest
differences are taken, and the number of differences is reported.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cnn.datatype import DataType
from cnn.network import Node
from cnn.quantisation.quantise import requantiser_for
from cnn.quantisation.thresholds import least_products
from cnn.requantise import (
    EVEN,
    MULTIPLIER_LIMIT,
    PRODUCT_BIAS_LIMIT,
    SHIFT_LIMIT,
    UP,
    MultiplyShift,
    Requantiser,
    requantise,
    rounding_after_offset,
)
from cnn.tables import VALUES_BITS

Doubles = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]

MAX_LEVELS = 1 << 18
"""The most levels that are compared in all channels together, if an output has more bits than a table of values.

They are drawn at random, because levels at equal distances would all have the same parity.
"""

MIN_LEVELS = 1 << 10
"""The least number of levels that are compared in each channel."""

NEIGHBOURS = (0, -1, 1)
"""Offsets from the nearest multiplier and bias that are tried."""

GREATEST_RATIO = (1 << 15) - 1.0
"""The most steps of the output that a sum of 1 counts in a requantiser. A greater ratio saturates INT16 in any case."""

BIAS_LIMIT = 1 << 30
"""The limit of the biases of pixels. Their sums are far below this."""

OFFSET_LIMIT = PRODUCT_BIAS_LIMIT >> 1
"""The limit of the offset of a product. The terms that the array adds for pixels must fit in addition."""

MAX_FLOAT = float(np.finfo(np.float32).max)

PIXELS = np.arange(256, dtype=np.int64)

MAX_SUMS = float(1 << 40)
"""The limit of offsets, in sums. A greater offset exceeds every sum."""

WHOLE_SUMS = 1e-6
"""The greatest relative distance from a whole number of an offset that was whole before it was stored as float32."""


@dataclass(frozen=True, eq=False)
class Reach:
    """The range of integer sums (accumulators) that each channel of a layer can have.

    Attributes:
        low: The least sum of each channel.
        high: The greatest sum of each channel.
        greatest: A bound of |partial sum| of each channel, for any order of adding.
    """

    low: Longs
    high: Longs
    greatest: Longs


@dataclass(frozen=True, eq=False)
class FileRequantiser:
    """The requantisation that a file states in floats: y = round(ratio · sum + offset) + zero, clipped to ``datatype``.

    Halves are rounded to even. If an offset is a whole number of sums, the file stores it as an integer. The product is
    then a float32 number, as onnxruntime computes it.

    Attributes:
        ratio: The factor of a sum, [channels], in steps of the output.
        offset: [channels], in steps of the output.
        zero: The output's zero point.
        datatype: The output's datatype.
        slope: The factor of a value below 0, before rounding.
        zero_first: Whether the zero point is added before rounding, as in QONNX, and not after it. This changes the
            rounding of halves if the zero point is odd.
    """

    ratio: Doubles
    offset: Doubles
    zero: int
    datatype: DataType
    slope: float
    zero_first: bool = False

    @property
    def halves(self) -> str:
        """The rounding of halves of y: UP, EVEN or ODD."""
        return EVEN if self.zero_first else rounding_after_offset(EVEN, self.zero)

    @property
    def channels(self) -> int:
        """The number of output channels."""
        return int(self.ratio.size)

    @cached_property
    def _added(self) -> tuple[npt.NDArray[np.bool_], Longs]:
        """Return two arrays [channels, 1]: is a channel's offset a whole number of sums, and the nearest number?"""
        sums = np.clip(self.offset / self.ratio, -MAX_SUMS, MAX_SUMS)[:, None]
        whole = np.rint(sums)
        return np.abs(sums - whole) <= WHOLE_SUMS * np.maximum(1, np.abs(whole)), whole.astype(np.int64)

    def values(self, sums: Longs) -> Doubles:
        """Return the output integers that the file gives for sums [channels, …], before they saturate."""
        exact, added = self._added
        ratio = self.ratio[:, None]
        factor = np.minimum(ratio, MAX_FLOAT).astype(np.float32)
        single = ((sums + added).astype(np.float32) * factor).astype(np.float64)
        product = np.where(exact, single, ratio * sums + self.offset[:, None])
        bent = np.where(product < 0, self.slope * product, product)
        return np.asarray(np.rint(bent + self.zero) if self.zero_first else np.rint(bent) + self.zero)

    def edges(self, levels: Longs, reach: Reach) -> Longs:
        """Return, per channel and level, the least sum within ``reach`` whose output is that level or more.

        It is one above the reach if no sum does.
        """
        low, high = reach.low[:, None] - 1, reach.high[:, None] + 1
        ratio, offset = self.ratio[:, None], self.offset[:, None]
        needed = levels - 0.5 - self.zero
        needed = np.where(needed < 0, needed / self.slope if self.slope else -np.inf, needed)
        near = (needed - offset) / ratio
        room = 2 + np.abs(np.where(np.isfinite(near), near, 0)) * 2.0**-21 + np.abs(offset / ratio) * 2.0**-21
        below = np.clip(np.floor(near - room), low, high - 1).astype(np.int64)
        above = np.clip(np.ceil(near + room), low + 1, high).astype(np.int64)
        while bool((apart := above - below > 1).any()):
            middle = (above + below) >> 1
            reaches = self.values(middle) >= levels
            above, below = np.where(apart & reaches, middle, above), np.where(apart & ~reaches, middle, below)
        return above


@dataclass(frozen=True, eq=False)
class Fit:
    """An integer requantiser fitted to a file's float requantisation, and the number of sums that differ from it.

    Attributes:
        by: The requantiser.
        differing: The number of sums of each channel that give another integer than in the file.
        sums: The number of sums that each channel reaches.
    """

    by: Requantiser | MultiplyShift
    differing: Longs
    sums: Longs


def fitted(rule: FileRequantiser, reach: Reach, activation: str, node: Node, late: bool = True) -> Fit:
    """Return the integer requantiser of a layer that differs from the file's requantisation for the fewest sums.

    If several have none, the first is taken: a Requantiser before a MultiplyShift.

    Args:
        rule: The requantisation in the file.
        reach: The sums that the layer can reach.
        activation: The requantiser's activation. A MultiplyShift is tried only for "linear".
        node: The layer, for errors.
        late: Whether other forms than a Requantiser that rounds halves up may be tried.
    """
    datatype = rule.datatype
    levels = np.arange(datatype.low + 1, datatype.high + 1, dtype=np.int64)
    count = max(MIN_LEVELS, MAX_LEVELS // rule.channels)
    if datatype.bits > VALUES_BITS and levels.size > count:
        levels = np.sort(np.random.default_rng(count).choice(levels, count, replace=False))
    edges = rule.edges(levels, reach)
    share = datatype.levels / levels.size
    by: Requantiser | MultiplyShift
    by, least = _early(rule, reach, activation, node, levels, edges, UP)
    for is_late, halves in ((False, rule.halves), (True, UP), (True, rule.halves)):
        if not late or not least.any() or (is_late and activation != "linear"):
            continue
        other, differing = (
            _late(rule, reach, levels, edges, halves)
            if is_late
            else _early(rule, reach, activation, node, levels, edges, halves)
        )
        by, least = (other, differing) if differing.sum() < least.sum() else (by, least)
    return Fit(by, np.ceil(least * share).astype(np.int64), reach.high - reach.low + 1)


def fitted_to_pixels(rule: FileRequantiser, activation: str, node: Node, most: int) -> tuple[int, Fit]:
    """Return the weight and requantiser that convert input pixels to a quantised type with the fewest differences.

    The weight is the least, up to ``most``, with which every pixel gets the file's integer. If there is none, the
    weight with the fewest differences is returned.
    """
    exact = np.clip(rule.values(PIXELS[None]), rule.datatype.low, rule.datatype.high)
    best: tuple[int, Fit | None] = 1, None
    found = 1 << 62
    for factor in range(1, most + 1):
        ratio = np.minimum(rule.ratio / factor, GREATEST_RATIO)
        bias = np.rint(np.clip((rule.offset + rule.zero) / ratio, -BIAS_LIMIT, BIAS_LIMIT)).astype(np.int64)
        nearest = requantiser_for(ratio, bias, activation, node)
        for more in NEIGHBOURS:
            by = replace(nearest, bias=nearest.bias + more)
            given = requantise(np.tile(PIXELS * factor, (rule.channels, 1)), by, rule.datatype)
            differing = (given != exact).sum(axis=1)
            if differing.sum() < found:
                best, found = (factor, Fit(by, differing, np.full(rule.channels, PIXELS.size))), int(differing.sum())
        if not found:
            break
    factor, fit = best
    assert fit is not None
    return factor, fit


def _early(
    rule: FileRequantiser, reach: Reach, activation: str, node: Node, levels: Longs, edges: Longs, halves: str
) -> tuple[Requantiser, Longs]:
    """Return the best-fitting Requantiser (bias before the product), among biases and multipliers near the
    exact ones."""
    room = (1 << 31) - 1 - reach.greatest
    bias = np.rint(np.clip((rule.offset + rule.zero) / rule.ratio, -room, room)).astype(np.int64)
    nearest = requantiser_for(np.minimum(rule.ratio, GREATEST_RATIO), bias, activation, node)
    rows = np.stack([nearest.bias, nearest.multiplier, nearest.negative])
    needed = least_products(levels, nearest.shift[:, None], halves)
    best, least = rows.copy(), _between(_edges_early(rows, needed), edges, reach)
    for more in ((b, m) for b in NEIGHBOURS for m in NEIGHBOURS if b or m):
        if not least.any():
            break
        tried = rows + np.array([more[0], more[1], 0])[:, None]
        if activation == "linear":
            tried[2] = tried[1]
        differing = _between(_edges_early(tried, needed), edges, reach)
        fits = (np.abs(tried[0]) <= room) & (tried[1] >= 1) & (tried[1] <= MULTIPLIER_LIMIT)
        best, least = _better(fits & (differing < least), (best, least), (tried, differing))
    return Requantiser(best[0], best[1], best[2], nearest.shift, halves=halves), least


def _late(rule: FileRequantiser, reach: Reach, levels: Longs, edges: Longs, halves: str) -> tuple[MultiplyShift, Longs]:
    """Return the best-fitting MultiplyShift (bias after the product), tried with multipliers near the exact ones.

    Each multiplier is tried with the file's offset, and with the middle of all offsets that may be right.
    """
    ratio = np.minimum(rule.ratio, GREATEST_RATIO)
    reached = ratio * reach.greatest + 2
    at_zero = np.clip(rule.offset + rule.zero, rule.datatype.low - reached, rule.datatype.high + reached)
    exponent = np.maximum(np.frexp(ratio)[1] - 16, np.frexp(np.abs(at_zero) + 1)[1] - 46)
    shift = np.clip(-exponent, 1, SHIFT_LIMIT).astype(np.int64)
    shift -= np.rint(np.ldexp(ratio, shift.astype(np.int32))) > MULTIPLIER_LIMIT
    shift = np.maximum(shift, 1)
    nearest = np.rint(np.ldexp(ratio, shift.astype(np.int32))).astype(np.int64)
    needed = least_products(levels, shift[:, None], halves)
    given = np.rint(np.ldexp(at_zero, shift.astype(np.int32))).astype(np.int64)
    best, least = np.stack([nearest, given]), np.full(rule.channels, 1 << 62, np.int64)
    for step in NEIGHBOURS:
        multiplier = np.clip(nearest + step, 0, MULTIPLIER_LIMIT)
        for offset in (_middle(multiplier, needed, edges, reach, given), given):
            offset = np.clip(offset, -OFFSET_LIMIT, OFFSET_LIMIT)
            tried = np.stack([multiplier, offset])
            differing = _between(_least(needed - offset[:, None], multiplier[:, None]), edges, reach)
            best, least = _better(differing < least, (best, least), (tried, differing))
            if not least.any():
                break
    return MultiplyShift(best[0], best[1], shift, halves=halves), least


def _better(where: npt.NDArray[np.bool_], old: tuple[Longs, Longs], new: tuple[Longs, Longs]) -> tuple[Longs, Longs]:
    """Return the new parameters and error counts for the channels in ``where``, and the old ones for the others."""
    return np.where(where, new[0], old[0]), np.where(where, new[1], old[1])


def _middle(multiplier: Longs, needed: Longs, edges: Longs, reach: Reach, otherwise: Longs) -> Longs:
    """Return, per channel, the middle of all offsets with which each output value begins at the same sum as in the
    file.

    If there is no such offset, return the one with the least error on both sides. If no sum has an edge, return
    ``otherwise``.
    """
    far = np.int64(1) << 62
    products = edges * multiplier[:, None]
    at_least = np.where(edges <= reach.high[:, None], needed - products, -far).max(axis=1)
    at_most = np.where(edges > reach.low[:, None], needed - products + multiplier[:, None] - 1, far).min(axis=1)
    bounded = (at_least > -far) & (at_most < far)
    one = np.where(at_least > -far, np.maximum(at_least, otherwise), np.minimum(at_most, otherwise))
    return np.asarray(np.where(bounded, (at_least >> 1) + (at_most >> 1), one))


def _edges_early(rows: Longs, needed: Longs) -> Longs:
    """Return, per channel, the least sums s for which (s + bias) · multiplier reaches the products ``needed``.

    Args:
        rows: A Requantiser's bias, its multiplier, and its multiplier for negative s + bias, one value per channel.
        needed: The products that must be reached, (channels, edges).
    """
    bias, multiplier, negative = (row[:, None] for row in rows)
    below = np.minimum(_least(needed, negative), 0)
    return np.asarray(np.where(needed <= 0, below, _least(needed, multiplier)) - bias)


def _least(needed: Longs, multiplier: Longs) -> Longs:
    """Return the least integer sum with sum · multiplier ≥ needed.

    For a multiplier of 0 it is −2^62 if every sum satisfies this, and 2^62 if no sum does.
    """
    constant = np.where(needed <= 0, -(np.int64(1) << 62), np.int64(1) << 62)
    return np.asarray(np.where(multiplier == 0, constant, -(-needed // np.maximum(multiplier, 1))))


def _between(ours: Longs, edges: Longs, reach: Reach) -> Longs:
    """Return, per channel, how many reachable sums have another output: those between our edges and the file's."""
    inside = np.clip(ours, reach.low[:, None], reach.high[:, None] + 1)
    return np.asarray(np.abs(inside - edges).sum(axis=1))
