"""Calibration: what range of values each layer's output has over some pictures.

Memory does not grow with the number of pictures: each node has one exact maximum and one histogram of |x| whose limit
is a power of two. Where a greater value comes, the limit doubles and bins merge in pairs. So the counts do not depend
on the order of the pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from boards.errors import ChoiceError, InvalidValueError, MissingValueError, RangeError
from cnn.float_model import run_float
from cnn.maps import FloatArray
from cnn.network import Network
from cnn.quantisation.batch_norm import CHECK_WEIGHTS

BINS = 4096
METHODS = ("max", "percentile", "mse", "entropy")
PERCENTILE = 99.99
LEAST_COUNT = 1e-4
"""Stands for no values at all in a logarithm."""

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Histogram:
    """|x| of one node: ``counts`` [BINS] over 0…``limit``. Zeros are counted apart: any scale represents them."""

    counts: Counts
    zeros: int
    limit: float
    greatest: float


@dataclass(frozen=True, eq=False)
class Statistics:
    """One histogram a node, over ``pictures`` pictures."""

    histograms: tuple[Histogram, ...]
    pictures: int


@dataclass(frozen=True)
class CalibratedRanges:
    """Per node: ``values`` are the |x| that the greatest integer stands for, ``greatest`` the greatest |x| observed."""

    method: str
    values: tuple[float, ...]
    greatest: tuple[float, ...]


def calibrate(
    network: Network,
    pictures: Iterable[FloatArray],
    method: str = "max",
    *,
    bits: int = 8,
    percentile: float = PERCENTILE,
    progress: Callable[[int], None] | None = None,
) -> CalibratedRanges:
    """Run the float network over pictures (float32 [C, H, W], 0…1) and choose a range a node.

    method: "max" the greatest |x|; "percentile" the |x| that ``percentile`` % of all non-zero values
    stay below; "mse" the range with the least mean squared error at ``bits`` bits; "entropy" the range of the least
    Kullback-Leibler divergence between the values and the quantised ones (as NVIDIA's TensorRT calibrates).
    progress: called after each picture with the count so far. Errors as of its two parts.
    """
    return choose_ranges(observe(network, pictures, progress=progress), method, bits=bits, percentile=percentile)


def observe(
    network: Network, pictures: Iterable[FloatArray], *, progress: Callable[[int], None] | None = None
) -> Statistics:
    """Run the float network over pictures (float32 [C, H, W], 0…1); the statistics serve any number of methods.

    MissingValueError if no picture comes, InvalidValueError if a layer gives an infinite or undefined value.
    """
    histograms: tuple[Histogram, ...] = tuple(_empty() for _ in network.nodes)
    count = 0
    for picture in pictures:
        outputs = run_float(network, picture)
        histograms = tuple(
            _observe(h, output, node.place) for h, output, node in zip(histograms, outputs, network.nodes, strict=True)
        )
        count += 1
        if progress is not None:
            progress(count)
    if count == 0:
        raise MissingValueError("a picture", "calibration needs at least one", remedy="name some pictures")
    return Statistics(histograms, count)


def choose_ranges(
    statistics: Statistics, method: str = "max", *, bits: int = 8, percentile: float = PERCENTILE
) -> CalibratedRanges:
    """A range a node by one of the METHODS, which ``calibrate`` explains.

    ChoiceError for another method, RangeError for a percentile that is not 50…100.
    """
    if method not in METHODS:
        raise ChoiceError("the method of calibration", method, METHODS)
    if not 50 <= percentile <= 100:
        raise RangeError("the percentile", percentile, 50, 100)
    choose: dict[str, Callable[[Histogram], float]] = {
        "max": lambda h: h.greatest,
        "percentile": lambda h: _percentile(h, percentile),
        "mse": lambda h: _least(h, bits, _squared_error),
        "entropy": lambda h: _least(h, bits, _divergence),
    }
    values = tuple(choose[method](h) for h in statistics.histograms)
    return CalibratedRanges(method, values, tuple(h.greatest for h in statistics.histograms))


def ranges_by_bits(statistics: Statistics, method: str, bits: Sequence[int]) -> CalibratedRanges:
    """``choose_ranges`` with the bits of each node for its own."""
    by_bits = {count: choose_ranges(statistics, method, bits=count) for count in set(bits)}
    values = tuple(by_bits[count].values[index] for index, count in enumerate(bits))
    return CalibratedRanges(method, values, tuple(h.greatest for h in statistics.histograms))


def _empty() -> Histogram:
    return Histogram(np.zeros(BINS, np.int64), 0, 0.0, 0.0)


def _observe(histogram: Histogram, output: FloatArray, place: str) -> Histogram:
    values = np.abs(output.ravel())
    greatest = float(values.max(initial=0.0))
    if not np.isfinite(greatest):
        raise InvalidValueError("the values of a layer", greatest, "finite", where=place, remedy=CHECK_WEIGHTS)
    if greatest == 0.0:
        return Histogram(histogram.counts, histogram.zeros + values.size, histogram.limit, histogram.greatest)
    grown = _grow(histogram, greatest)
    # Limits and BINS are powers of two. A product with BINS / limit would overflow where all values are tiny.
    bins = np.minimum(np.ldexp(values, round(np.log2(BINS / grown.limit))).astype(np.int64), BINS - 1)
    zeros = int(np.count_nonzero(values == 0))
    counts = grown.counts + np.bincount(bins, minlength=BINS)
    counts[0] -= zeros
    return Histogram(counts, grown.zeros + zeros, grown.limit, max(grown.greatest, greatest))


def _grow(histogram: Histogram, greatest: float) -> Histogram:
    """The same counts under a limit, a power of two above ``greatest``."""
    limit = histogram.limit or float(np.ldexp(1.0, int(np.frexp(greatest)[1])))
    counts = histogram.counts
    while limit <= greatest:
        counts = np.concatenate([counts.reshape(-1, 2).sum(axis=1), np.zeros(BINS // 2, np.int64)])
        limit *= 2
    return Histogram(counts, histogram.zeros, limit, histogram.greatest)


def _percentile(histogram: Histogram, percentile: float) -> float:
    # Zeros are left out: after ReLU most values are zero, and the tail alone decides.
    total = int(histogram.counts.sum())
    if total == 0 or percentile == 100:
        return histogram.greatest
    reached = int(np.searchsorted(np.cumsum(histogram.counts), total * percentile / 100))
    return min((reached + 1) * histogram.limit / BINS, histogram.greatest)


def _least(histogram: Histogram, bits: int, loss: Callable[[Histogram, float, int], float]) -> float:
    """The range of 100 candidates, 1 %…100 % of the greatest value, with the least loss."""
    if histogram.greatest == 0.0:
        return 0.0
    candidates = histogram.greatest * np.arange(1, 101) / 100
    return float(min(candidates, key=lambda r: loss(histogram, float(r), bits)))


def _squared_error(histogram: Histogram, reach: float, bits: int) -> float:
    """Σ (x − quantised x)² with every value at the middle of its bin."""
    top = (1 << (bits - 1)) - 1
    step = reach / top
    middles = (np.arange(BINS) + 0.5) * (histogram.limit / BINS)
    rounded = np.minimum(np.rint(middles / step), top) * step
    # A bin much wider than a step has rounding errors that its middle does not show.
    return float(np.sum(histogram.counts * (middles - rounded) ** 2))


def _divergence(histogram: Histogram, reach: float, bits: int) -> float:
    """Σ p · log(p / q) over the bins below ``reach``: p with all that is clipped in the last one, q what is left of the
    counts where each integer's are spread evenly over its bins that have any."""
    top = (1 << (bits - 1)) - 1
    last = min(BINS, max(1, int(np.ceil(reach * BINS / histogram.limit)))) - 1
    counts = histogram.counts[: last + 1].astype(np.float64)
    clipped = counts.copy()
    clipped[last] += histogram.counts[last + 1 :].sum()
    middles = (np.arange(last + 1) + 0.5) * (histogram.limit / BINS)
    integers = np.minimum(np.rint(middles * top / reach), top).astype(np.int64)
    filled = clipped > 0
    spread = np.bincount(integers, counts) / np.maximum(1, np.bincount(integers, filled))
    q = np.maximum(spread[integers[filled]], LEAST_COUNT)
    p = clipped[filled] / clipped.sum()
    return float(np.sum(p * np.log(p * q.sum() / q)))
