"""The PE array whose DSPs run at twice its clock: exact sums, one step a cycle, whenever the reset ends."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.rtl_templates.bench import NUMBERS, Bench, array_instance, files, packed, unpacked
from tests.rtl_templates.conftest import Builder
from tests.rtl_templates.test_modules import Sink, Stream, drive, pulse

PACKED = {
    8: {"PACK_COLUMNS": 2, "POSITIONS": 1, "PACK_SHIFT": 18},
    4: {"PACK_COLUMNS": 2, "POSITIONS": 2, "PACK_SHIFT": 11},
    16: {"PACK_COLUMNS": 1, "POSITIONS": 1, "PACK_SHIFT": 32},
}
SIZES = {8: (4, 4), 4: (8, 8), 16: (4, 4)}
"""Columns and lanes."""


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
        """Every position's sums."""
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
"""Cycles after which nothing of a test before is under way: a library has one bench."""


def bench_of(library: Path, numbers: dict[str, int]) -> Bench:
    bench = Bench(library, {"array": array_instance(numbers)})
    bench.reset(DRAINED)
    return bench


def texts_of(numbers: dict[str, int]) -> dict[str, str]:
    return files(numbers, {"array": array_instance(numbers)})


@pytest.mark.parametrize(("bits", "rows"), [(8, 2), (8, 5), (4, 3), (4, 4), (16, 3)])
def test_the_array_gives_exact_sums(built: Builder, bits: int, rows: int) -> None:
    """Even and odd numbers of rows, one step a position and several, random gaps and none."""
    numbers = numbers_of(bits, rows)
    bench = bench_of(built(texts_of(numbers)), numbers)
    for steps, positions, gaps in ((1, 60, 0.4), (3, 25, 0.4), (9, 8, 0.1), (1, 40, 0.0)):
        for nibbles in (False, True) if bits == 4 else (False,):
            case = Case(numbers, steps, positions, nibbles)
            assert np.array_equal(case.run(bench, steps, gaps), case.sums)


def test_it_takes_a_step_a_cycle(built: Builder) -> None:
    """In each of which every DSP multiplies twice."""
    numbers = numbers_of(8, 5)
    bench = bench_of(built(texts_of(numbers)), numbers)
    bench.put("array", {"steps": 2})
    pulse(bench, "array")
    bench.put("array", {"activations_valid": 1, "weights_valid": 1, "sums_ready": 1})
    taken = given = 0
    for _ in range(100):
        bench.settle()
        taken += bench.get("array", "activations_ready")
        given += bench.get("array", "sums_valid")
        bench.edge()
    assert taken == 100
    # A chain of 4 at twice the clock, registers of both clocks, row 4 two cycles later than row 0.
    assert given == (100 - (4 // 2 + 5) - 2 - 2) // 2


@pytest.mark.parametrize("cycles", [1, 2, 3])
def test_the_phase_is_that_of_the_clocks_and_not_of_the_reset(built: Builder, cycles: int) -> None:
    numbers = numbers_of(8, 5)
    bench = bench_of(built(texts_of(numbers)), numbers)
    bench.reset(DRAINED + cycles)
    case = Case(numbers, 3, 10)
    assert np.array_equal(case.run(bench, 1, 0.3), case.sums)


PLANTED = {
    "weights of the other half": ("halves.sv", "turn != seen", "turn == seen"),
    "sums of the other half": ("take_sums.sv", "{sum, past}", "{past, sum}"),
    "half a cycle late": ("operand.sv", "1 + STEPS % 2", "1"),
    "taken half a cycle early": ("take_sums.sv", "{past, earlier}", "{sum, past}"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_defect_is_found(built: Builder, name: str) -> None:
    module, right, wrong = PLANTED[name]
    numbers = numbers_of(8, 2)
    texts = texts_of(numbers)
    assert texts[f"src/{module}"].count(right) == 1
    texts[f"src/{module}"] = texts[f"src/{module}"].replace(right, wrong)
    if name == "taken half a cycle early":  # what is then of no use is complained about
        texts["src/take_sums.sv"] = "// verilator lint_off UNUSEDSIGNAL\n" + texts["src/take_sums.sv"]
    case = Case(numbers, 3, 10)
    assert not np.array_equal(case.run(bench_of(built(texts), numbers), 1, 0.3), case.sums)
