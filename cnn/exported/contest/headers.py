"""param.h and config.h of UltraNet's own accelerator: a network's integers, folded in the order its hardware reads.

config.h has a #define for each number of a layer. param.h has the arrays. Weights are stored by [PE][tile], as words of
SIMD values with the first value in the lowest bits. inc and bias are stored by [PE][fold]. Neither file names max
pools: there is one if a layer reads a smaller map than the layer before it writes. Generated designs store their
parameters in such files, under parameters/.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from boards.errors import (
    DamagedFileError,
    InvalidValueError,
    MismatchError,
    MissingValueError,
    RangeError,
    ShapeError,
    cut,
)
from cnn.exported.contest.config import MAX_WINDOW, Entry, described
from cnn.exported.integers import GIVEN_MULTIPLIERS
from cnn.exported.topology import Kernel, Topology, TopologyLayer
from cnn.exported.topology_file import LAYER_LIMIT
from cnn.maps import FloatArray, IntArray

CONVOLUTION = ("K", "S", "P", "IFM_CH", "IFM_ROW", "IFM_COL", "OFM_CH", "OFM_ROW", "OFM_COL")
LINEAR = ("IN_LEN", "OUT_LEN")
BITS = ("W_BIT", "IN_BIT", "OUT_BIT", "L_SHIFT")
FOLDS = ("PE", "SIMD")
_KEYS = "|".join((*CONVOLUTION, *LINEAR, *BITS, *FOLDS))
_DEFINE = re.compile(rf"#define[ \t]+([A-Za-z]\w{{0,99}}?)_({_KEYS})[ \t]+(\d{{1,9}})\s")
_ARRAY = re.compile(r"const\s{1,9}ap_u?int<(\d{1,6})>\s{1,9}(\w{1,120})\[(\d{1,9})\]\[(\d{1,9})\]\s{0,9}=\s{0,9}\{")
_WORD = re.compile(r'"(-?0x[0-9a-fA-F]{1,4096})"')


@dataclass(frozen=True, eq=False)
class FoldedArray:
    """A weight or requantiser array of UltraNet's param.h, as words folded over the PEs that read them.

    Attributes:
        bits: The width of a word in bits.
        rows: The words of each PE, one per tile.
        source: The file's name, for errors.
    """

    bits: int
    rows: list[list[int]]
    source: str


@dataclass(frozen=True)
class ConfigLayer:
    """A layer of UltraNet's config.h: the numbers of its #defines, such as K, S, P, PE and SIMD.

    Attributes:
        name: The prefix of the layer's #defines, in lower case.
        numbers: The numbers by the names in BITS, FOLDS, and CONVOLUTION or LINEAR.
        source: The file's name, for errors.
    """

    name: str
    numbers: Mapping[str, int]
    source: str

    def number(self, key: str) -> int:
        """Return a number of the layer's #defines, such as "IFM_CH"; MissingValueError if it is not defined."""
        if key not in self.numbers:
            raise MissingValueError(f"{self.name.upper()}_{key}", where=self.source)
        return self.numbers[key]

    @property
    def linear(self) -> bool:
        """Return whether the layer is a fully connected one."""
        return "IN_LEN" in self.numbers


def read_headers(
    texts: tuple[str, str], files: tuple[str, str], network: Mapping[str, Any]
) -> tuple[Topology, dict[str, FloatArray]]:
    """Return the topology, and the arrays by the names convN_w …, from the texts of UltraNet's param.h and config.h.

    Neither file holds the bias of the last layer, so its array is 0. The place of every error is the file or the layer.

    Args:
        texts: The contents of param.h and of config.h.
        files: The names of these two files, for errors.
        network: The exported form's keys other than its layers.
    """
    units = _units(texts[1], files[1])
    words = _arrays(texts[0], files[0])
    topology = _topology(units, words, files[1], network)
    arrays: dict[str, FloatArray] = {}
    for unit, (layer, kernel) in zip(units, topology.kernels, strict=True):
        arrays |= _of_layer(unit, layer, kernel, words)
        if kernel.output_bits is None:
            arrays[f"conv{kernel.number}_b"] = np.zeros(kernel.filters, np.float32)
    return topology, arrays


def _units(text: str, file: str) -> list[ConfigLayer]:
    numbers: dict[str, dict[str, int]] = {}
    for prefix, key, value in _DEFINE.findall(text + "\n"):
        numbers.setdefault(prefix, {})[key] = int(value)
    if not 1 <= len(numbers) <= LAYER_LIMIT:
        raise RangeError("the number of layers (CONV_0_K …)", len(numbers), 1, LAYER_LIMIT, where=file)
    return [ConfigLayer(prefix.lower(), values, file) for prefix, values in numbers.items()]


def _arrays(text: str, file: str) -> dict[str, FoldedArray]:
    arrays: dict[str, FoldedArray] = {}
    heads = list(_ARRAY.finditer(text))
    begins = [*(head.start() for head in heads), len(text)]
    for match, begin_of_next in zip(heads, begins[1:], strict=True):
        bits, name, pes, tiles = int(match[1]), match[2], int(match[3]), int(match[4])
        end = text.find("};", match.end(), begin_of_next)
        numbers = [int(word, 16) for word in _WORD.findall(text, match.end(), max(end, match.end()))]
        if name in arrays:
            raise DamagedFileError(file, "is defined twice", cut(name))
        if end < 0:
            raise DamagedFileError(file, "does not end", cut(name), remedy="check that the file is whole")
        if not numbers or len(numbers) != pes * tiles:
            what, remedy = f"the number of values of {cut(name)} ({pes} × {tiles})", "check that the file is whole"
            raise MismatchError(what, len(numbers), pes * tiles, where=file, remedy=remedy)
        arrays[name.lower()] = FoldedArray(bits, [numbers[row * tiles : (row + 1) * tiles] for row in range(pes)], file)
    return arrays


def _topology(
    units: list[ConfigLayer], words: Mapping[str, FoldedArray], file: str, network: Mapping[str, Any]
) -> Topology:
    picture = _input(units[0])
    shape, entries, bits = picture, list[Entry](), 8
    for unit in units:
        if unit.number("IN_BIT") != bits:
            what = f"IN_BIT of {unit.name} (OUT_BIT of the layer before it, 8 for pixels)"
            raise MismatchError(what, unit.number("IN_BIT"), bits, where=file)
        size = _pooled(unit, shape)
        if size > 1:
            smaller = (shape[0], shape[1] // size, shape[2] // size)
            pool = {"type": "max_pool", "name": f"{unit.name}_pool", "size": size}
            entries.append(Entry(pool, shape, smaller, f"{file}: {unit.name}"))
            shape = smaller
        entry = _entry(unit, unit is not units[-1] or f"{unit.name}_inc" in words)
        entries.append(entry)
        shape = entry.gives if len(entry.gives) == 3 else (*entry.gives, 1, 1)
        bits = unit.numbers.get("OUT_BIT", 0)
    order = {key: value for key, value in network.get("input", {}).items() if key == "order"}
    return described(file, picture, entries, {**network, "input": order, "requantise": GIVEN_MULTIPLIERS})


def _input(unit: ConfigLayer) -> tuple[int, ...]:
    """Return the input shape that a layer of config.h defines: (channels, rows, columns), or (values,) if linear."""
    names = ("IN_LEN",) if unit.linear else ("IFM_CH", "IFM_ROW", "IFM_COL")
    return tuple(unit.number(name) for name in names)


def _pooled(unit: ConfigLayer, shape: tuple[int, ...]) -> int:
    """Return the size of the max pool that must be between a map and the next layer of config.h; 1 without a pool.

    Raises:
        ShapeError: No pool turns the map into the layer's input.
    """
    reads = _input(unit)
    for size in range(1, MAX_WINDOW + 1):
        pooled = (shape[0], *(side // size for side in shape[1:]))
        if reads in (pooled, (prod(pooled),)):
            return size
    raise ShapeError(
        f"the map that {unit.name} reads",
        reads,
        f"shape {shape} of the map before it, or the one after a max pool",
        where=unit.source,
        remedy="leave out layers other than conv, pool and linear, which these files do not have",
    )


def _entry(unit: ConfigLayer, shifts: bool) -> Entry:
    """Return a layer of config.h as an ``Entry``; ``shifts``: whether param.h has inc and bias for its sums."""
    layer: dict[str, Any] = {"name": unit.name, "weight_bits": unit.number("W_BIT")}
    layer["integers"] = layer["weight_bits"] != 1
    if shifts:
        layer |= {"output_bits": unit.number("OUT_BIT"), "extra_bits": unit.number("L_SHIFT")}
    if unit.linear:
        gives: tuple[int, ...] = (unit.number("OUT_LEN"),)
        layer |= {"type": "dense", "outputs": gives[0]}
    else:
        gives = tuple(unit.number(name) for name in ("OFM_CH", "OFM_ROW", "OFM_COL"))
        sides = {key: unit.number(name) for key, name in (("kernel", "K"), ("stride", "S"), ("padding", "P"))}
        layer |= {"type": "convolution", "filters": gives[0], **sides}
    return Entry(layer, _input(unit), gives, f"{unit.source}: {unit.name}")


def _of_layer(
    unit: ConfigLayer, layer: TopologyLayer, kernel: Kernel, words: Mapping[str, FoldedArray]
) -> dict[str, FloatArray]:
    """Return a layer's weights, inc and bias from param.h, by the names convN_w, convN_inc and convN_bias."""
    number = kernel.number
    arrays = {f"conv{number}_w": _weights(unit, kernel, _named(words, f"{unit.name}_w", unit)).astype(np.float32)}
    if kernel.output_bits is not None:
        for part in ("inc", "bias"):
            rows = _named(words, f"{unit.name}_{part}", unit).rows
            values = np.array(rows, object).T.reshape(-1)
            if values.size != kernel.filters:
                raise MismatchError(f"the number of values of {part}", values.size, kernel.filters, where=layer.source)
            greatest = max(map(abs, values))
            if greatest >= 1 << 53:
                raise InvalidValueError(f"the greatest |{part}|", greatest, "below 2^53", where=layer.source)
            arrays[f"conv{number}_{part}"] = np.asarray(values, np.float64)
    return arrays


def _named(words: Mapping[str, FoldedArray], name: str, unit: ConfigLayer) -> FoldedArray:
    if name not in words:
        raise MissingValueError(f"the array {name} of param.h", f"{unit.source} defines {unit.name}")
    return words[name]


def _weights(unit: ConfigLayer, kernel: Kernel, words: FoldedArray) -> IntArray:
    """Return a layer's weights, [filters, channels, rows, columns], unpacked from the words of param.h."""
    bits, simd, pes = unit.number("W_BIT"), unit.number("SIMD"), unit.number("PE")
    filters, channels, rows, columns = kernel.weights
    taps = channels * rows * columns
    folds, of_filter = filters // max(pes, 1), -(-taps // max(simd, 1))
    tiles = len(words.rows[0])
    if pes * folds != filters or (len(words.rows), tiles, words.bits) != (pes, folds * of_filter, simd * bits):
        got = f"[{len(words.rows)}][{tiles}] words of {words.bits} bits"
        sizes = f"for {filters} filters of {taps} weights"
        required = f"[{pes}][{folds * of_filter}] words of {simd} × {bits} bits, {sizes}"
        raise ShapeError(f"{unit.name}_w", got, required, where=words.source)
    folded = _lanes(unit, words, (simd, bits)).reshape(pes, folds, of_filter * simd)[:, :, :taps].transpose(1, 0, 2)
    return np.ascontiguousarray(folded.reshape(filters, rows, columns, channels).transpose(0, 3, 1, 2))


def _lanes(unit: ConfigLayer, words: FoldedArray, form: tuple[int, int]) -> IntArray:
    """Return the SIMD values that each word of a param.h array packs, [words, SIMD].

    Values are in two's complement; a value of one bit is −1 or +1. form: SIMD, and the bits of a value.
    """
    simd, bits = form
    for word in (min(map(min, words.rows)), max(map(max, words.rows))):
        if not 0 <= word < 1 << words.bits:
            required = f"at least 0 and of at most {words.bits} bits"
            raise InvalidValueError(f"a word of {unit.name}_w", word, required, where=words.source)
    width = -(-words.bits // 8)
    data = b"".join(word.to_bytes(width, "little") for row in words.rows for word in row)
    lanes = np.unpackbits(np.frombuffer(data, np.uint8).reshape(-1, width), axis=1, bitorder="little")
    lanes = lanes[:, : words.bits].reshape(-1, simd, bits)
    codes = sum((lanes[:, :, bit].astype(np.int16) << bit for bit in range(bits)), np.int16(0))
    return np.asarray(2 * codes - 1 if bits == 1 else np.where(codes >= 1 << (bits - 1), codes - (1 << bits), codes))
