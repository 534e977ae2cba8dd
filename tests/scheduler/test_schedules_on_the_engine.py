"""Random networks under random tilings of the search's space, run on the generated code and compared bit by bit."""

from __future__ import annotations

import tempfile
from dataclasses import asdict, astuple, fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from boards.board import Board, load, names
from boards.errors import DoesNotFitError, SeveralFaultsError
from cnn.maps import Padding
from cnn.quantized import QuantizedNetwork
from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.array import Array, check
from scheduler.systolic.layers import lower
from scheduler.systolic.model.cost import cost
from scheduler.systolic.rules import check_schedule
from scheduler.systolic.schedule import schedule_of
from scheduler.systolic.search.search import search
from scheduler.systolic.search.space import Goal, pin, ports_fit
from systolic.execution.build import Variant
from systolic.files import write
from systolic.model import DesignInputs
from systolic.styles.systolic.generation.generate import generate
from systolic.styles.systolic.mapping import price
from systolic.styles.systolic.simulate import open_design, simulate
from tests.support.arrays.run import BOARD, Run
from tests.support.errors import faults_of
from tests.support.quantised import Builder
from tests.support.schedules import first_fit, legal_tilings, staying
from tests.support.searches import problem, space_of

pytestmark = pytest.mark.engine

ARRAYS = {
    "odd": Array(5, 8, 8, row_depth=1024, weight_depth=512, kept_depth=512, chunk=8, channel_tiles=16),
    "wide": Array(
        4,
        16,
        4,
        save_rows=4,
        map_ports=1,
        weight_ports=4,
        row_depth=1024,
        weight_depth=1024,
        kept_depth=512,
        chunk=6,
        channel_tiles=16,
    ),
    "4 bits": Array(
        5,
        16,
        8,
        row_depth=1024,
        weight_depth=512,
        kept_depth=512,
        chunk=8,
        channel_tiles=16,
        bits=4,
        weight_words=4,
    ),
    "4 bits, wide": Array(
        4,
        16,
        16,
        save_rows=4,
        map_ports=1,
        weight_ports=4,
        row_depth=1024,
        weight_depth=512,
        kept_depth=512,
        chunk=6,
        channel_tiles=16,
        dsp="DSP48E1",
        bits=4,
        weight_words=2,
    ),
    "16 bits": Array(
        5,
        8,
        4,
        save_rows=1,
        row_depth=1024,
        weight_depth=1024,
        kept_depth=512,
        chunk=8,
        channel_tiles=16,
        bits=16,
    ),
    "map buffers": Array(
        5,
        8,
        8,
        row_depth=1024,
        weight_depth=512,
        kept_depth=512,
        chunk=8,
        channel_tiles=16,
        map_depth=512,
        map_stride=7,
    ),
    "map buffers, one port": Array(
        6,
        16,
        4,
        save_rows=4,
        map_ports=1,
        row_depth=1024,
        weight_depth=1024,
        kept_depth=512,
        chunk=6,
        channel_tiles=16,
        map_depth=1024,
        map_stride=7,
    ),
    "map buffers, 4 bits": Array(
        2,
        16,
        8,
        save_rows=1,
        row_depth=1024,
        weight_depth=512,
        kept_depth=512,
        chunk=8,
        channel_tiles=16,
        bits=4,
        map_depth=512,
        map_stride=7,
    ),
}


@st.composite
def networks(draw: st.DrawFn, bits: int = 8) -> QuantizedNetwork:
    side = st.integers(5, 23)
    build = Builder(draw(st.integers(1, 4)), draw(side), draw(side), seed=draw(st.integers(0, 99)), bits=bits)
    for _ in range(draw(st.integers(1, 3))):
        kernel = draw(st.sampled_from((1, 3, 5, 7)))
        # Sometimes wider than the kernel, so that whole row tiles and rows are padding.
        wide = draw(st.integers(0, 2)) == 0
        padding = Padding(*(draw(st.integers(0, 9)) if wide else kernel // 2 for _ in range(4)))
        height, width = (
            build.shape.height + padding.top + padding.bottom,
            build.shape.width + padding.left + padding.right,
        )
        stride = draw(st.sampled_from((1, 1, 1, 2, 3, 4)))
        build.conv(draw(st.integers(1, 40)), kernel if kernel <= min(height, width) else 1, stride, padding)
        pool = draw(st.sampled_from((None, 1, 2)))
        if pool is not None and min(build.shape.height, build.shape.width) >= 2:
            build.pool(pool)
    end = draw(st.sampled_from(("none", "wide", "dense", "depthwise")))
    if end == "wide":
        build.conv(9, 1, wide=True)
    elif end == "dense" and build.shape.values <= 600:
        build.dense(draw(st.integers(1, 30)))
    elif end == "depthwise":
        build.conv(0, 3, depthwise=True)
    return build.network()


def test_engine_kernel_of_620_rows_is_bit_exact(run: Run) -> None:
    # An average pool of a map of 620 rows has a first row tile of 627 row strides.
    tall = Array(8, 8, 8, save_rows=1, map_ports=1, weight_ports=1, row_depth=4096, weight_depth=8192)
    assert run("tall", first_fit(Builder(3, 620, 4).conv(8, 3).average().network(), tall), 1) == 0


@pytest.mark.parametrize("name", ARRAYS)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_engine_every_legal_tiling_is_bit_exact(name: str, data: st.DataObject, run: Run) -> None:
    network = data.draw(networks(ARRAYS[name].bits))
    choices = legal_tilings(network, ARRAYS[name])
    if not all(choices):
        return
    may_stay = staying(network, lower(network), ARRAYS[name])
    chosen = [
        replace(data.draw(st.sampled_from(fitting)), on_chip=may and data.draw(st.integers(0, 3)) > 0)
        for fitting, may in zip(choices, may_stay, strict=True)
    ]
    schedule = check_schedule(schedule_of(network, ARRAYS[name], chosen))
    assert run(name, schedule, 1) == 0


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data(), name=st.sampled_from(sorted(ARRAYS)), batch=st.integers(2, 7))
def test_engine_every_frame_of_a_batch_is_bit_exact(data: st.DataObject, name: str, batch: int, run: Run) -> None:
    array = ARRAYS[name]
    network = data.draw(networks(array.bits))
    choices = legal_tilings(network, array, batch)
    if not all(choices):
        return
    chosen = [data.draw(st.sampled_from(fitting)) for fitting in choices]
    assert run(name, check_schedule(schedule_of(network, array, chosen, batch)), 4) == 0


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data(), name=st.sampled_from(sorted(ARRAYS)))
def test_engine_schedule_of_the_search_is_legal_and_bit_exact(data: st.DataObject, name: str, run: Run) -> None:
    array = ARRAYS[name]
    network = data.draw(networks(array.bits))
    if not all(legal_tilings(network, array)):
        return
    numbers = ("rows", "columns", "lanes", "save_rows", "chunk", "map_ports", "weight_ports")
    depths = ("row_depth", "weight_depth", "kept_depth", "map_depth")
    space = pin(space_of(network, BOARD, array.bits), **{n: getattr(array, n) for n in (*numbers, *depths)})
    found = search(problem(network, BOARD, space), ddr_timing(BOARD, 300))
    check(found.schedule.array)
    check_schedule(found.schedule)
    assert all(getattr(found.schedule.array, n) == getattr(array, n) for n in (*numbers, *depths))
    schedule = schedule_of(network, array, [layer.tiling for layer in cost(found.schedule, found.ddr).layers])
    assert run(name, schedule, 2) == 0


@st.composite
def boards(draw: st.DrawFn) -> Board:
    """Draw a board of the project, or one with a part of its resources and fewer ports."""
    board = load(draw(st.sampled_from(names())))
    have = board.resources
    left = {f.name: getattr(have, f.name) // draw(st.integers(1, 6)) for f in fields(have)}
    ports = board.ports[: draw(st.integers(3, len(board.ports)))]
    return replace(board, resources=replace(have, **left), ports=ports)


@settings(max_examples=4, phases=[Phase.generate])
@given(networks(), boards(), st.data())
def test_engine_search_for_any_network_and_board_is_bit_exact(
    network: QuantizedNetwork, board: Board, data: st.DataObject
) -> None:
    """Nothing is pinned. The search chooses geometry, ports, buffers, primitives and the maps on chip."""
    clock = data.draw(st.sampled_from([clock for clock in board.clocks() if clock.mhz >= 20]))
    goal = data.draw(st.sampled_from((Goal(), Goal("ddr", 1), Goal("resources", 1))))
    try:
        found = search(problem(network, board), ddr_timing(board, clock.mhz), goal)
    except DoesNotFitError:
        return
    except SeveralFaultsError as error:
        if not faults_of(error, DoesNotFitError):
            raise
        return
    schedule = check_schedule(found.schedule)
    check(schedule.array)
    mapping = price(schedule, board, ddr_timing(board, clock.mhz))
    assert mapping.fits
    assert ports_fit(schedule.array, board)
    picture = np.random.default_rng(3).integers(0, 256, astuple(network.input_shape), np.uint8)
    with tempfile.TemporaryDirectory() as work:
        design = generate(mapping, DesignInputs({}, picture))
        write(design, Path(work) / "design")
        opened = open_design(Path(work) / "design")
        assert asdict(opened.manifest.estimate) == asdict(mapping.usage)
        assert simulate(opened, picture).mismatches == 0


@pytest.mark.parametrize("name", ["4 bits, wide", "16 bits"])
def test_engine_packed_products_with_ap_int_are_bit_exact(name: str, run: Run) -> None:
    # The products are packed as in DSPs, with ap_int. The network has odd sizes, both pools, a stride and depthwise.
    bits = ARRAYS[name].bits
    network = (
        Builder(3, 11, 13, seed=7, bits=bits)
        .conv(12, 3)
        .pool()
        .conv(9, 3)
        .pool(1)
        .conv(10, 3, 2)
        .conv(0, 3, depthwise=True)
        .conv(7, 1, wide=True)
        .network()
    )
    schedule = check_schedule(first_fit(network, ARRAYS[name]))
    assert run(name, schedule, 3, Variant(ap_int=True)) == 0


@pytest.mark.parametrize("bits", [4, 16])
def test_engine_pixels_of_all_values_are_bit_exact(bits: int, run: Run) -> None:
    # Only the first layer reads pixels. They have 8 bits in every format, and are stored in planes of 4 channels.
    name = f"{bits} bits"
    for channels in (1, 3, 4, 5, 64):
        for stride in (1, 2):
            network = Builder(channels, 9, 14, seed=stride, bits=bits).conv(8, 3, stride, wide=True).network()
            assert run(name, check_schedule(first_fit(network, ARRAYS[name])), channels) == 0
