"""The estimate of the SystemVerilog engine, compared with the counts of Yosys for whole designs, module by module.

``python -m benchmarks.counts DIR --json FILE`` has written tests/scheduler/yosys/. Each design has one convolution on a
small array of a ZCU104, without optional units.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from boards.board import load
from contract.geometry import HLS, RTL
from scheduler.systolic.area.logic import Fabric
from scheduler.systolic.area.placement import place
from scheduler.systolic.area.resources import fabric, fixed, used_by
from scheduler.systolic.array import Array
from scheduler.systolic.engines.hls.fifos import FIFOS
from scheduler.systolic.engines.rtl import fabric as terms
from scheduler.systolic.engines.rtl.fifos import QUEUES

pytestmark = pytest.mark.proof

FOLDER = Path(__file__).parent / "yosys"
COUNTED = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))}

WHOLE = 0.10
"""The tolerance for all LUTs and for all flip-flops, as a share."""
PART = 0.10
"""The tolerance for one term, as a share. 50 LUTs or flip-flops are always tolerated."""

MODULES = {
    "_load": ("load",),
    "_window": ("window",),
    "_array": ("pe_array", "pe_row", "delay"),
    "_pool": ("pool",),
    "_requantise": ("requantise", "requantise_sum", "shift_and_saturate"),
    "_multiply": ("multiply",),
    "_arrange": ("arrange", "map_buffers"),
    "_ports": ("axi_bursts", "axi_read", "axi_write", "read_rows", "chunk_rows", "read_weights"),
    "_control": (
        *("control_slave", "read_program", "sequence_passes", "plan_tiles", "plan_chunks", "tile_rows"),
        *("feed_weights", "engine", "systolic_top"),
    ),
}
TALL = Array(13, 32, 4, map_ports=1, row_depth=64, engine=RTL, sum_bits=29)
ALONE = [
    ("_load", {}, 7203, 4772),
    ("_load", {"lanes": 8}, 9765, 6922),
    ("_load", {"map_ports": 4}, 7723, 5538),
    ("_load", {"map_depth": 64}, 8082, 4788),
    ("_load", {"map_depth": 64, "map_stride": 3}, 12214, 6034),
    ("_load", {"map_depth": 64, "rows": 5, "lanes": 8}, 5751, 3901),
    ("_load", {"map_depth": 64, "map_stride": 2, "rows": 5, "lanes": 8}, 6176, 3967),
    ("_load", {"map_depth": 64, "map_stride": 3, "rows": 5, "lanes": 8}, 8604, 4747),
    ("_load", {"lanes": 16, "map_ports": 2, "map_depth": 832}, 18668, 14306),
    ("_pool", {}, 33615, 24269),
    ("_pool", {"columns": 16}, 17005, None),
]
"""Counts of modules with 13 rows, or 5 rows, as (term, numbers of the array, LUTs, flip-flops or None).

``load`` depends on the words and on the strides of maps on chip, and ``pool`` on the columns.
"""
WITHOUT_CELLS = ("distribute_weights", "mac_chain", "operand", "capture_sums")
"""Modules that contain only DSPs or other modules."""


def array_of(name: str) -> Array:
    return Array(**COUNTED[name]["array"])


def counted(name: str, *modules: str) -> Fabric:
    """Return the LUTs and flip-flops of all instances of modules, without the LUTs that FIFOs use as memory."""
    cells: dict[str, Any] = COUNTED[name]["modules"]
    return Fabric(
        sum(cells[module]["lut"] for module in modules),
        sum(cells[module]["ff"] for module in modules),
    )


def near(estimate: int, count: int) -> bool:
    return abs(estimate - count) <= max(PART * count, 50)


def test_recorded_designs_cover_all_formats() -> None:
    """There is a design per format, and a wider array with more ports."""
    arrays = [array_of(name) for name in COUNTED]
    assert {array.bits for array in arrays} == {4, 8, 16}
    assert {(array.engine, array.dsp) for array in arrays} == {(RTL, "DSP48E2")}
    assert {(array.lanes, array.map_ports, array.save_rows) for array in arrays} == {(8, 1, 1), (16, 2, 2)}


@pytest.mark.parametrize("name", COUNTED)
def test_fabric_rtl_is_within_10_percent_of_yosys(name: str) -> None:
    array = array_of(name)
    whole = counted(name, *COUNTED[name]["modules"])
    _, usage = place(array, load(COUNTED[name]["board"]))
    assert usage.lut == pytest.approx(whole.lut, rel=WHOLE)
    assert fabric(array).ff == pytest.approx(whole.ff, rel=WHOLE)


@pytest.mark.parametrize("term", MODULES)
@pytest.mark.parametrize("name", COUNTED)
def test_fabric_rtl_terms_are_near_their_modules(name: str, term: str) -> None:
    array = array_of(name)
    estimate, count = getattr(terms, term)(array), counted(name, *MODULES[term])
    if term == "_ports":
        fifos = counted(name, "fifo")
        memory = COUNTED[name]["modules"]["fifo"]["lutram"]
        count = count + Fabric(fifos.lut - memory, fifos.ff)
    assert near(estimate.lut, count.lut), f"{term}: {estimate.lut} LUTs estimated, {count.lut} counted"
    registers = terms.CONSTANT_BITS * array.columns if term == "_requantise" else 0  # after a memory
    assert near(estimate.ff - registers, count.ff), f"{term}: {estimate.ff} FFs estimated, {count.ff} counted"


@pytest.mark.parametrize(("term", "numbers", "lut", "ff"), ALONE)
def test_fabric_rtl_terms_of_13_rows_are_near_their_modules(
    term: str, numbers: Mapping[str, int], lut: int, ff: int | None
) -> None:
    estimate = getattr(terms, term)(Array(**{**vars(TALL), **numbers}))
    assert near(estimate.lut, lut), f"{term}: {estimate.lut} LUTs estimated, {lut} counted"
    assert ff is None or near(estimate.ff, ff), f"{term}: {estimate.ff} FFs estimated, {ff} counted"


@pytest.mark.parametrize("name", COUNTED)
def test_queues_rtl_take_the_counted_luts(name: str) -> None:
    board = load(COUNTED[name]["board"])
    luts = sum(used_by(queue, array_of(name), "lutram", board).lut for queue in QUEUES)
    assert luts == COUNTED[name]["modules"]["fifo"]["lutram"]


@pytest.mark.parametrize("name", COUNTED)
def test_modules_all_have_a_term(name: str) -> None:
    of_terms = {module for modules in MODULES.values() for module in modules}
    assert set(COUNTED[name]["modules"]) == of_terms | {*WITHOUT_CELLS, "fifo", "sdp_ram"}
    assert counted(name, *WITHOUT_CELLS) == Fabric(0, 0)


def test_fixed_fifos_follow_from_the_engine() -> None:
    array, rtl = Array(13, 16, 16), Array(13, 16, 16, engine=RTL)
    assert array.engine == HLS
    assert set(fixed(array)) - set(fixed(rtl)) == set(FIFOS)
    assert set(fixed(rtl)) - set(fixed(array)) == set(QUEUES)
    assert fabric(array) != fabric(rtl)
