"""What a tiling costs on an array: cycles by what bounds them, and DDR bytes by kind. Pure functions of numbers.

Every cycle formula follows a loop of the engine, named beside it (hls_templates/include). Numbers are numpy integers
throughout, so that one call prices one tiling or a whole grid of them; the search and the report use the same code.

A pass is: its first rows arrive; then row tile after row tile computes while the next rows, the next weight tile and
the results before it move; at the end the last results drain. A tile takes what its slowest process takes.

The model against the trace of the generated code: benchmarks/schedule.py.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from boards.board import Board
from boards.errors import ScheduleError
from scheduler.array import Array
from scheduler.resources import BURST_WORDS, OUTSTANDING
from scheduler.tile import SystolicSchedule, ceil_div
from scheduler.work import Needs, Way, Work, distinct_rows, needs, value_bits, way_of, work_of

Numbers: TypeAlias = "npt.NDArray[np.int64]"

DDR_EFFICIENCY = 0.85
"""Share of the DDR's peak that carries data, as the cycle trace assumes: refresh, row misses, turn-arounds."""

READ_LATENCY_NS, WRITE_LATENCY_NS = 213.0, 107.0
"""From a request to its first beat, from the last beat to the response; the trace's Memory has the same."""

REGION = 4
"""Hand-shakes around a DATAFLOW region (the trace's Fabric: region_start + region_stop)."""

REQUEST_STAGES = 64
"""Stages between a request and a load of the same loop (m_axi ``latency``)."""

ENTER_READER = 17
"""read_rows: its three loops are entered and drained once (depths 2, 3 and 4), and the words cross one FIFO."""

PIPELINE = 36
"""From an activation to its result in arrange: pe_array 12, pool 4, requantise 8, arrange 4, and a FIFO before each;
the skew of the rows comes on top."""

ANSWER = 8
"""write_rows: entered, drained, and its last responses collected, beside the latency of the write."""

ROW_TILE_BUBBLE = 8
"""load: between two row tiles its pipeline (depth 8) drains and the next one is entered."""

CHANNEL_TILE_BUBBLE = 4
"""feed_weights: the same between two weight tiles (depth 4)."""

WAIT = 4
"""Depth of the FIFOs between processes in step (systolic.generate); sums have ``rows`` more."""

REQUANTISER_BYTES, PASS_BYTES = 16, 256
"""One channel's requantiser; one pass of the program (include/types.h, include/pass.h)."""


@dataclass(frozen=True)
class Link:
    """DDR as the accelerator sees it at its clock. milli_bytes: 1/1000 bytes a cycle, all ports together."""

    clock_mhz: float
    milli_bytes: int
    read_latency: int
    write_latency: int


def link_of(board: Board, clock_mhz: float, efficiency: float = DDR_EFFICIENCY, peak_gbps: float | None = None) -> Link:
    """The board's memory at its rated speed unless ``peak_gbps`` (10⁹ bytes a second) says otherwise."""
    if not (clock_mhz > 0 and 0 < efficiency <= 1):
        raise ScheduleError(
            f"a clock is a positive number of MHz and an efficiency in (0, 1], not {clock_mhz:g} and {efficiency:g}"
        )
    peak = board.ddr.peak_gbps if peak_gbps is None else peak_gbps
    return Link(
        clock_mhz,
        round(peak * efficiency * 1e6 / clock_mhz),
        round(READ_LATENCY_NS * clock_mhz / 1000),
        round(WRITE_LATENCY_NS * clock_mhz / 1000),
    )


# --- knobs: what surrounds the array, one value or a grid of them -----------------------------------------------


@dataclass(frozen=True, eq=False)
class Knobs:
    """The numbers of arrays of one M × N × L. The four arrays broadcast together, [knobs, 1] in the search."""

    rows: int
    columns: int
    lanes: int
    word_bytes: int
    save_rows: Numbers
    chunk: Numbers
    map_ports: Numbers
    weight_ports: Numbers


def knobs_of(array: Array) -> Knobs:
    def one(value: int) -> Numbers:
        return np.array(value, np.int64)

    return Knobs(
        array.rows, array.columns, array.lanes, array.lanes * value_bits(array) // 8,
        one(array.save_rows), one(array.chunk), one(array.map_ports), one(array.weight_ports),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Passes:
    """Strips that cost the same, [ways]. width: columns; words: of a row; next_steps: of the tile that is loaded for
    the pass after; the flags are 0 or 1."""

    width: Numbers
    words: Numbers
    next_steps: Numbers
    resident: Numbers
    inputs_resident: Numbers
    overlap: Numbers


@dataclass(frozen=True, eq=False)
class Cycles:
    """Cycles by what they are spent on; they add up.

    fill: until the first rows of a pass are on chip. compute: positions × steps. rows, weights, saver, ddr: what the
    loading of rows, the loading of weights, the Saver, and the DDR's bandwidth add to it. drain: after the last
    position of a pass, and bubbles between tiles. program: fetching the passes.
    """

    fill: Numbers
    compute: Numbers
    rows: Numbers
    weights: Numbers
    saver: Numbers
    ddr: Numbers
    drain: Numbers
    program: Numbers

    @property
    def total(self) -> Numbers:
        """Numbers of the whole layer."""
        return np.asarray(sum(getattr(self, f.name) for f in fields(self)), np.int64)

    def __add__(self, other: Cycles) -> Cycles:
        return Cycles(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def times(self, count: Numbers) -> Cycles:
        return Cycles(*(getattr(self, f.name) * count for f in fields(self)))

    @property
    def bound_by(self) -> str:
        """Of one layer: "compute", or what adds most to it."""
        extra = {f.name: int(getattr(self, f.name)) for f in fields(self) if f.name != "compute"}
        worst = max(extra, key=lambda name: extra[name])
        return worst if extra[worst] > int(self.compute) // 20 else "compute"


PARTS = tuple(f.name for f in fields(Cycles))


@dataclass(frozen=True)
class Traffic:
    """DDR bytes of one layer in one frame."""

    maps_read: int
    maps_written: int
    weights: int
    requantisers: int
    program: int

    @property
    def total(self) -> int:
        return sum(getattr(self, f.name) for f in fields(self))

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


# --- one pass ----------------------------------------------------------------------------------------------------


def _up(a: Numbers, b: Numbers) -> Numbers:
    return np.asarray(-(-a // b), np.int64)


@dataclass(frozen=True, eq=False)
class _Tile:
    """A row tile of a class (the same number of rows leaves each). use: cycles of one channel tile without waiting
    for weights; last: columns · rows words that leave after the last position; over: cycles that arrange goes on
    with the chunk before, after the last result has come."""

    use: Numbers
    last: Numbers
    over: Numbers


def _use(knobs: Knobs, work: Work, width: Numbers, saved: int, saved_before: int) -> _Tile:
    """include/pool.h, requantise.h and save.h: one channel tile of one row tile through the Saver.

    arrange takes a chunk of results while the chunk before leaves, in one loop of max(fills, empties) iterations:
    where more leaves than comes, the excess runs after the last result, and what the FIFOs do not hold waits.
    """
    steps, stride = work.steps, work.pool_stride
    columns = _up(width, np.int64(stride))
    groups = _up(np.int64(saved), knobs.save_rows)
    out_blocks = min(knobs.columns // knobs.lanes, ceil_div(work.filters, knobs.lanes))
    empty = _up(np.int64(saved), knobs.map_ports) * out_blocks * work.value_words
    empty_before = _up(np.int64(saved_before), knobs.map_ports) * out_blocks * work.value_words
    position = np.maximum(steps * stride, groups + (stride - 1))  # pool: one iteration a column, one a group
    full, rest = columns // knobs.chunk, columns % knobs.chunk
    tail = np.where(rest == 0, np.minimum(columns, knobs.chunk), rest)
    slack = _elastic(knobs, work, groups)
    first = np.minimum(columns, knobs.chunk)
    over_first = np.maximum(0, tail * empty_before - first * groups)
    over_rest = np.maximum(0, knobs.chunk * empty - rest * groups)
    over_full = np.maximum(0, knobs.chunk * (empty - groups))
    several = columns > knobs.chunk
    middle = np.maximum(0, full - 1)
    stall = np.maximum(0, over_first - slack) + middle * np.maximum(0, over_full - slack)
    stall = stall + np.where(several & (rest > 0), np.maximum(0, over_rest - slack), 0)
    lonely = columns * stride - width
    use = np.maximum(width * steps, columns * position - lonely * steps) + stall
    over = np.where(several, np.where(rest > 0, over_rest, over_full), over_first)
    return _Tile(use, tail * empty, over)


def _elastic(knobs: Knobs, work: Work, groups: Numbers) -> Numbers:
    """Cycles for which the FIFOs between array and arrange let the array go on: those of sums hold rows + WAIT
    positions, of which the skew of the rows takes its part, those of groups and results WAIT each."""
    skew = ceil_div(knobs.rows - 1, work.steps)
    positions = max(0, knobs.rows + WAIT - skew) + (2 * WAIT // groups) * work.pool_stride
    return np.asarray(positions * work.steps, np.int64)


def _rows_in(work: Work, rows: int, tiles: int) -> int:
    """include/read.h, row_exists: map rows among the row strides that ``tiles`` tiles read."""
    strides = tiles * rows + work.ahead
    inside = 0
    for phase in range(work.phases):
        low = max(0, ceil_div(work.pad_top - phase, work.stride))
        high = min(strides, ceil_div(work.pad_top + work.in_height - phase, work.stride))
        inside += max(0, high - low)
    return inside


def pass_cycles(knobs: Knobs, work: Work, way: Passes, link: Link, first: bool) -> Cycles:
    """One pass, [knobs, ways]. ``first``: of the frame, so that its own first weights have to arrive too."""
    row_tiles, channel_tiles = ceil_div(work.out_height, knobs.rows), ceil_div(work.filters, knobs.columns)
    classes = distinct_rows(work, knobs.rows)
    feeds = way.width * work.steps
    beats = knobs.columns // knobs.weight_ports  # words of one step from one port
    loads = _up(np.int64(knobs.rows), knobs.map_ports) * work.phases * way.words * (row_tiles > 1)
    total = _fill(knobs, work, way, link, first, beats)
    for index, (count, saved) in enumerate(classes):
        if count == 0:
            continue
        last = index == len(classes) - 1
        before = classes[1 - index][1] if channel_tiles == 1 and index < 2 and classes[1 - index][0] else saved
        tile = _use(knobs, work, way.width, saved, before)
        total = total + _tile(knobs, work, way, link, tile, beats, 0 * loads if last else loads, saved, last).times(
            np.int64(count)
        )
        if last:
            total = total + _drain(knobs, work, way, link, tile)
    zero = np.int64(0) * total.compute
    assert int(feeds.min()) > 0
    first_round = _resident_round(knobs, work, way, channel_tiles, row_tiles, beats)
    return total + Cycles(zero, zero, zero, first_round, zero, zero, zero, _program(link) + zero)


def _program(link: Link) -> Numbers:
    """fetch_pass: PASS_WORDS words after the latency of one burst."""
    return np.asarray(PASS_BYTES // 4 + link.read_latency + 2, np.int64)


def _fill(knobs: Knobs, work: Work, way: Passes, link: Link, first: bool, beats: Numbers) -> Cycles:
    """read_rows counts its bursts, asks, and waits; load puts the rows of the first tile into the banks."""
    strides = ceil_div(work.out_height, knobs.rows) * knobs.rows + work.ahead
    start = _up(np.int64(strides), knobs.map_ports) + REQUEST_STAGES + link.read_latency + ENTER_READER
    groups = _up(np.int64(knobs.rows + work.ahead), knobs.map_ports)
    iterations = groups * work.phases * way.words
    rows = _rows_in(work, knobs.rows, 1)
    # Meanwhile the weight readers fill their ports' buffers.
    ahead = np.minimum(BURST_WORDS * OUTSTANDING, 2 * work.steps * beats) * knobs.weight_ports
    moved = _ddr((rows * way.words + ahead) * knobs.word_bytes, link)
    fill = start + np.maximum(iterations, moved)
    if first:
        weights = REQUEST_STAGES + link.read_latency + ENTER_READER + work.steps * beats
        fill = np.maximum(fill, weights)
    zero = 0 * fill
    return Cycles(fill, zero, zero, zero, zero, zero, zero, zero)


def _ddr(moved: Numbers, link: Link) -> Numbers:
    return _up(moved * 1000, np.int64(link.milli_bytes))


def _tile(
    knobs: Knobs,
    work: Work,
    way: Passes,
    link: Link,
    tile: _Tile,
    beats: Numbers,
    loads: Numbers,
    saved: int,
    last: bool,
) -> Cycles:
    """One row tile with all its channel tiles."""
    tiles = ceil_div(work.filters, knobs.columns)
    row_tiles = ceil_div(work.out_height, knobs.rows)
    feeds = way.width * work.steps
    compute = tiles * feeds
    saver = tiles * (tile.use - feeds)
    # feed_weights: max(feeds, words of the tile that is loaded meanwhile); weights that stay are counted apart.
    streams = (1 - way.resident) * (1 - way.inputs_resident)
    each = np.maximum(0, streams * work.steps * beats - tile.use)
    every = tiles - 1 if last else tiles
    weights = every * each
    if last:
        round_feeds = np.where(way.inputs_resident, feeds * row_tiles, tile.use)
        weights = weights + np.maximum(0, way.next_steps * beats - round_feeds)
    rounds = np.where(way.inputs_resident, feeds, compute)  # positions that the loading of rows hides behind
    rows = np.where(way.overlap, np.maximum(0, loads - rounds), loads)
    bubbles = np.where(way.inputs_resident, tiles * ROW_TILE_BUBBLE, max(ROW_TILE_BUBBLE, tiles * CHANNEL_TILE_BUBBLE))
    bubbles = bubbles + np.where((way.overlap == 0) & (loads > 0), ROW_TILE_BUBBLE, 0)
    busy = compute + saver + weights + rows
    out_blocks = ceil_div(work.filters, knobs.lanes)
    written = saved * _up(way.width, np.int64(work.pool_stride)) * out_blocks * work.value_words
    read = np.where(loads > 0, knobs.rows * work.phases * way.words, 0)
    streamed = (
        (streams * tiles if not last else streams * (tiles - 1) * work.steps + way.next_steps)
        * (work.steps if not last else 1)
        * knobs.columns
    )
    ddr = np.maximum(0, _ddr((written + read + streamed) * knobs.word_bytes, link) - busy)
    zero = 0 * busy
    return Cycles(zero, compute + zero, rows + zero, weights + zero, saver + zero, ddr + zero, bubbles + zero, zero)


def _resident_round(knobs: Knobs, work: Work, way: Passes, tiles: int, row_tiles: int, beats: Numbers) -> Numbers:
    """Weights that stay arrive in the first row tile (or, where rows stay, a tile during the one before)."""
    feeds = way.width * work.steps
    first = (tiles - 1) * np.maximum(0, work.steps * beats - feeds)
    rounds = (tiles - 1) * np.maximum(0, work.steps * beats - feeds * row_tiles)
    return np.asarray(way.resident * first + way.inputs_resident * rounds, np.int64)


def _drain(knobs: Knobs, work: Work, way: Passes, link: Link, tile: _Tile) -> Cycles:
    """After the last position: the skew, the Saver's pipelines, what arrange still holds, the last burst's answer."""
    columns = _up(way.width, np.int64(work.pool_stride))
    burst = np.minimum(columns, knobs.chunk) * work.value_words
    drain = PIPELINE + knobs.rows + tile.over + tile.last + np.minimum(burst, BURST_WORDS) + link.write_latency
    drain = drain + ANSWER + REGION
    zero = 0 * drain
    return Cycles(zero, zero, zero, zero, zero, zero, drain, zero)


# --- one layer, one schedule --------------------------------------------------------------------------------------


def passes_of(work: Work, choices: tuple[Way, ...], following: int) -> tuple[Passes, Passes, Passes, Numbers]:
    """First strips, middle strips and last strips of every way, and how many middle strips there are."""

    def column(values: list[int]) -> Numbers:
        return np.array(values, np.int64)

    flags = (
        column([int(w.weights_resident) for w in choices]),
        column([int(w.inputs_resident) for w in choices]),
        column([int(w.overlap) for w in choices]),
    )
    count = column([w.cut.count for w in choices])
    own = np.full(len(choices), work.steps, np.int64)
    words = np.array([w.cut.words for w in choices], np.int64)
    width, last_width = column([w.cut.width for w in choices]), column([w.cut.last_width for w in choices])
    first = Passes(width, words[:, 0], np.where(count > 1, own, following), *flags)
    middle = Passes(width, words[:, 1], own, *flags)
    last = Passes(last_width, words[:, 2], np.full(len(choices), following, np.int64), *flags)
    return first, middle, last, count


def layer_cycles(
    knobs: Knobs, work: Work, choices: tuple[Way, ...], following: int, link: Link, first_layer: bool
) -> Cycles:
    """All passes of one layer, [knobs, ways]."""
    first, middle, last, count = passes_of(work, choices, following)
    cycles = pass_cycles(knobs, work, first, link, first_layer)
    if int(count.max()) == 1:
        return cycles
    cycles = cycles + pass_cycles(knobs, work, last, link, False).times(np.minimum(count - 1, 1))
    return cycles + pass_cycles(knobs, work, middle, link, False).times(np.maximum(count - 2, 0))


def layer_traffic(rows: int, columns: int, word_bytes: int, lanes: int, work: Work, way: Way) -> Traffic:
    """DDR bytes of one layer: strips read the weights again, and the columns that their kernels share."""
    row_tiles, channel_tiles = ceil_div(work.out_height, rows), ceil_div(work.filters, columns)
    loads = channel_tiles * (row_tiles if way.order == "streamed" else 1) * way.cut.count
    blocks = ceil_div(work.filters, lanes)
    return Traffic(
        maps_read=_rows_in(work, rows, row_tiles) * way.cut.total_words * word_bytes,
        maps_written=work.saved_height * work.saved_width * blocks * work.value_words * word_bytes,
        weights=loads * work.steps * columns * word_bytes,
        requantisers=way.cut.count * channel_tiles * columns * REQUANTISER_BYTES,
        program=way.cut.count * PASS_BYTES,
    )


@dataclass(frozen=True, eq=False)
class LayerCost:
    """cycles: modelled, all passes. needs: the least buffers that the tiling runs in."""

    work: Work
    way: Way
    cycles: Cycles
    traffic: Traffic
    needs: Needs

    @property
    def total(self) -> int:
        return int(self.cycles.total)

    @property
    def bound_by(self) -> str:
        return self.cycles.bound_by


@dataclass(frozen=True, eq=False)
class Cost:
    """A whole schedule: modelled, not traced."""

    array: Array
    link: Link
    layers: tuple[LayerCost, ...]

    @property
    def cycles(self) -> int:
        return sum(layer.total for layer in self.layers)

    @property
    def traffic(self) -> Traffic:
        return sum((layer.traffic for layer in self.layers), Traffic(0, 0, 0, 0, 0))

    @property
    def frames_per_second(self) -> float:
        return self.link.clock_mhz * 1e6 / self.cycles

    @property
    def macs(self) -> int:
        return sum(layer.work.macs for layer in self.layers)

    def efficiency(self, layer: LayerCost) -> float:
        """MACs that the network asks for / MACs that the array could do meanwhile."""
        return layer.work.macs / (self.array.macs_per_cycle * layer.total)


def cost(schedule: SystolicSchedule, link: Link) -> Cost:
    """What ``schedule`` costs, layer by layer."""
    network, array = schedule.network, schedule.array
    works = [work_of(network, t.job, array) for t in schedule.tilings]
    layers = []
    for index, (work, tiling) in enumerate(zip(works, schedule.tilings, strict=True)):
        following = works[index + 1].steps if index + 1 < len(works) else 0
        layers.append(layer_cost(array, work, way_of(network, tiling, array), following, link, index == 0))
    return Cost(array, link, tuple(layers))


def layer_cost(array: Array, work: Work, way: Way, following: int, link: Link, first_layer: bool) -> LayerCost:
    """``following``: steps of the next layer's first weight tile, which arrives during this one."""
    knobs = knobs_of(array)
    grid = layer_cycles(knobs, work, (way,), following, link, first_layer)
    cycles = Cycles(*(np.asarray(getattr(grid, f.name)).reshape(-1)[0] for f in fields(grid)))
    traffic = layer_traffic(array.rows, array.columns, knobs.word_bytes, array.lanes, work, way)
    return LayerCost(work, way, cycles, traffic, needs(work, array.rows, array.columns, way, following))
