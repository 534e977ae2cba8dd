"""Post-training reconstruction: integer weights, layer by layer, that compensate for the error of quantisation.

Rounding each weight to the nearest integer minimises the error of the weights. The relevant error is the one of the
layer's sums on real inputs, which already have errors from all layers before. So each layer gets the weights Ŵ that
minimise

    Σ over samples |W·x + b − Ŵ·x̂ − b̂|²  +  ridge · |Ŵ − W|²

with x of the float network and x̂ of the integer network, quantised up to this layer. The first step is a closed form
(ridge regression). The second step rounds weight by weight, and the weights that are not rounded yet compensate for
each rounding error (GPTQ, arXiv:2210.17323: optimal brain quantisation in a fixed order). The bias compensates for the
mean error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from cnn.float_model import run_float
from cnn.integer_model import dequantise, run_node
from cnn.maps import FloatArray, Integers
from cnn.network import Network
from cnn.ops import Convolution
from cnn.ops.windows import every_tap, tap_offsets
from cnn.quantisation.rounding import Doubles, Filters, RoundedFilters, WeightGrid
from cnn.quantized import QNode

RIDGE = 1.0
"""The ridge, as a share of the mean energy of an input.

A lower value fits the calibration pictures more closely, and other pictures less.
"""

DAMPING = 0.01
"""The share of the mean energy that is added to the diagonal of a matrix, so that it can be inverted."""

MAX_SAMPLES = 6144
"""The most output positions of a layer that its weights are fitted to, over all pictures."""

MAX_INPUTS = 1152
"""The most weights of a filter that are solved together; larger filters are solved in several parts, in order."""

SHARES = np.arange(0.4, 1.0, 0.025)
"""Scales that are tried in addition, as shares of the scale that holds the greatest weight.

A smaller scale clips the greatest weights, and rounds the others more finely.
"""

_COLUMNS = 64  # columns whose errors are applied to all later columns in one matrix product


class Reconstruction:
    """A fitter of integer weights: it holds every output of the float network and of the integer network so far."""

    def __init__(self, network: Network, pictures: Sequence[npt.NDArray[np.uint8]]) -> None:
        """Run the float network, which has no batch norms, over uint8 images [channels, height, width]."""
        self._network, self._pictures = network, pictures
        self._floats = [run_float(network, picture.astype(np.float32) / np.float32(255)) for picture in pictures]
        self._integers: list[list[Integers | None]] = [[] for _ in pictures]
        self._nodes: list[QNode] = []

    def append(self, node: QNode) -> None:
        """Add the next node of the integer network, and compute its output for every calibration image."""
        self._nodes.append(node)
        for picture, outputs in zip(self._pictures, self._integers, strict=True):
            outputs.append(None if node.op.on_host else run_node(node, self._nodes, outputs, picture))

    def round(self, index: int, filters: Filters, grid: WeightGrid) -> RoundedFilters:
        """Return the integer filters of convolution ``index``, fitted to its inputs, which must have been appended."""
        op = self._network.nodes[index].op
        assert isinstance(op, Convolution)
        exact, approximate = self._samples(index, op)
        groups = np.array_split(np.arange(len(filters.rows)), op.groups)
        parts = [
            _round_group(
                Filters(filters.rows[ours], filters.bias[ours]),
                WeightGrid(grid.scale[ours], grid.floor[ours], grid.high),
                exact[group],
                approximate[group],
            )
            for group, ours in enumerate(groups)
        ]
        rows, scale, bias = (np.concatenate([getattr(part, name) for part in parts]) for name in _FIELDS)
        return RoundedFilters(rows, scale, bias)

    def _samples(self, index: int, op: Convolution) -> tuple[Doubles, Doubles]:
        """Return sampled float and dequantised inputs of a convolution, [groups, weights per filter, samples] each."""
        node = self._network.nodes[index]
        source, shape = node.inputs[0], node.shape
        count = min(shape.height * shape.width, -(-MAX_SAMPLES // len(self._pictures)))
        exact, approximate = [], []
        for number, (floats, integers) in enumerate(zip(self._floats, self._integers, strict=True)):
            random = np.random.default_rng((index, number))
            places = np.divmod(np.sort(random.choice(shape.height * shape.width, count, replace=False)), shape.width)
            array = integers[source]
            assert array is not None
            exact.append(_gathered(floats[source], op, places))
            approximate.append(_gathered(dequantise(array, self._nodes[source].type), op, places))
        return _joined(exact, op), _joined(approximate, op)


_FIELDS = ("rows", "scale", "bias")


def _joined(samples: Sequence[FloatArray], op: Convolution) -> Doubles:
    """Return [groups, weights per filter, samples] of all images, from [channels · taps, samples] per image."""
    every = np.concatenate(samples, axis=1)
    return every.reshape(op.groups, -1, every.shape[1]).astype(np.float64)


def _gathered(array: FloatArray, op: Convolution, places: tuple[npt.NDArray[np.intp], ...]) -> FloatArray:
    """Return im2col columns of a map at some output positions (rows, columns): [channels · taps, positions]."""
    padding, places_of_window = op.padding, tap_offsets(every_tap(op.weights.shape[2:]), op.dilation)
    padded = np.pad(array, ((0, 0), (padding.top, padding.bottom), (padding.left, padding.right)))
    rows, columns = (place * op.stride for place in places)
    taps = [padded[:, rows + y, columns + x] for y, x in places_of_window]
    return np.stack(taps, axis=1).reshape(-1, len(places[0]))


def _round_group(filters: Filters, grid: WeightGrid, exact: Doubles, approximate: Doubles) -> RoundedFilters:
    """Return the integer filters of one group, fitted to float and quantised inputs [weights per filter, samples]."""
    target = filters.rows @ exact + filters.bias[:, None]
    mean = approximate.mean(axis=1)
    centred = approximate - mean[:, None]
    residual = target - target.mean(axis=1, keepdims=True) - filters.rows @ centred
    scale = _scales(filters.rows, np.mean(centred**2, axis=1), grid)
    rows = np.empty_like(filters.rows)
    for part in _parts(len(mean)):
        values = _fit(filters.rows[:, part], residual, centred[part])
        rows[:, part] = _rounded(values, centred[part], scale, grid)
        residual -= (rows[:, part] * scale[:, None] - filters.rows[:, part]) @ centred[part]
    return RoundedFilters(rows, scale, target.mean(axis=1) - (rows * scale[:, None]) @ mean)


def _parts(inputs: int) -> Iterator[slice]:
    """Return slices of a filter's weights; the weights of a slice are solved together, slice by slice."""
    count = -(-inputs // MAX_INPUTS)
    edges = [inputs * part // count for part in range(count + 1)]
    return (slice(first, last) for first, last in pairwise(edges))


def _fit(rows: Doubles, residual: Doubles, inputs: Doubles) -> Doubles:
    """Return float weights that also reduce the residual error [filters, samples] of the sums, by ridge regression."""
    energy = _damped(inputs, RIDGE)
    return np.asarray(rows + np.linalg.solve(energy, inputs @ residual.T / inputs.shape[1]).T)


def _damped(inputs: Doubles, share: float) -> Doubles:
    """Return the second moments of inputs, [inputs, inputs], with a share of their mean added to the diagonal."""
    energy = inputs @ inputs.T / inputs.shape[1]
    energy[np.diag_indices_from(energy)] += share * np.mean(np.diag(energy)) + 1e-12
    return np.asarray(energy)


def _rounded(rows: Doubles, inputs: Doubles, scale: Doubles, grid: WeightGrid) -> Doubles:
    """Return the weights as integers: each column's rounding error is compensated in the later columns (GPTQ)."""
    spread = np.linalg.cholesky(np.linalg.inv(_damped(inputs, DAMPING))).T
    rows, integers = rows.copy(), np.empty_like(rows)
    for first in range(0, rows.shape[1], _COLUMNS):
        last = min(first + _COLUMNS, rows.shape[1])
        errors = np.empty((len(rows), last - first))
        for column in range(first, last):
            integers[:, [column]] = grid.round(rows[:, [column]], scale)
            error = (rows[:, column] - integers[:, column] * scale) / spread[column, column]
            rows[:, column + 1 : last] -= np.outer(error, spread[column, column + 1 : last])
            errors[:, column - first] = error
        rows[:, last:] -= errors @ spread[first:last, last:]
    return integers


def _scales(rows: Doubles, energy: Doubles, grid: WeightGrid) -> Doubles:
    """Return the weight scale per filter with the least error of its sums, among the grid's scale and SHARES of it."""
    best, lowest = grid.scale, np.full(len(rows), np.inf)
    for share in (1.0, *SHARES):
        scale = np.maximum(share * grid.scale, grid.floor)
        error = (rows - grid.round(rows, scale) * scale[:, None]) ** 2 @ energy
        best, lowest = np.where(error < lowest, scale, best), np.minimum(error, lowest)
    return np.asarray(best)
