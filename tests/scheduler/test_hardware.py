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
from host.contract.parts import MAX_FRAMES
from host.contract.streaming import MAX_PACKET_BYTES, Packet
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.budget import Budget, check_budget, room
from scheduler.hardware.ddr import (
    BURST_WORDS,
    MIN_EFFICIENCY,
    MIN_GBPS,
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


def test_hardware_constants_are_defined_once() -> None:
    # A constant of the DDR or of a primitive is assigned in one module only, and imported elsewhere.
    folder = ROOT / "scheduler" / "hardware"
    facts = _constants(folder / "ddr.py") | _constants(folder / "primitives.py")
    others = [path for room in ("scheduler", "systolic") for path in (ROOT / room).rglob("*.py")]
    again = [f"{path.name}: {name}" for path in others if path.parent != folder for name in _constants(path) & facts]
    assert again == []


def _constants(path: Path) -> set[str]:
    body = ast.parse(path.read_text("utf-8")).body
    targets = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
    names = [name for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
    return {name.id for name in names if name.id.isupper()}


def test_memory_timing_of_the_trace_equals_the_model() -> None:
    memory, board = MemoryTiming(), load("zcu104")
    assert (memory.efficiency, memory.read_latency_ns) == (board.ddr.measured_share, READ_LATENCY_NS)
    assert memory.write_latency_ns == WRITE_LATENCY_NS
    assert memory.peak_gbps == board.ddr.preset_gbps
    timing = ddr_timing(board, 300)
    assert timing.milli_bytes == round(1000 * memory.bytes_per_cycle(300))
    assert (timing.read_latency, timing.write_latency) == (64, 32)


def test_planned_bits_default_budget_is_below_the_sustained_rate() -> None:
    board = load("zcu104")
    sustained = ddr_timing(board, 300).milli_bytes / 1000 * 8 * 300_000
    assert planned_bits(ddr_rate(board), 1, 300_000, 300) == pytest.approx(sustained, rel=1e-3)
    assert planned_bits(ddr_rate(board), Budget().ddr, 300_000, 300) < sustained


def test_planned_bits_by_hand() -> None:
    """80 % of 10 GB/s are 64 · 10⁹ bits per second. 300,000 cycles at 300 MHz are a thousandth of a second."""
    assert planned_bits(DdrRate(10, 0.8), 0.5, 300_000, 300) == 32_000_000
    assert planned_bits(DdrRate(10, 1), 1, 3, 240) == 1000


def test_port_latency_is_covered_by_twice_the_outstanding_bursts() -> None:
    # A row of BRAM36 stores the data that arrive. A request takes 7 stages in addition to its latency.
    assert BURST_WORDS * OUTSTANDING == 512
    assert PORT_LATENCY + 5 == 2 * OUTSTANDING
    assert REQUEST_STAGES == 7 + PORT_LATENCY
    assert WEIGHT_BEAT_BYTES * 8 == 128


def test_ddr_rate_default_is_the_preset_at_the_measured_share() -> None:
    for board in map(load, names()):
        expected = DdrRate(board.ddr.preset_gbps, board.ddr.measured_share)
        assert ddr_rate(board) == ddr_timing(board, 300).rate == expected, board.name


@cases("name", ["lut", "dsp", "bram", "uram", "ddr"])
def test_check_budget_share_must_be_above_0_and_at_most_1(name: str) -> None:
    for share in (1e-9, 0.5, 1):
        budget = Budget(**{name: share})
        assert check_budget(budget) is budget
    for share in (0, -0.5, 1.001, float("nan"), 2):
        with raises(RangeError, got=share, low=0, high=1, exclusive=True) as caught:
            check_budget(Budget(**{name: share}))
        assert caught.value.what.startswith(f"--{name}-share")


def test_budget_defaults() -> None:
    budget = check_budget(Budget())
    assert str(budget) == "97% DSP, 80% LUT, 95% BRAM, 95% URAM"
    assert (budget.fabric, budget.ddr) == ({"dsp": 0.97, "lut": 0.8, "bram": 0.95, "uram": 0.95}, 0.7)


def test_room_of_a_budget_is_rounded_down() -> None:
    # Each resource is limited by its own share, and LUTs as memory by the share of all LUTs.
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


def test_room_smallest_share_leaves_one_of_each_resource() -> None:
    # The error for a design that does not fit can then name what it needs.
    least = room(load("ultra96-v2"), Budget(*[1e-9] * 5)).resources
    assert (least.lut, least.lutram, least.dsp, least.bram36, least.uram) == (1, 1, 1, 1, 0)


def test_host_batch_limit_equals_the_scheduler() -> None:
    assert MAX_FRAMES == MAX_BATCH


def test_host_beats_equal_those_of_the_dma() -> None:
    hints = get_type_hints(Packet, include_extras=True)["beat"].__metadata__
    assert [hint.values for hint in hints if isinstance(hint, OneOf)] == [BEATS]
    assert (1 << LENGTH_BITS) - 1 == MAX_PACKET_BYTES


def test_ddr_rate_out_of_range_is_refused() -> None:
    for efficiency in (0, 1e-300, 1.01):
        with raises(RangeError, got=efficiency, low=MIN_EFFICIENCY, high=1) as caught:
            DdrRate(19.2, efficiency)
        assert caught.value.what.startswith("--ddr-efficiency")
    assert DdrRate(19.2, 1).sustained_gbps == 19.2
    assert DdrRate(10_000, 0.5).sustained_gbps == 5000
    for gbps in (10_000.1, 1e-300, 0, -0.5):
        with raises(RangeError, got=gbps, low=MIN_GBPS, high=10_000) as caught:
            DdrRate(gbps, 1)
        assert caught.value.what.startswith("--ddr-gbps")
    with raises(RangeError, got=-1):
        ddr_rate(load("zcu104"), -1)
    with raises(RangeError, what="the clock in MHz", got=0):
        ddr_timing(load("zcu104"), 0)


def test_ddr_timing_slowest_memory_moves_bytes_every_cycle() -> None:
    for board in map(load, names()):
        for clock in board.clocks():
            assert ddr_timing(board, clock.mhz, DdrRate(MIN_GBPS, MIN_EFFICIENCY)).milli_bytes > 0


@given(st.integers(1, 400), st.integers(1, 40_000))
def test_bram18_twice_holds_at_least_a_bram36(bits: int, depth: int) -> None:
    assert bram36(bits, depth) <= bram18(bits, depth)
    assert bram18(bits, depth) * BRAM36_BITS // 2 >= bits * depth


def test_bram_shapes_have_the_bits_of_a_block() -> None:
    assert max(bits * words for bits, words in BRAM36_SHAPES) == BRAM36_BITS
    assert max(bits * words for bits, words in BRAM18_SHAPES) == BRAM36_BITS // 2


@given(st.integers(1, 100), st.integers(1, 17))
def test_ceil_div_rounds_up(dividend: int, divisor: int) -> None:
    assert (ceil_div(dividend, divisor) - 1) * divisor < dividend <= ceil_div(dividend, divisor) * divisor
