"""Calibration: the range of values that each layer's output has over some pictures.

Memory does not grow with the number of pictures. Each node has an exact maximum and a histogram of |x|, whose limit is
a power of two. If a value exceeds the limit, the limit doubles and bins merge in pairs, so that the counts do not
depend on the order of the pictures.
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
MIN_COUNT = 1e-4
"""The count that an empty bin has in a logarithm."""

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Histogram:
    """A histogram of the magnitudes |x| of one node's output, over the calibration images so far.

    Attributes:
        counts: [BINS], the number of non-zero values in each bin; the bins divide 0…limit evenly.
        zeros: The number of zeros, which are counted separately because every scale represents them exactly.
        limit: The upper end of the last bin, a power of two; 0 before the first value.
        greatest: The greatest |x| so far.
    """

    counts: Counts
    zeros: int
    limit: float
    greatest: float


@dataclass(frozen=True, eq=False)
class Statistics:
    """The histograms of all nodes' outputs, one per node, and the number of calibration images."""

    histograms: tuple[Histogram, ...]
    pictures: int


@dataclass(frozen=True)
class CalibratedRanges:
    """The calibrated range of every node's output: the |x| that the greatest integer is to represent.

    Attributes:
        method: One of METHODS.
        values: The |x| per node that the greatest integer represents.
        greatest: The greatest |x| observed per node.
    """

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
    """Run the float network over calibration images and return a range (greatest |x|) for each node's output.

    Args:
        network: The float network.
        pictures: float32 [channels, height, width] of 0…1.
        method: "max" is the greatest |x|. "percentile" is the |x| that ``percentile`` % of all non-zero values do not
            exceed. "mse" is the range with the least mean squared error. "entropy" is the range with the least
            Kullback-Leibler divergence between the values and the quantised ones, as NVIDIA's TensorRT calibrates.
        bits: The bits that "mse" and "entropy" quantise to.
        percentile: 50…100, in percent.
        progress: Called after each picture with the number of pictures so far.

    Raises the errors of ``observe`` and ``choose_ranges``.
    """
    return choose_ranges(observe(network, pictures, progress=progress), method, bits=bits, percentile=percentile)


def observe(
    network: Network, pictures: Iterable[FloatArray], *, progress: Callable[[int], None] | None = None
) -> Statistics:
    """Run the float network over images, float32 [channels, height, width] of 0…1, and return a histogram per node.

    Raises:
        MissingValueError: There is no picture.
        InvalidValueError: A layer gives a value that is not finite.
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
    """Return a range per node, chosen from its histogram by one of the METHODS, which ``calibrate`` explains.

    Raises:
        ChoiceError: There is no such method.
        RangeError: The percentile is outside 50…100.
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
    """Return the ranges that ``choose_ranges`` gives if each node has its own number of bits."""
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
    # Limits and BINS are powers of two. A product with BINS / limit would overflow if all values are tiny.
    bins = np.minimum(np.ldexp(values, round(np.log2(BINS / grown.limit))).astype(np.int64), BINS - 1)
    zeros = int(np.count_nonzero(values == 0))
    counts = grown.counts + np.bincount(bins, minlength=BINS)
    counts[0] -= zeros
    return Histogram(counts, grown.zeros + zeros, grown.limit, max(grown.greatest, greatest))


def _grow(histogram: Histogram, greatest: float) -> Histogram:
    """Return the histogram with bins merged in pairs until its upper limit, a power of two, is above ``greatest``."""
    limit = histogram.limit or float(np.ldexp(1.0, int(np.frexp(greatest)[1])))
    counts = histogram.counts
    while limit <= greatest:
        counts = np.concatenate([counts.reshape(-1, 2).sum(axis=1), np.zeros(BINS // 2, np.int64)])
        limit *= 2
    return Histogram(counts, histogram.zeros, limit, histogram.greatest)


def _percentile(histogram: Histogram, percentile: float) -> float:
    # Zeros are not counted: after ReLU most values are zero, and only the tail matters.
    total = int(histogram.counts.sum())
    if total == 0 or percentile == 100:
        return histogram.greatest
    reached = int(np.searchsorted(np.cumsum(histogram.counts), total * percentile / 100))
    return min((reached + 1) * histogram.limit / BINS, histogram.greatest)


def _least(histogram: Histogram, bits: int, loss: Callable[[Histogram, float, int], float]) -> float:
    """Return the range with the least ``loss`` among 100 candidates: 1 %, 2 %, … 100 % of the greatest |x|."""
    if histogram.greatest == 0.0:
        return 0.0
    candidates = histogram.greatest * np.arange(1, 101) / 100
    return float(min(candidates, key=lambda r: loss(histogram, float(r), bits)))


def _squared_error(histogram: Histogram, reach: float, bits: int) -> float:
    """Return the squared error Σ (x − quantised x)² of the range ``reach``, with each x at the middle of its bin."""
    top = (1 << (bits - 1)) - 1
    step = reach / top
    middles = (np.arange(BINS) + 0.5) * (histogram.limit / BINS)
    rounded = np.minimum(np.rint(middles / step), top) * step
    # If a bin is much wider than a quantisation step, the middle of the bin does not show the rounding errors.
    return float(np.sum(histogram.counts * (middles - rounded) ** 2))


def _divergence(histogram: Histogram, reach: float, bits: int) -> float:
    """Return the Kullback-Leibler divergence between the observed values and those quantised with the range ``reach``.

    p is the observed distribution, with all clipped values in its last bin. q is the quantised distribution: the count
    of each integer is spread evenly over the bins of that integer that are not empty.
    """
    top = (1 << (bits - 1)) - 1
    last = min(BINS, max(1, int(np.ceil(reach * BINS / histogram.limit)))) - 1
    counts = histogram.counts[: last + 1].astype(np.float64)
    clipped = counts.copy()
    clipped[last] += histogram.counts[last + 1 :].sum()
    middles = (np.arange(last + 1) + 0.5) * (histogram.limit / BINS)
    integers = np.minimum(np.rint(middles * top / reach), top).astype(np.int64)
    filled = clipped > 0
    spread = np.bincount(integers, counts) / np.maximum(1, np.bincount(integers, filled))
    q = np.maximum(spread[integers[filled]], MIN_COUNT)
    p = clipped[filled] / clipped.sum()
    return float(np.sum(p * np.log(p * q.sum() / q)))
