"""Six products of 4 bits per DSP: every product of every operand, and exact sums of an array of such DSPs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from scheduler.systolic.array import SIX
from tests.support.rtl.arrays import Case, bench_of, texts_of
from tests.support.rtl.bench import NUMBERS, Bench, Builder, Instance, array_instance, files, packed, unpacked
from tests.support.rtl.streams import pulse

WEIGHTS, VALUES = np.arange(-7, 8), np.arange(-8, 8)
SHIFTS = SIX.shift * np.arange(SIX.products)
DSP_CYCLES = 4

NUMBERS_OF_SIX = {
    **NUMBERS,
    **{"COLUMNS": 24, "LANES": 8, "VALUE_BITS": 4, "PACK_COLUMNS": SIX.columns, "POSITIONS": SIX.positions},
    **{"PACK_SHIFT": SIX.shift, "PACK_CHAIN": SIX.chain},
}
ONE = {
    "dsp": Instance("six_products", "", [("weights", 18), ("values", 8)], [("products", 42)]),
    "array": array_instance({**NUMBERS_OF_SIX, "COLUMNS": 6}),
}
"""The DSP with the logic that splits its fields, and separately an array."""


def test_fields_of_all_operands_do_not_borrow() -> None:
    """Check all 15^3 · 16^2 operands: they fit the ports, and each field is its product plus 64."""
    w2, w1, w0, a1, a0 = np.meshgrid(WEIGHTS, WEIGHTS, WEIGHTS, VALUES, VALUES, indexing="ij")
    port_b, port_ad = (w2 << 14) + (w1 << 7) + w0, (a1 << 21) + a0
    for port, bits in ((port_b, 18), (port_ad, 27)):
        assert np.array_equal(port, (port + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1))
    fields = port_b * port_ad + int((64 << SHIFTS).sum())
    for shift, expected in zip(SHIFTS, (w * a for a, w in product((a0, a1), (w0, w1, w2))), strict=True):
        assert np.array_equal((fields >> shift & 127) - 64, expected)


def test_port_of_three_least_weights_overflows() -> None:
    """Check the reason for narrow weights. The weight −8 is refused before it reaches the DSP."""
    assert -8 * ((1 << 14) + (1 << 7) + 1) < -(1 << 17)


@pytest.mark.engine
def test_dsp_all_pairs_give_six_products(built: Builder) -> None:
    """Check every pair of a weight and an activation in every field, with other operands at random, in every cycle."""
    bench = Bench(built(files({**NUMBERS_OF_SIX, "COLUMNS": 6}, ONE)), ONE)
    dice = np.random.default_rng(1)
    pairs = np.array(list(product(WEIGHTS, VALUES)))
    weights, values = dice.choice(WEIGHTS, (6 * len(pairs), 3)), dice.choice(VALUES, (6 * len(pairs), 2))
    for field in range(6):
        rows = slice(field * len(pairs), (field + 1) * len(pairs))
        weights[rows, field % 3], values[rows, field // 3] = pairs.T
    seen = []
    for w, a in [*zip(weights, values, strict=True), *[(weights[0], values[0])] * DSP_CYCLES]:
        packed_weights = int(w[0] + (w[1] << 7) + (w[2] << 14))
        bench.put("dsp", {"weights": packed_weights, "values": packed(a.tolist(), 4)})
        bench.settle()
        bench.edge()
        bench.settle()
        seen.append(unpacked(bench.get("dsp", "products"), 7, 6))
    expected = (values[:, :, None] * weights[:, None, :]).reshape(-1, 6)
    assert np.array_equal(seen[DSP_CYCLES - 1 : -1], expected)


@pytest.mark.engine
@pytest.mark.parametrize(("rows", "columns", "lanes"), [(3, 6, 8), (3, 24, 8), (2, 24, 16), (2, 6, 32)])
def test_array_of_six_products_gives_exact_sums(built: Builder, rows: int, columns: int, lanes: int) -> None:
    """Use one or several steps per position, with and without nibbles of pixels, with and without random gaps."""
    numbers = {**NUMBERS_OF_SIX, "ROWS": rows, "COLUMNS": columns, "LANES": lanes}
    bench = bench_of(built(texts_of(numbers)), numbers)
    for steps, positions, gaps in ((1, 60, 0.4), (3, 25, 0.4), (9, 8, 0.1), (1, 40, 0.0)):
        for nibbles in (False, True):
            case = Case(numbers, steps, positions, nibbles)
            assert np.array_equal(case.run(bench, steps, gaps), case.sums)


@pytest.mark.engine
def test_array_of_six_products_takes_one_step_per_cycle(built: Builder) -> None:
    bench = bench_of(built(texts_of(NUMBERS_OF_SIX)), NUMBERS_OF_SIX)
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
    # The latency: three weights packed, 4 DSP registers, 2 levels for 4 lanes of each kind, both kinds, the sum, row 2.
    assert given == (100 - (1 + DSP_CYCLES + 2 + 1) - 2 - 2) // 2


PLANTED = {
    "a field borrows": ("six_products.sv", "{6{7'd64}}", "{6{7'd0}}"),
    "a weight in the wrong field": ("pack_weights.sv", "<<< 14", "<<< 13"),
    "the second activation": ("six_products.sv", "<<< 21", "<<< 20"),
    "an adder of two": ("ternary_adder_tree.sv", "LEVEL_WIDTH'(level[k][(3*i+2)%COUNT])", "LEVEL_WIDTH'(0)"),
    "nibbles that do not count 16 times": ("pe_row_six.sv", "<<< 4", "<<< 3"),
    "columns exchanged": ("pe_row_six.sv", "n + f % 3", "n + (f + 1) % 3"),
}


@pytest.mark.engine
@pytest.mark.parametrize("name", PLANTED)
def test_array_planted_defect_gives_wrong_sums(built: Builder, name: str) -> None:
    module, right, wrong = PLANTED[name]
    numbers = {**NUMBERS_OF_SIX, "COLUMNS": 6}
    texts = texts_of(numbers)
    assert texts[f"src/{module}"].count(right) == 1
    texts[f"src/{module}"] = texts[f"src/{module}"].replace(right, wrong)
    case = Case(numbers, 3, 10, nibbles=True)
    assert not np.array_equal(case.run(bench_of(built(texts), numbers), 1, 0.3), case.sums)
