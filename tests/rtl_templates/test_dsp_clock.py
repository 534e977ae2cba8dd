"""The PE array whose DSPs run at twice its clock: exact sums, one step per cycle, for any end of the reset."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.rtl.arrays import DRAINED, Case, bench_of, numbers_of, texts_of
from tests.support.rtl.bench import Builder
from tests.support.rtl.streams import pulse

pytestmark = pytest.mark.engine


@pytest.mark.parametrize(
    ("bits", "rows"),
    [(8, 2), *(pytest.param(*sizes, marks=pytest.mark.engine) for sizes in ((8, 5), (4, 3), (4, 4), (16, 3)))],
)
def test_array_at_two_clocks_gives_exact_sums(built: Builder, bits: int, rows: int) -> None:
    """Use even and odd numbers of rows, one or several steps per position, with and without random gaps."""
    numbers = numbers_of(bits, rows)
    bench = bench_of(built(texts_of(numbers)), numbers)
    for steps, positions, gaps in ((1, 60, 0.4), (3, 25, 0.4), (9, 8, 0.1), (1, 40, 0.0)):
        for nibbles in (False, True) if bits == 4 else (False,):
            case = Case(numbers, steps, positions, nibbles)
            assert np.array_equal(case.run(bench, steps, gaps), case.sums)


@pytest.mark.engine
def test_array_at_two_clocks_takes_one_step_per_cycle(built: Builder) -> None:
    """Check that a step is taken in every cycle, so that every DSP multiplies twice per cycle."""
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
    # The latency: a chain of 4 at twice the clock, registers of both clocks, and two cycles from row 0 to row 4.
    assert given == (100 - (4 // 2 + 5) - 2 - 2) // 2


@pytest.mark.engine
@pytest.mark.parametrize("cycles", [1, 2, 3])
def test_array_after_any_reset_has_the_phase_of_the_clocks(built: Builder, cycles: int) -> None:
    numbers = numbers_of(8, 5)
    bench = bench_of(built(texts_of(numbers)), numbers)
    bench.reset(DRAINED + cycles)
    case = Case(numbers, 3, 10)
    assert np.array_equal(case.run(bench, 1, 0.3), case.sums)


PLANTED = {
    "weights of the other half": ("clock_half.sv", "toggle != sampled_toggle", "toggle == sampled_toggle"),
    "sums of the other half": ("capture_sums.sv", "{sum, previous_sum}", "{previous_sum, sum}"),
    "half a cycle late": ("operand.sv", "1 + STEPS % 2", "1"),
    "taken half a cycle early": ("capture_sums.sv", "{previous_sum, older_sum}", "{sum, previous_sum}"),
}


@pytest.mark.engine
@pytest.mark.parametrize("name", PLANTED)
def test_array_planted_defect_gives_wrong_sums(built: Builder, name: str) -> None:
    module, right, wrong = PLANTED[name]
    numbers = numbers_of(8, 2)
    texts = texts_of(numbers)
    assert texts[f"src/{module}"].count(right) == 1
    texts[f"src/{module}"] = texts[f"src/{module}"].replace(right, wrong)
    if name == "taken half a cycle early":  # Verilator warns of the signals that are then unused
        texts["src/capture_sums.sv"] = "// verilator lint_off UNUSEDSIGNAL\n" + texts["src/capture_sums.sv"]
    case = Case(numbers, 3, 10)
    assert not np.array_equal(case.run(bench_of(built(texts), numbers), 1, 0.3), case.sums)
