"""Modelled cycles of designs whose trace agrees with the model to 3 % (test_cost.py).

Any change of the model shows here as a difference of tests/golden/cycles.json, without a trace. `--update-golden`
renews that file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import hls_templates
from boards.board import load
from contract.program import PASS_FIELDS
from scheduler.hardware.ddr import DdrRate, DdrTiming, ddr_timing
from scheduler.systolic.array import Array
from scheduler.systolic.engines.hls.engine import program_cycles
from scheduler.systolic.engines.hls.output_timing import ADD_STAGES, ARRANGE_STAGES
from scheduler.systolic.engines.hls.stages import ARRAY_STAGES, POOL_STAGES, REQUANTISE_STAGES, SLOPE_STAGES
from scheduler.systolic.engines.table import ENGINE_NAMED
from scheduler.systolic.model.arrays import array_column
from scheduler.systolic.model.cost import cost, layer_cycles
from scheduler.systolic.model.cycles import PARTS
from scheduler.systolic.program.emit import emit
from scheduler.systolic.schedule import SystolicSchedule
from scheduler.systolic.shape import steps_after
from scheduler.systolic.tiling import column_cuts, tilings
from tests.support.arrays.passes import batched, strided
from tests.support.arrays.passes import narrow as narrow_words
from tests.support.arrays.traced_models import (
    APART,
    ASKED_BETWEEN,
    FOUR_PORTS,
    HELD_UP,
    JOINING,
    LARGE_WINDOW,
    LARGE_WINDOWS,
    RATED,
    SHARES,
    SHORT_OF_DDR,
    TRACED,
    TRACED_ARRAY,
    of_a_wide_picture,
    pooled_in_columns,
)
from tests.support.quantised import Builder
from tests.support.recorded_cycles import MODELLED, record, recorded
from tests.support.schedules import first_fit
from tests.support.traced import kept

BOARD = load("zcu104")
BATCHES = {"batch of two": 2, "batch of five": 5}
Numbers = dict[str, list[int]]


def on_chip() -> SystolicSchedule:
    """Return a schedule whose maps stay on chip if they fit."""
    return kept(first_fit(Builder(3, 32, 40).conv(40, 3, 2).conv(16, 3).pool().dense(48).network(), FOUR_PORTS))


def narrow() -> SystolicSchedule:
    """Return a schedule of 4 bits with one port of each kind, and more rows of PEs than the last map has."""
    array = Array(7, 16, 8, 1, 1, 1, row_depth=512, weight_depth=512, kept_depth=256, chunk=8, channel_tiles=8, bits=4)
    return first_fit(Builder(2, 30, 41, bits=4).conv(20, 3).pool(1).conv(36, 3).pool().conv(9, 1).network(), array)


def single_words() -> SystolicSchedule:
    """Return a schedule in which a weight tile is one word of each port."""
    array = Array(
        4, 8, 8, 2, 2, 4, row_depth=256, weight_depth=64, kept_depth=64, chunk=8, channel_tiles=8, weight_words=2
    )
    return first_fit(Builder(3, 12, 10).conv(8, 3).conv(8, 1).conv(24, 1).conv(8, 3).network(), array)


def low_maps() -> SystolicSchedule:
    """Return a schedule with maps that end above the array's last row."""
    array = Array(12, 8, 8, row_depth=256, weight_depth=256, kept_depth=64, chunk=8, channel_tiles=8)
    return first_fit(Builder(3, 5, 7).conv(8, 3).conv(16, 5).pool(1).conv(8, 3).network(), array)


SCHEDULES: dict[str, tuple[Callable[[], SystolicSchedule], tuple[float, ...]]] = {
    **{
        name: ((lambda name=name: first_fit(TRACED[name], TRACED_ARRAY, BATCHES.get(name, 1))), SHARES[name])  # type: ignore[misc]
        for name in TRACED
    },
    **{
        name: ((lambda network=network: first_fit(network, FOUR_PORTS)), shares)  # type: ignore[misc]
        for name, (network, shares) in SHORT_OF_DDR.items()
    },
    **{
        name: ((lambda network=network: first_fit(network, JOINING)), (0.85, 0.4))  # type: ignore[misc]
        for name, network in HELD_UP.items()
    },
    "a large window": ((lambda: first_fit(LARGE_WINDOW, LARGE_WINDOWS)), (0.85, 0.4)),
    "weights asked for between two tiles": ((lambda: first_fit(ASKED_BETWEEN, TRACED_ARRAY)), (0.85, 0.4)),
    "rows and columns apart": ((lambda: first_fit(APART, TRACED_ARRAY)), (0.85, 0.4)),
    "a pool in columns": (pooled_in_columns, (0.85,)),
    "a wide picture": (of_a_wide_picture, (0.755,)),
    "maps on chip": (on_chip, (0.85, 0.2)),
    "narrow": (narrow, (0.85, 0.1)),
    "low maps": (low_maps, (0.85, 0.05)),
    "single words": (single_words, (0.85, 0.05)),
}


def parts(schedule: SystolicSchedule, share: float) -> Numbers:
    """Return the cycles of each layer by PARTS."""
    layers = cost(schedule, ddr_timing(BOARD, 300, DdrRate(RATED, share))).layers
    return {layer.shape.name: [int(getattr(layer.cycles, part)) for part in PARTS] for layer in layers}


MEMORIES = {
    "board": ddr_timing(BOARD, 300, DdrRate(RATED, 0.3)),
    "slow": replace(ddr_timing(BOARD, 300, DdrRate(RATED, 0.85)), milli_bytes=3_000),
    "late": replace(ddr_timing(BOARD, 300, DdrRate(RATED, 0.85)), read_latency=600, write_latency=400),
    "quick": replace(ddr_timing(BOARD, 300, DdrRate(RATED, 0.85)), milli_bytes=64_000, read_latency=3, write_latency=2),
}


def every_way(schedule: SystolicSchedule, ddr: DdrTiming) -> Numbers:
    """Return the cycles of all tilings per layer, on the array and on two arrays with other ports and chunks."""
    array, shapes = schedule.array, [layer.shape for layer in schedule.layers]
    few = replace(array, map_ports=1, weight_ports=2, weight_words=1, save_rows=1, chunk=8)
    many = replace(array, map_ports=4, weight_ports=4, weight_words=2, save_rows=4, chunk=128)
    grid, found = array_column([array, few, many]), {}
    for index, scheduled in enumerate(schedule.layers):
        cuts = column_cuts(schedule.network, scheduled.layer, array, 3)
        ways = tilings(scheduled.shape, array.rows, cuts)
        cycles = layer_cycles(grid, scheduled.shape, ways, steps_after(shapes, index), ddr, index == 0)
        found[scheduled.shape.name] = cycles.total.ravel().tolist()
    return found


def agree(name: str, found: Numbers, update: bool) -> None:
    if update:
        record(MODELLED, name, found)
    assert found == recorded(MODELLED)[name]


@pytest.mark.parametrize(
    ("name", "share"), [(name, share) for name, (_, shares) in SCHEDULES.items() for share in shares]
)
def test_cost_cycles_equal_the_recorded_ones(name: str, share: float, pytestconfig: pytest.Config) -> None:
    found = parts(SCHEDULES[name][0](), share)
    agree(f"{name}, {share} of the DDR", found, pytestconfig.getoption("--update-golden"))


@pytest.mark.engine
@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("name", SCHEDULES)
def test_layer_cycles_of_all_tilings_equal_the_recorded_ones(
    name: str, memory: str, pytestconfig: pytest.Config
) -> None:
    # These cycles are not traced. They were recorded when the schedules above agreed with their traces.
    found = every_way(SCHEDULES[name][0](), MEMORIES[memory])
    agree(f"{name}, every way, {memory}", found, pytestconfig.getoption("--update-golden"))


DDR = DdrTiming(clock_mhz=100, milli_bytes=8_000, read_latency=50, write_latency=20, rate=DdrRate(RATED, 0.85))


def test_stages_equal_the_pipeline_depths_of_the_code() -> None:
    engine = Path(hls_templates.__file__).parent / "systolic"

    def deepest(header: str) -> int:
        return max(int(depth) for depth in re.findall(r"SYSTOLIC_PIPELINE\(1, (\d+)\)", (engine / header).read_text()))

    pool = (engine / "saver/pool.h").read_text()
    assert f"MAP_PRODUCTS > 0 ? 8 : {POOL_STAGES};" in pool
    assert "SYSTOLIC_PIPELINE(1, POOL_STAGES)" in pool
    requantise = (engine / "saver/requantise.h").read_text()
    assert f"TABLE_SLOPES > 0 ? {REQUANTISE_STAGES + SLOPE_STAGES} : {REQUANTISE_STAGES};" in requantise
    assert "SYSTOLIC_PIPELINE(1, REQUANTISE_STAGES)" in requantise
    save = (engine / "saver/save.h").read_text()
    assert f"ADDED_MAPS > 0 ? {ARRANGE_STAGES + ADD_STAGES} : {ARRANGE_STAGES};" in save
    assert "SYSTOLIC_PIPELINE(1, ARRANGE_STAGES)" in save
    assert deepest("array/pe_array.h") == ARRAY_STAGES + 1


def test_engine_least_cycles_of_a_pass_by_hand() -> None:
    # The array has 5 rows, and a 3×3 kernel reads rows of 30 words. Each of 2 ports reads 4 of the first tile's 7
    # rows, through a pipeline of 16 stages. The rows are requested in cycle 1, and arrive a latency and 4 stages
    # later. From 5 banks of a map buffer, the 7 rows take two reads.
    (layer, *_) = first_fit(Builder(3, 26, 60).conv(16, 3).pool().network(), replace(TRACED_ARRAY, columns=8)).layers
    shape = layer.shape
    engine = ENGINE_NAMED["hls"]
    assert engine.least_fill(shape, 5, 2, 30, DDR) == 4 * 30 + 16 + 1 + 50 + 4
    assert engine.least_fill(replace(shape, from_chip=True), 5, 2, 30, DDR) == 2 * 30 + 16
    # The last row is 2 · 4 cycles late, and its result 32 more. Then follow an empty pipeline, handshakes, and the
    # response of a write.
    assert engine.least_drain(replace(shape, to_chip=True), 5, DDR) == 2 * 4 + 32 + 8 + 4
    assert engine.least_drain(shape, 5, DDR) == 2 * 4 + 32 + 8 + 4 + 1 + 20 + 8
    assert engine.least_weights(100, DDR) == 1 + 50 + 4 + 100 + 8
    assert engine.least_program(DDR) == 256 // 4 + 50 + 2


@pytest.mark.parametrize("build", [strided, narrow_words, batched])
def test_cost_traffic_equals_the_requests_of_the_program(build: Callable[[], SystolicSchedule]) -> None:
    # The reference adds up the words of each pass: rows inside the map, beats of every port, and written columns.
    schedule = build()
    program = emit(schedule)
    array, word = schedule.array, schedule.array.word_bytes
    read = written = weights = requantisers = 0
    for words in program.words.view("int32").tolist():
        fields = dict(zip(PASS_FIELDS, words, strict=False))
        rows = {
            stride * fields["stride"] + phase - fields["pad_top"]
            for stride in range(fields["row_strides"])
            for phase in range(fields["phases"])
        }
        inside = len(rows & set(range(fields["in_height"])))
        read += 0 if fields["in_buffer"] else inside * fields["row_words"] * word
        weights += fields["load_beats"] * array.weight_ports * array.weight_words * word
        requantisers += fields["channels"] * 16
    for layer in schedule.layers:
        region = program.maps[layer.layer.output]
        written += 0 if region.buffer else region.words * word
    moved = cost(schedule, DDR).traffic
    assert (moved.maps_read, moved.maps_written, moved.weights) == (read, written, weights)
    assert (moved.requantisers, moved.program) == (requantisers, 256 * len(program.words))
    assert moved.total == read + written + weights + requantisers + 256 * len(program.words)


def test_cost_rates_of_a_batch_count_all_frames() -> None:
    schedule = SCHEDULES["batch of five"][0]()
    priced = cost(schedule, DDR)
    assert priced.frames_per_second == pytest.approx(5 * 100e6 / priced.cycles)
    assert priced.cycles_per_frame == round(priced.cycles / 5)
    assert priced.bytes_per_frame == round(priced.traffic.total / 5)
    assert priced.macs == 5 * (20 * 27 * 10 * 11 + 120 * 2200)  # 3×3 on 3 channels, 20×10×11 values connected
    first = priced.layers[0]
    assert priced.efficiency(first) == pytest.approx(5 * 20 * 27 * 10 * 11 / (5 * 16 * 8 * first.total))
    assert first.running == first.total - 5 * program_cycles(DDR)
