"""The requantiser that gives the integers of the file: compared with it over all sums that a layer can reach.

What a file does to a sum only rises with it. So all of it is told by the least sum that reaches each of the output's
integers, and so is what a requantiser does: both are equal where these sums are, and where they are not, as many sums
differ as lie between. The choice is made by that count:

    Requantiser     bias and zero point are added to the sum, as whole numbers
    MultiplyShift   they are added to the product, where a sum's 1 is 2^s / multiplier times as much: where the first
                    form differs from the file and this one differs less

each with halves rounded up, or to even as the file rounds them where that differs less.

A multiplier has 16 bits. A file's factor that is no power of two is a float32 number of 24, and where sums take many
values no 16 bits tell all of them apart as it does. Then the multiplier and the offset with the fewest differences are
taken, and the count is told.
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
    beyond_zero,
    requantise,
)
from cnn.tables import VALUES_BITS

Doubles = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]

MOST_LEVELS = 1 << 18
"""Integers that are looked at of an output of more bits than a table of values has, in all channels together: some of
them, drawn at random, as what is evenly apart has one parity."""

LEAST_LEVELS = 1 << 10
"""The least number of them in each channel."""

BESIDE = (0, -1, 1)
"""Multipliers and biases next to the nearest that are tried."""

GREATEST_RATIO = (1 << 15) - 1.0
"""Steps of the output that a sum's 1 has in a requantiser. What has more is beyond the ends of INT16 either way."""

BIAS_LIMIT = 1 << 30
"""Of biases of pixels: their sums are far below."""

OFFSET_LIMIT = PRODUCT_BIAS_LIMIT >> 1
"""Of an offset of a product: what the array adds for pixels is to fit beside it."""

MOST_FLOAT = float(np.finfo(np.float32).max)

PIXELS = np.arange(256, dtype=np.int64)

MOST_SUMS = float(1 << 40)
"""Offsets, in sums, that are looked at closely: beyond is more than any sum."""

WHOLE_SUMS = 1e-6
"""How far from a whole number, as a part of it, an offset may be that was one before it was written as float32."""


@dataclass(frozen=True, eq=False)
class Reach:
    """The least and the greatest sum of each channel, and a bound of all partial sums."""

    low: Longs
    high: Longs
    greatest: Longs


@dataclass(frozen=True, eq=False)
class FileRequantiser:
    """What the file makes of a channel's sums: y = round(ratio · sum + offset) + zero, a half to even, between the ends
    of ``datatype``; what is rounded is ``slope`` times as much where it is below 0. zero_first: the zero point is
    added before the rounding and not after it, as in QONNX; halves differ by that if the zero point is odd.

    An offset that is a whole number of sums is an integer of the file, and then the product is float32's, as
    onnxruntime has it.
    """

    ratio: Doubles
    offset: Doubles
    zero: int
    datatype: DataType
    slope: float
    zero_first: bool = False

    @property
    def halves(self) -> str:
        """How a half of y is rounded: one of HALVES."""
        return EVEN if self.zero_first else beyond_zero(EVEN, self.zero)

    @property
    def channels(self) -> int:
        """Number of channels."""
        return int(self.ratio.size)

    @cached_property
    def _added(self) -> tuple[npt.NDArray[np.bool_], Longs]:
        """Return where the offset is a whole number of sums, and that number, both [channels, 1]."""
        sums = np.clip(self.offset / self.ratio, -MOST_SUMS, MOST_SUMS)[:, None]
        whole = np.rint(sums)
        return np.abs(sums - whole) <= WHOLE_SUMS * np.maximum(1, np.abs(whole)), whole.astype(np.int64)

    def values(self, sums: Longs) -> Doubles:
        """Return the integers of sums [channels, …] before they saturate."""
        exact, added = self._added
        ratio = self.ratio[:, None]
        factor = np.minimum(ratio, MOST_FLOAT).astype(np.float32)
        single = ((sums + added).astype(np.float32) * factor).astype(np.float64)
        product = np.where(exact, single, ratio * sums + self.offset[:, None])
        bent = np.where(product < 0, self.slope * product, product)
        return np.asarray(np.rint(bent + self.zero) if self.zero_first else np.rint(bent) + self.zero)

    def edges(self, levels: Longs, reach: Reach) -> Longs:
        """The least sum [channels, levels] within ``reach`` that gives a level or more, one above its end for none."""
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
    """A requantiser; how many sums each channel reaches, and of how many it gives another integer than the file."""

    by: Requantiser | MultiplyShift
    differing: Longs
    sums: Longs


def fitted(rule: FileRequantiser, reach: Reach, activation: str, node: Node, late: bool = True) -> Fit:
    """The requantiser of a layer; where all sums have the file's integers, the one that adds to sums.

    activation: what the requantiser does below 0; where it is not linear, or not ``late``, only sums are added to.
    """
    datatype = rule.datatype
    levels = np.arange(datatype.low + 1, datatype.high + 1, dtype=np.int64)
    count = max(LEAST_LEVELS, MOST_LEVELS // rule.channels)
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
    """Of pixels that a weight of 1 only brings to another type: the least whole number up to ``most`` that may be that
    weight instead, so that every pixel has the file's integer, and the requantiser; where none does it, the one with
    the fewest differences."""
    exact = np.clip(rule.values(PIXELS[None]), rule.datatype.low, rule.datatype.high)
    best: tuple[int, Fit | None] = 1, None
    found = 1 << 62
    for factor in range(1, most + 1):
        ratio = np.minimum(rule.ratio / factor, GREATEST_RATIO)
        bias = np.rint(np.clip((rule.offset + rule.zero) / ratio, -BIAS_LIMIT, BIAS_LIMIT)).astype(np.int64)
        nearest = requantiser_for(ratio, bias, activation, node)
        for more in BESIDE:
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
    """Return the Requantiser with the fewest differences, among biases and multipliers close to the nearest ones."""
    room = (1 << 31) - 1 - reach.greatest
    bias = np.rint(np.clip((rule.offset + rule.zero) / rule.ratio, -room, room)).astype(np.int64)
    nearest = requantiser_for(np.minimum(rule.ratio, GREATEST_RATIO), bias, activation, node)
    rows = np.stack([nearest.bias, nearest.multiplier, nearest.negative])
    needed = least_products(levels, nearest.shift[:, None], halves)
    best, least = rows.copy(), _between(_edges_early(rows, needed), edges, reach)
    for more in ((b, m) for b in BESIDE for m in BESIDE if b or m):
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
    """By a MultiplyShift: of multipliers beside the nearest those with the fewest differences, each with the offset of
    the file or the one in the middle of all that it might be."""
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
    for beside in BESIDE:
        multiplier = np.clip(nearest + beside, 0, MULTIPLIER_LIMIT)
        for offset in (_middle(multiplier, needed, edges, reach, given), given):
            offset = np.clip(offset, -OFFSET_LIMIT, OFFSET_LIMIT)
            tried = np.stack([multiplier, offset])
            differing = _between(_least(needed - offset[:, None], multiplier[:, None]), edges, reach)
            best, least = _better(differing < least, (best, least), (tried, differing))
            if not least.any():
                break
    return MultiplyShift(best[0], best[1], shift, halves=halves), least


def _better(where: npt.NDArray[np.bool_], old: tuple[Longs, Longs], new: tuple[Longs, Longs]) -> tuple[Longs, Longs]:
    return np.where(where, new[0], old[0]), np.where(where, new[1], old[1])


def _middle(multiplier: Longs, needed: Longs, edges: Longs, reach: Reach, otherwise: Longs) -> Longs:
    """Of all offsets with which every edge reaches its level, and the sum below does not, the one in the middle; where
    there is none, the one that misses by least on both sides. Where no sum has an edge, ``otherwise``."""
    far = np.int64(1) << 62
    products = edges * multiplier[:, None]
    at_least = np.where(edges <= reach.high[:, None], needed - products, -far).max(axis=1)
    at_most = np.where(edges > reach.low[:, None], needed - products + multiplier[:, None] - 1, far).min(axis=1)
    bounded = (at_least > -far) & (at_most < far)
    one = np.where(at_least > -far, np.maximum(at_least, otherwise), np.minimum(at_most, otherwise))
    return np.asarray(np.where(bounded, (at_least >> 1) + (at_most >> 1), one))


def _edges_early(rows: Longs, needed: Longs) -> Longs:
    """Return the least sum whose product by a Requantiser of bias, multiplier and negative is ``needed`` or more."""
    bias, multiplier, negative = (row[:, None] for row in rows)
    below = np.minimum(_least(needed, negative), 0)
    return np.asarray(np.where(needed <= 0, below, _least(needed, multiplier)) - bias)


def _least(needed: Longs, multiplier: Longs) -> Longs:
    """The least sum with sum · multiplier ≥ needed; ∓2^62 where the multiplier is 0, as every sum or none does."""
    constant = np.where(needed <= 0, -(np.int64(1) << 62), np.int64(1) << 62)
    return np.asarray(np.where(multiplier == 0, constant, -(-needed // np.maximum(multiplier, 1))))


def _between(ours: Longs, edges: Longs, reach: Reach) -> Longs:
    """Count the reachable sums of each channel between both edges, where the integers differ."""
    inside = np.clip(ours, reach.low[:, None], reach.high[:, None] + 1)
    return np.asarray(np.abs(inside - edges).sum(axis=1))
