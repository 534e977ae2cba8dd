"""Hardware facts have one value each, wherever they are used."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

import scheduler
from boards.board import load, names
from boards.errors import RangeError
from hls_templates.vendor.ports import BEATS, LENGTH_BITS
from host.contract.codec import OneOf
from host.contract.parts import MOST_FRAMES
from host.contract.streaming import LARGEST_PACKET, Packet
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.budget import Budget, check_budget, room
from scheduler.hardware.ddr import (
    BURST_WORDS,
    DDR_EFFICIENCY,
    LEAST_EFFICIENCY,
    LEAST_GBPS,
    OUTSTANDING,
    PORT_LATENCY,
    READ_LATENCY_NS,
    REQUEST_STAGES,
    WEIGHT_BEAT_BYTES,
    WRITE_LATENCY_NS,
    DdrRate,
    ddr_rate,
    ddr_timing,
    planned_bits,
)
from scheduler.hardware.primitives import BRAM18_SHAPES, BRAM36_BITS, BRAM36_SHAPES, bram18, bram36
from scheduler.systolic.layers import MAX_BATCH
from systolic.trace.timing import MemoryTiming
from tests.support.cases import cases
from tests.support.errors import raises

ROOT = Path(scheduler.__file__).resolve().parents[1]


def test_a_constant_of_the_hardware_is_defined_once() -> None:
    """A name of the DDR or of a primitive is given a value nowhere else in the rooms above; it is imported."""
    folder = ROOT / "scheduler" / "hardware"
    facts = _constants(folder / "ddr.py") | _constants(folder / "primitives.py")
    others = [path for room in ("scheduler", "systolic") for path in (ROOT / room).rglob("*.py")]
    again = [f"{path.name}: {name}" for path in others if path.parent != folder for name in _constants(path) & facts]
    # the command line imports no room until it runs; tests/systolic/test_help.py compares its copy
    assert again == ["choices.py: DDR_EFFICIENCY"]


def _constants(path: Path) -> set[str]:
    body = ast.parse(path.read_text("utf-8")).body
    targets = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
    names = [name for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
    return {name.id for name in names if name.id.isupper()}


def test_the_trace_s_memory_is_the_model_s() -> None:
    memory, board = MemoryTiming(), load("zcu104")
    assert (memory.efficiency, memory.read_latency_ns) == (DDR_EFFICIENCY, READ_LATENCY_NS)
    assert memory.write_latency_ns == WRITE_LATENCY_NS
    assert memory.peak_gbps == board.ddr.preset_gbps
    timing = ddr_timing(board, 300)
    assert timing.milli_bytes == round(1000 * memory.bytes_per_cycle(300))
    assert (timing.read_latency, timing.write_latency) == (64, 32)


def test_a_folding_plans_for_less_than_the_model_sustains() -> None:
    board = load("zcu104")
    sustained = ddr_timing(board, 300).milli_bytes / 1000 * 8 * 300_000
    assert planned_bits(ddr_rate(board), 1, 300_000, 300) == pytest.approx(sustained, rel=1e-3)
    assert planned_bits(ddr_rate(board), Budget().ddr, 300_000, 300) < sustained


def test_bits_that_are_planned_with() -> None:
    """Of 10 GB/s 80 % carry data: 64 · 10⁹ bits a second, of which 300,000 cycles at 300 MHz are a thousandth."""
    assert planned_bits(DdrRate(10, 0.8), 0.5, 300_000, 300) == 32_000_000
    assert planned_bits(DdrRate(10, 1), 1, 3, 240) == 1000


def test_a_port_has_room_for_twice_the_bursts_on_their_way() -> None:
    """A row of BRAM36 holds what comes, and a request takes 7 stages beside its latency."""
    assert BURST_WORDS * OUTSTANDING == 512
    assert PORT_LATENCY + 5 == 2 * OUTSTANDING
    assert REQUEST_STAGES == 7 + PORT_LATENCY
    assert WEIGHT_BEAT_BYTES * 8 == 128


@cases("name", ["lut", "dsp", "bram", "uram", "ddr"])
def test_a_share_of_the_board_is_above_0_and_at_most_1(name: str) -> None:
    for share in (1e-9, 0.5, 1):
        budget = Budget(**{name: share})
        assert check_budget(budget) is budget
    for share in (0, -0.5, 1.001, float("nan"), 2):
        with raises(RangeError, got=share, low=0, high=1, exclusive=True) as caught:
            check_budget(Budget(**{name: share}))
        assert caught.value.what.startswith(f"--{name}-share")


def test_the_budget_that_is_kept_to_unless_another_is_named() -> None:
    budget = check_budget(Budget())
    assert str(budget) == "97% DSP, 80% LUT, 95% BRAM, 95% URAM"
    assert (budget.fabric, budget.ddr) == ({"dsp": 0.97, "lut": 0.8, "bram": 0.95, "uram": 0.95}, 0.7)


def test_the_room_that_a_budget_leaves_is_rounded_down() -> None:
    """Each resource by its own share; LUTs that are memory by that of all LUTs."""
    board = load("zcu104")
    whole = board.resources
    part = room(board, Budget(lut=0.5, dsp=0.25, bram=0.3, uram=0.7)).resources
    for left, total, percent in (
        (part.lut, whole.lut, 50),
        (part.lutram, whole.lutram, 50),
        (part.dsp, whole.dsp, 25),
        (part.bram36, whole.bram36, 30),
        (part.uram, whole.uram, 70),
    ):
        assert left == total * percent // 100 > 0
    assert room(board, Budget(1, 1, 1, 1, 1)) == board


def test_the_least_share_leaves_one_of_what_the_board_has() -> None:
    """So that what does not fit is told with what it needs."""
    least = room(load("ultra96-v2"), Budget(*[1e-9] * 5)).resources
    assert (least.lut, least.lutram, least.dsp, least.bram36, least.uram) == (1, 1, 1, 1, 0)


def test_the_host_takes_the_batches_that_are_made() -> None:
    assert MOST_FRAMES == MAX_BATCH


def test_the_host_takes_the_beats_that_the_dma_has() -> None:
    hints = get_type_hints(Packet, include_extras=True)["beat"].__metadata__
    assert [hint.values for hint in hints if isinstance(hint, OneOf)] == [BEATS]
    assert (1 << LENGTH_BITS) - 1 == LARGEST_PACKET


def test_a_memory_of_no_speed_is_refused() -> None:
    for efficiency in (0, 1e-300, 1.01):
        with raises(RangeError, got=efficiency, low=LEAST_EFFICIENCY, high=1) as caught:
            DdrRate(19.2, efficiency)
        assert caught.value.what.startswith("--ddr-efficiency")
    assert DdrRate(19.2, 1).sustained_gbps == 19.2
    assert DdrRate(10_000, 0.5).sustained_gbps == 5000
    for gbps in (10_000.1, 1e-300, 0, -0.5):
        with raises(RangeError, got=gbps, low=LEAST_GBPS, high=10_000) as caught:
            DdrRate(gbps)
        assert caught.value.what.startswith("--ddr-gbps")
    with raises(RangeError, got=-1):
        ddr_rate(load("zcu104"), -1)
    with raises(RangeError, what="the clock in MHz", got=0):
        ddr_timing(load("zcu104"), 0)


def test_the_slowest_memory_still_moves_something_in_a_cycle() -> None:
    for board in map(load, names()):
        for clock in board.clocks():
            assert ddr_timing(board, clock.mhz, DdrRate(LEAST_GBPS, LEAST_EFFICIENCY)).milli_bytes > 0


@given(st.integers(1, 400), st.integers(1, 40_000))
def test_two_halves_are_at_least_a_block(bits: int, depth: int) -> None:
    assert bram36(bits, depth) <= bram18(bits, depth)
    assert bram18(bits, depth) * BRAM36_BITS // 2 >= bits * depth


def test_shapes_hold_what_a_block_holds() -> None:
    assert max(bits * words for bits, words in BRAM36_SHAPES) == BRAM36_BITS
    assert max(bits * words for bits, words in BRAM18_SHAPES) == BRAM36_BITS // 2


@given(st.integers(1, 100), st.integers(1, 17))
def test_ceil_div(dividend: int, divisor: int) -> None:
    assert (ceil_div(dividend, divisor) - 1) * divisor < dividend <= ceil_div(dividend, divisor) * divisor
