"""The PE array without other modules: its geometry, random steps and their sums."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.support.rtl.bench import NUMBERS, Bench, array_instance, files, packed, unpacked
from tests.support.rtl.streams import Sink, Stream, drive, pulse

PACKED = {
    8: {"PACK_COLUMNS": 2, "POSITIONS": 1, "PACK_SHIFT": 18},
    4: {"PACK_COLUMNS": 2, "POSITIONS": 2, "PACK_SHIFT": 11},
    16: {"PACK_COLUMNS": 1, "POSITIONS": 1, "PACK_SHIFT": 32},
}


SIZES = {8: (4, 4), 4: (8, 8), 16: (4, 4)}
"""Columns and lanes by the bits of a value."""


def numbers_of(bits: int, rows: int) -> dict[str, int]:
    columns, lanes = SIZES[bits]
    sizes = {"ROWS": rows, "COLUMNS": columns, "LANES": lanes, "VALUE_BITS": bits}
    return {**NUMBERS, **sizes, **PACKED[bits], "PACK_CHAIN": 4, "DSP_CLOCK": 2}


class Case:
    """Random steps of an array, and their sums."""

    def __init__(self, numbers: dict[str, int], steps: int, positions: int, nibbles: bool = False) -> None:
        self.numbers, self.steps, self.positions, self.nibbles = numbers, steps, positions, nibbles
        dice, bits = np.random.default_rng(steps), numbers["VALUE_BITS"]
        columns, lanes = numbers["COLUMNS"], numbers["LANES"]
        self.places = numbers["ROWS"] * numbers["POSITIONS"]
        least, most = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        self.activations = dice.integers(least, most + 1, (steps * positions, self.places, lanes))
        self.weights = dice.integers(-most, most + 1, (steps * positions, lanes, columns))
        self.activations[0], self.weights[0] = least, most
        self.activations[-1], self.weights[-1] = least, -most
        counted = np.where(nibbles & (np.arange(lanes) % 2 == 1), 16, 1)
        products = np.einsum("tml,tln->tmn", self.activations * counted, self.weights)
        sums = products.reshape(positions, steps, self.places, columns).sum(axis=1)
        self.sums = (sums + (1 << 31)) % (1 << 32) - (1 << 31)

    def run(self, bench: Bench, seed: int, gaps: float) -> list[np.ndarray]:
        """Return the sums of every position."""
        bits, columns = self.numbers["VALUE_BITS"], self.numbers["COLUMNS"]
        bench.put("array", {"steps": self.steps, "nibbles": int(self.nibbles)})
        pulse(bench, "array")
        streams = [
            Stream(
                bench, "array", (f"{name}_valid", f"{name}_ready", name), [packed(w.ravel().tolist(), bits) for w in of]
            )
            for name, of in (("activations", self.activations), ("weights", self.weights))
        ]
        sink = Sink(bench, "array", ("sums_valid", "sums_ready", "sums"))
        words = drive(bench, streams, sink, self.positions, seed, gaps)
        return [np.array(unpacked(word, 32, self.places * columns)).reshape(self.places, columns) for word in words]


DRAINED = 30
"""The cycles after which the bench has no words of the previous test, which all tests of a library share."""


def bench_of(library: Path, numbers: dict[str, int]) -> Bench:
    bench = Bench(library, {"array": array_instance(numbers)})
    bench.reset(DRAINED)
    return bench


def texts_of(numbers: dict[str, int]) -> dict[str, str]:
    return files(numbers, {"array": array_instance(numbers)})
