"""Writes param.h and config.h: a network's parameters in the format of UltraNet's own accelerator.

The weights of a layer are ``ap_uint<SIMD · bits> name_w[PE][tiles]``. Each filter, in the order [kernel row][kernel
column][channel], is divided into words of SIMD values in two's complement, the first value in the lowest bits. PE p
computes filter n · PE + p in fold n. Its word w is in tile n · (words per filter) + w. inc and bias have the same
order: ``ap_int<bits> name_inc[PE][folds]``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import InvalidValueError, MissingValueError, RangeError
from boards.templates import identifier
from hls_templates.render import render

Integers = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class LayerParameters:
    """The parameters of a convolution or linear layer for param.h. The window of a linear layer is the whole input map.

    l_shift of the file is derived: shift − (weight_bits − 1) − in_bits.

    Attributes:
        name: The name of the layer.
        weights: Integers of shape (filters, channels, kernel, kernel) that fit ``weight_bits``. A bipolar weight has 1
            bit, which is 1 for +1.
        weight_bits: The bits of a weight.
        pe: The number of filters that are computed at the same time.
        simd: The number of weights in a word.
        input: The shape (channels, rows, columns) of the input.
        output: The shape (channels, rows, columns) of the output.
        stride: The stride.
        padding: The padding on each side.
        in_bits: The bits of an input value.
        out_bits: The bits of an output value.
        inc: The multiplier of each filter; None if the output is the sums themselves.
        bias: The bias of each filter; None if the output is the sums themselves.
        shift: The right shift of the product.
        linear: Whether this is a linear layer.
    """

    name: str
    weights: Integers
    weight_bits: int
    pe: int
    simd: int
    input: tuple[int, int, int]
    output: tuple[int, int, int]
    stride: int
    padding: int
    in_bits: int
    out_bits: int
    inc: Integers | None = None
    bias: Integers | None = None
    shift: int = 0
    linear: bool = False

    @property
    def row_words(self) -> int:
        """The number of words of SIMD weights per filter."""
        return int(self.weights[0].size) // self.simd

    @property
    def folds(self) -> int:
        return int(self.weights.shape[0]) // self.pe


def header_files(layers: Sequence[LayerParameters]) -> dict[str, str]:
    """Return the texts of param.h and config.h, by file name, for UltraNet's own accelerator. Equal layers give equal
    text.

    Raises:
        InvalidValueError: PE does not divide the filters, or SIMD the weights of a filter.
        MissingValueError: A layer has only one of inc and bias.
        RangeError: Weights do not fit their bits.
    """
    for layer in layers:
        _check(layer)
    values = {"layers": [_described(layer) for layer in layers]}
    return {"param.h": render("parameters/param.h.j2", values), "config.h": render("parameters/config.h.j2", values)}


def packed_weights(layer: LayerParameters) -> list[list[int]]:
    """Return a layer's weights packed into words of SIMD weights, indexed [PE][tile]. The first weight is in the lowest
    bits."""
    rows = layer.weights.transpose(0, 2, 3, 1).reshape(layer.weights.shape[0], layer.row_words, layer.simd)
    codes = (rows > 0).astype(np.int64) if layer.weight_bits == 1 else rows.astype(np.int64)
    words = [[_word(lanes, layer.weight_bits) for lanes in row] for row in codes.tolist()]
    folds = [words[first : first + layer.pe] for first in range(0, len(words), layer.pe)]
    return [[word for fold in folds for word in fold[pe]] for pe in range(layer.pe)]


def _word(lanes: Sequence[int], bits: int) -> int:
    """Return the word into which these weights are packed, as a Python integer because it may be wider than numpy's."""
    mask = (1 << bits) - 1
    return sum((value & mask) << (bits * lane) for lane, value in enumerate(lanes))


def _check(layer: LayerParameters) -> None:
    identifier(layer.name)
    filters, channels, *kernel = layer.weights.shape
    filter_weights = channels * kernel[0] * kernel[1]
    if layer.pe < 1 or filters % layer.pe:
        raise InvalidValueError("PE", layer.pe, f"a divisor of the number of filters, {filters}", where=layer.name)
    if layer.simd < 1 or filter_weights % layer.simd:
        required = f"a divisor of the number of weights of a filter, {filter_weights}"
        raise InvalidValueError("SIMD", layer.simd, required, where=layer.name)
    if (layer.inc is None) != (layer.bias is None):
        missing = "inc" if layer.inc is None else "bias"
        raise MissingValueError(missing, "inc and bias are given together, or neither", where=layer.name)
    high = 1 if layer.weight_bits == 1 else (1 << (layer.weight_bits - 1)) - 1
    low = -1 if layer.weight_bits == 1 else -high - 1
    for extreme in (int(layer.weights.min()), int(layer.weights.max())):
        if not low <= extreme <= high:
            raise RangeError(f"a weight of {layer.weight_bits} bits", extreme, low, high, where=layer.name)


def _described(layer: LayerParameters) -> dict[str, object]:
    return {
        "name": layer.name,
        "pe": layer.pe,
        "simd": layer.simd,
        "bits": layer.weight_bits,
        "tiles": layer.folds * layer.row_words,
        "folds": layer.folds,
        "weights": [[hex(word) for word in row] for row in packed_weights(layer)],
        "arrays": [_by_channel(layer, name, getattr(layer, name)) for name in _NAMES if layer.inc is not None],
        "defines": _defines(layer),
    }


_NAMES = ("inc", "bias")


def _by_channel(layer: LayerParameters, name: str, values: Integers) -> dict[str, object]:
    rows = values.reshape(layer.folds, layer.pe).T.tolist()
    return {"name": name, "bits": _signed_bits(values), "rows": [[hex(value) for value in row] for row in rows]}


def _signed_bits(values: Integers) -> int:
    """Return the bits of a signed integer for ± the greatest magnitude of the values, as UltraNet counts them."""
    return int(np.abs(values.astype(np.int64)).max()).bit_length() + 1


def _sides(layer: LayerParameters) -> Mapping[str, int]:
    if layer.linear:
        return {"IN_LEN": prod(layer.input), "OUT_LEN": prod(layer.output)}
    return {
        "K": int(layer.weights.shape[2]),
        "S": layer.stride,
        "P": layer.padding,
        **dict(zip(("IFM_CH", "IFM_ROW", "IFM_COL"), layer.input, strict=True)),
        **dict(zip(("OFM_CH", "OFM_ROW", "OFM_COL"), layer.output, strict=True)),
    }


def _defines(layer: LayerParameters) -> Mapping[str, int]:
    """Return the numbers of a layer (sizes, bit widths, SIMD, PE, tiles) by the names that UltraNet's blocks read."""
    activation = {}
    if layer.inc is not None and layer.bias is not None:
        l_shift = layer.shift - (layer.weight_bits - 1) - layer.in_bits
        activation = {
            "INC_BIT": _signed_bits(layer.inc),
            "BIAS_BIT": _signed_bits(layer.bias),
            "A_TILES": layer.folds,
            "SHIFT": layer.shift,
            "L_SHIFT": l_shift,
        }
    return {
        **_sides(layer),
        "SIMD": layer.simd,
        "PE": layer.pe,
        "IN_BIT": layer.in_bits,
        "OUT_BIT": layer.out_bits,
        "W_BIT": layer.weight_bits,
        "W_TILES": layer.folds * layer.row_words,
        **activation,
    }
