"""Batch norm, integer weights and exact matrix products, for convolutions and fully connected layers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from boards.errors import InvalidValueError, ShapeError
from cnn.activations import activate
from cnn.checks import check_numbers
from cnn.datatype import BIPOLAR, DataType
from cnn.maps import FloatArray, IntArray, Integers, short_repr

Floats = npt.NDArray[Any]

FLOAT32_EXACT = 1 << 24
MAX_PARTS = 8
KEPT_WEIGHTS = 1 << 24
"""The most weights of an operation whose floats stay in memory as long as it does: 64 MB as float32."""

Part = tuple[slice, Floats]
"""Input channels, and their weights as floats."""


@dataclass(frozen=True, eq=False)
class BatchNorm:
    """The parameters of a batch norm, [filters] each: y = scale · (x − mean) / sqrt(variance + epsilon) + bias."""

    scale: FloatArray
    mean: FloatArray
    variance: FloatArray
    epsilon: float = 1e-6  # darknet's: see DARKNET_EPSILON in cnn.darknet.graph

    __repr__ = short_repr


@dataclass(frozen=True)
class Stored:
    """The encoding of a layer's weights in a darknet weights file, if it does not list every weight in the layer's
    order.

    Attributes:
        is_implied: The operation implies the weights, and the file has none.
        signs: The file has numbers whose signs count, and each filter uses their mean magnitude.
        copies: The first row and column of each copy of the filters in a larger window; the file has one copy.
        window: Rows and columns of the filters in the file, if there are ``copies``.
        step: Rows and columns of the larger window from one tap of a copy to the next.
    """

    is_implied: bool = False
    signs: bool = False
    step: int = 1
    copies: tuple[tuple[int, int], ...] = ()
    window: tuple[int, int] = (0, 0)


EVERY_WEIGHT = Stored()
"""The file has every weight, in the order of the layer."""


def normalised(products: FloatArray, batch_norm: BatchNorm | None, bias: FloatArray, activation: str) -> FloatArray:
    """Return the sums [filters, n] after batch norm, bias and activation; the given array is overwritten."""
    if batch_norm is not None:
        products -= batch_norm.mean[:, None]
        products *= _gain(batch_norm)[:, None]
    products += bias[:, None]
    return activate(products, activation)


def _gain(norm: BatchNorm) -> FloatArray:
    root = np.sqrt(norm.variance.astype(np.float64) + norm.epsilon)
    return np.asarray(norm.scale / root, dtype=np.float32)


def check_weights(weights: IntArray, weight_type: DataType) -> None:
    """Raise an error if integer weights are outside −high … high of their signed datatype, or in another numpy type."""
    if not weight_type.signed:
        raise InvalidValueError("the datatype of the weights", weight_type.name, "signed")
    if weights.dtype != weight_type.carrier:
        required = f"type {np.dtype(weight_type.carrier)}, the carrier of {weight_type.name}"
        raise ShapeError("the weights", f"type {weights.dtype}", required)
    check_numbers("a weight", weights, -weight_type.high, weight_type.high)
    if weight_type == BIPOLAR and not weights.all():
        raise InvalidValueError("a BIPOLAR weight", 0, "−1 or +1", remedy="use TERNARY weights")


def weight_sums(weights: IntArray, greatest: int) -> npt.NDArray[np.int64]:
    """Return Σ|w|·max|a| per filter, a bound of its accumulator; ``greatest`` is max|a|, the largest input."""
    rows = weights.reshape(weights.shape[0], -1).astype(np.int64)
    return np.asarray(np.abs(rows).sum(axis=1) * greatest)


_kept_parts: WeakKeyDictionary[Any, tuple[tuple[Any, ...], list[Part]]] = WeakKeyDictionary()


def parts_of(op: object, weights: Integers, greatest: int) -> list[Part]:
    """Return a layer's weights split along the input channels so that float32 or float64 products of a part are exact.

    Parts are float32 if Σ|w|·max|a| ≤ 2^24 in every filter of each and at most MAX_PARTS are needed. Otherwise there
    is one part in float64, which is exact because accumulators have at most 32 bits.

    Args:
        op: The operation whose weights they are; its parts are kept for the next picture if they are not too many.
        weights: The weights at the places that are used.
        greatest: max|a|.
    """
    key, stored = (weights.shape, greatest), _kept_parts.get(op)
    if stored is not None and stored[0] == key:
        return stored[1]
    parts = _parts(weights, greatest)
    if weights.size <= KEPT_WEIGHTS:
        _kept_parts[op] = key, parts
    return parts


def _parts(weights: Integers, greatest: int) -> list[Part]:
    groups, filters, channels, _ = weights.shape
    size = np.abs(weights.astype(np.int32)).sum(axis=3, dtype=np.int64).cumsum(axis=2) * greatest
    edges = [0]
    while edges[-1] < channels and len(edges) <= MAX_PARTS:
        earlier = size[:, :, edges[-1] - 1, None] if edges[-1] else 0
        edges.append(int(np.all(size - earlier <= FLOAT32_EXACT, axis=(0, 1)).nonzero()[0].max(initial=-1)) + 1)
        if edges[-1] == edges[-2]:
            break
    dtype = np.float32 if edges[-1] == channels else np.float64
    cuts = [slice(a, b) for a, b in pairwise(edges)] if edges[-1] == channels else [slice(0, channels)]
    return [(cut, weights[:, :, cut].astype(dtype).reshape(groups, filters, -1)) for cut in cuts]


def multiply(parts: list[Part], columns: Floats) -> Floats:
    """Return the sum over all parts of weights × im2col columns, as floats [groups · filters, output positions]."""
    groups, _, _, n = columns.shape
    products = (weights @ columns[:, cut].reshape(groups, -1, n) for cut, weights in parts)
    total = next(products)
    for product in products:
        total = total.astype(np.float64, copy=False) + product
    return total.reshape(-1, n)
