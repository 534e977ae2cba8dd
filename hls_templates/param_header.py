"""param.h and config.h: a network's parameters in the form of UltraNet's own accelerator, for HLS engineers.

Weights of a layer are ``ap_uint<SIMD · bits> name_w[PE][tiles]``: each filter [kernel row][kernel column][channel] is
cut into words of SIMD values, the first in the lowest bits, two's complement; tile = fold · words of a filter + word,
and PE p of fold n is filter n · PE + p. inc and bias are ``ap_int<bits> name_inc[PE][folds]`` alike.
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
    """One convolution, or a linear layer, whose window is the whole map.

    weights: int [filters, channels, kernel, kernel], within ``weight_bits``; bipolar ones have 1 bit, 1 for +1.
    input: (channels, rows, columns) that it reads; ``output`` that it gives. inc, bias: int [filters], both or neither
    where the sums themselves leave; shift: of the product. l_shift is derived: shift − (weight_bits − 1) − in_bits.
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
        """Words of one filter."""
        return int(self.weights[0].size) // self.simd

    @property
    def folds(self) -> int:
        return int(self.weights.shape[0]) // self.pe


def header_files(layers: Sequence[LayerParameters]) -> dict[str, str]:
    """param.h and config.h; the same layers give the same text.

    Raises:
        InvalidValueError: PE does not divide the filters, or SIMD the weights of a filter.
        MissingValueError: A layer has one of inc and bias.
        RangeError: Weights do not fit their bits.
    """
    for layer in layers:
        _check(layer)
    values = {"layers": [_described(layer) for layer in layers]}
    return {"param.h": render("parameters/param.h.j2", values), "config.h": render("parameters/config.h.j2", values)}


def packed_weights(layer: LayerParameters) -> list[list[int]]:
    """[PE][tiles]: words of SIMD weights, the first in the lowest bits."""
    rows = layer.weights.transpose(0, 2, 3, 1).reshape(layer.weights.shape[0], layer.row_words, layer.simd)
    codes = (rows > 0).astype(np.int64) if layer.weight_bits == 1 else rows.astype(np.int64)
    words = [[_word(lanes, layer.weight_bits) for lanes in row] for row in codes.tolist()]
    folds = [words[first : first + layer.pe] for first in range(0, len(words), layer.pe)]
    return [[word for fold in folds for word in fold[pe]] for pe in range(layer.pe)]


def _word(lanes: Sequence[int], bits: int) -> int:
    """Python's whole numbers: a word may be wider than any of numpy's."""
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
    """Enough for ± the greatest magnitude, as UltraNet counts."""
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
    """Numbers of the layer, by the names that UltraNet's blocks read."""
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
