"""Every way of the search's space runs on the generated code with every bit right: random networks, random ways."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from quantised import Builder

from boards.board import load
from cnn.quantized import QuantizedNetwork
from scheduler.array import Array, check
from scheduler.cost import cost, link_of
from scheduler.legal import check_schedule
from scheduler.lower import lower
from scheduler.search import schedule_of, search
from scheduler.space import pin, space_of
from scheduler.tile import SystolicSchedule
from scheduler.work import Way, cuts, needs, ways, work_of
from systolic.design import write
from systolic.generate import generate
from systolic.simulate import open_folder, simulate

BOARD = load("zcu104")
CLOCK = BOARD.nearest_clock(300)
ARRAYS = {
    "odd": Array(5, 8, 8, row_depth=1024, weight_depth=512, kept_depth=512, chunk=8, channel_tiles=16),
    "wide": Array(
        4, 16, 4, save_rows=4, map_ports=1, weight_ports=4, row_depth=1024, weight_depth=1024, kept_depth=512,
        chunk=6, channel_tiles=16,
    ),
}  # fmt: skip

Run = Callable[[str, SystolicSchedule, int], int]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Mismatches of a schedule on one of ARRAYS; compiled once each, only program and data change."""
    made: dict[str, Path] = {}

    def mismatches(name: str, schedule: SystolicSchedule, seed: int) -> int:
        shape = schedule.network.input_shape
        size = (shape.channels, shape.height, shape.width)
        picture = np.random.default_rng(seed).integers(0, 256, size, np.uint8)
        design = generate(schedule, BOARD, CLOCK, {}, picture)
        if name not in made:
            made[name] = tmp_path_factory.mktemp(name) / "design"
            write(design, made[name])
        for file, data in design.files.items():
            if not file.startswith(("src/", "simulation/")):
                (made[name] / file).write_bytes(data)
        return simulate(open_folder(made[name]), picture).mismatches

    return mismatches


@st.composite
def networks(draw: st.DrawFn) -> QuantizedNetwork:
    side = st.integers(5, 23)
    build = Builder(draw(st.integers(1, 4)), draw(side), draw(side), seed=draw(st.integers(0, 99)))
    for _ in range(draw(st.integers(1, 3))):
        kernel = draw(st.sampled_from((1, 3, 5)))
        build.conv(draw(st.integers(1, 40)), kernel, draw(st.sampled_from((1, 1, 2))))
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


def legal_ways(network: QuantizedNetwork, array: Array) -> list[list[Way]]:
    jobs = lower(network)
    works = [work_of(network, job, array) for job in jobs]
    found = []
    for index, (job, work) in enumerate(zip(jobs, works, strict=True)):
        following = works[index + 1].steps if index + 1 < len(works) else 0
        fitting = []
        for way in ways(work, array.rows, cuts(network, job, array)):
            need = needs(work, array.rows, array.columns, way, following)
            if (
                need.row_depth <= array.row_depth
                and need.weight_depth <= array.weight_depth
                and need.kept_depth <= array.kept_depth
                and need.channel_tiles <= array.channel_tiles
            ):
                fitting.append(way)
        found.append(fitting)
    return found


@pytest.mark.parametrize("name", ARRAYS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(network=networks(), data=st.data())
def test_every_legal_way_is_executed_bit_exactly(
    name: str, network: QuantizedNetwork, data: st.DataObject, run: Run
) -> None:
    choices = legal_ways(network, ARRAYS[name])
    if not all(choices):
        return
    chosen = [data.draw(st.sampled_from(fitting)) for fitting in choices]
    schedule = check_schedule(schedule_of(network, ARRAYS[name], chosen))
    assert run(name, schedule, 1) == 0


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(network=networks(), name=st.sampled_from(sorted(ARRAYS)))
def test_what_the_search_returns_is_legal_and_executed_bit_exactly(
    network: QuantizedNetwork, name: str, run: Run
) -> None:
    array = ARRAYS[name]
    if not all(legal_ways(network, array)):
        return
    numbers = ("rows", "columns", "lanes", "save_rows", "chunk", "map_ports", "weight_ports")
    depths = ("row_depth", "weight_depth", "kept_depth")
    space = pin(space_of(network, BOARD), **{n: getattr(array, n) for n in (*numbers, *depths)})
    found = search(network, BOARD, link_of(BOARD, 300), space=space)
    check(found.schedule.array)
    check_schedule(found.schedule)
    assert all(getattr(found.schedule.array, n) == getattr(array, n) for n in (*numbers, *depths))
    schedule = schedule_of(network, array, [layer.way for layer in cost(found.schedule, found.link).layers])
    assert run(name, schedule, 2) == 0
