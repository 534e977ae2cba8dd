"""What a tiling costs on an array: cycles by what bounds them, and DDR bytes by kind. Pure functions of numbers.

Every cycle formula follows a loop of the engine, named beside it (hls_templates/include). Numbers are numpy integers
throughout, so that one call prices one tiling or a whole grid of them; the search and the report use the same code.

A pass is: its first rows arrive; then row tile after row tile computes while the next rows, the next weight tile and
the results before it move; at the end the last results drain. A tile takes what its slowest process takes.

The model against the trace of the generated code: benchmarks/schedule.py.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from boards.board import Board
from boards.errors import ScheduleError
from scheduler.array import Array
from scheduler.resources import BURST_WORDS, OUTSTANDING
from scheduler.tile import SystolicSchedule, ceil_div
from scheduler.work import Needs, Way, Work, distinct_rows, needs, staying, way_of, work_of

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

CHUNK_BUBBLE = 5
"""arrange: the same between two chunks (entered, depth 4)."""

DDR_CHUNK = 64
"""Bytes that the DDR serves one port before another (systolic/cycles)."""

BURSTS_AHEAD, TILES_AHEAD = OUTSTANDING, 2
"""Bursts and weight tiles that the readers ask for before they load: where these are all, the loop that loads asks for
nothing, and is not the deeper for it (include/read.h)."""

FEED_END = 14
"""feed_weights drains after its last word."""

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
    weight_words: Numbers

    @property
    def port_beats(self) -> Numbers:
        """Cycles in which the weight ports give one step."""
        return np.asarray(self.columns // (self.weight_ports * self.weight_words), np.int64)

    @property
    def weight_bytes(self) -> Numbers:
        """What one weight port gives a cycle."""
        return np.asarray(self.word_bytes * self.weight_words, np.int64)


def knobs_of(array: Array) -> Knobs:
    def one(value: int) -> Numbers:
        return np.array(value, np.int64)

    return Knobs(
        array.rows, array.columns, array.lanes, array.word_bytes,
        one(array.save_rows), one(array.chunk), one(array.map_ports), one(array.weight_ports),
        one(array.weight_words),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Passes:
    """Strips that cost the same, [ways]. width: columns; words: of a row, in so many bursts; next_steps: of the
    tile that is loaded for the pass after; the flags are 0 or 1."""

    width: Numbers
    words: Numbers
    bursts: Numbers
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
        return Cycles(*(getattr(self, name) + getattr(other, name) for name in PARTS))

    def times(self, count: Numbers) -> Cycles:
        return Cycles(*(getattr(self, name) * count for name in PARTS))

    @property
    def bound_by(self) -> str:
        """Of one layer: "compute", or what adds most to it."""
        extra = {f.name: int(getattr(self, f.name)) for f in fields(self) if f.name != "compute"}
        worst = max(extra, key=lambda name: extra[name])
        return worst if extra[worst] > int(self.compute) // 20 else "compute"


PARTS = tuple(f.name for f in fields(Cycles))


@dataclass(frozen=True)
class Traffic:
    """DDR bytes of one layer in one frame, or in all frames of a batch."""

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
class _Pass:
    """Strips of one layer on a grid of arrays, [knobs, ways]."""

    knobs: Knobs
    work: Work
    way: Passes
    link: Link

    @property
    def row_tiles(self) -> int:
        return ceil_div(self.work.out_height, self.knobs.rows)

    @property
    def channel_tiles(self) -> int:
        return ceil_div(self.work.filters, self.knobs.columns)

    @property
    def feeds(self) -> Numbers:
        """Cycles in which the array takes the positions of one tile."""
        return _up(self.way.width, np.int64(self.work.positions)) * self.work.steps

    @property
    def streams(self) -> Numbers:
        """1 where weights cross again for every row tile."""
        return (1 - self.way.resident) * (1 - self.way.inputs_resident)

    def load(self, steps: Numbers | int) -> Numbers:
        """feed_weights: cycles that so many steps of weights take to arrive, through their ports and the DDR."""
        beats = np.asarray(steps * self.knobs.port_beats, np.int64)
        return _streamed(beats, self.knobs.weight_ports, self.knobs.weight_bytes, self.link)


@dataclass(frozen=True, eq=False)
class _Use:
    """One channel tile of one row tile. cycles: without waiting for weights; last: words a port of the last chunk;
    over: cycles that arrange goes on with the chunk before, after the last result has come. load: cycles of the array,
    with what it waits for FIFOs; saver: of the Saver by itself; spare: cycles for which a Saver that is behind has
    work when the array pauses."""

    blocks: int
    cycles: Numbers
    last: Numbers
    over: Numbers
    load: Numbers
    saver: Numbers
    spare: Numbers


def _use(one: _Pass, saved: int, saved_before: int, blocks: int) -> _Use:
    """include/pool.h, requantise.h and save.h: one channel tile of ``blocks`` words through the Saver.

    arrange takes a chunk of results while the chunk before leaves, in one loop of max(fills, empties) iterations:
    where more leaves than comes, the excess runs after the last result, and what the FIFOs do not hold waits. The
    Saver by itself takes the sum of its loops, however much the FIFOs hold.
    """
    knobs, work, stride = one.knobs, one.work, one.work.pool_stride
    columns = _up(one.way.width, np.int64(stride))
    groups = _up(np.int64(saved), knobs.save_rows)
    empty = _up(np.int64(saved), knobs.map_ports) * blocks * work.value_words
    empty_before = _up(np.int64(saved_before), knobs.map_ports) * blocks * work.value_words
    position = groups + (stride - 1)  # pool: one iteration a column, one a group
    full, rest = columns // knobs.chunk, columns % knobs.chunk
    several = columns > knobs.chunk
    first = np.minimum(columns, knobs.chunk)
    tail = np.where(rest == 0, first, rest)
    # Chunks of a channel tile: the first, full ones between, and a short one at the end.
    over = (tail * empty_before - first * groups, knobs.chunk * (empty - groups), knobs.chunk * empty - rest * groups)
    times = (np.int64(1), np.maximum(0, full - 1), np.where(several & (rest > 0), 1, 0))
    slack = _positions(one, groups) * work.steps // work.positions
    stall = sum(n * np.maximum(0, o - slack) for n, o in zip(times, over, strict=True))
    alone = (
        np.maximum(first * position, tail * empty_before),
        knobs.chunk * np.maximum(position, empty),
        np.maximum(rest * position, knobs.chunk * empty),
    )
    saver = sum(n * (a + CHUNK_BUBBLE) for n, a in zip(times, alone, strict=True))
    left = np.where(several, np.where(rest > 0, over[2], over[1]), over[0])
    load = np.asarray(one.feeds + stall, np.int64)
    cycles = np.maximum(load, saver)
    before_tail = np.where(several, np.where(full > 1, alone[1], alone[0]), saver)
    spare = _spare(one, groups, position, tail, np.where(several, knobs.chunk, columns), before_tail)
    after = np.maximum(0, left - (cycles - one.feeds))
    return _Use(blocks, cycles, tail * empty, after, load, np.asarray(saver, np.int64), spare)


def _spare(one: _Pass, groups: Numbers, position: Numbers, tail: Numbers, before: Numbers, phase: Numbers) -> Numbers:
    """Cycles from the last position that the array takes to the last one that arrange takes, where the Saver is behind,
    less the time for which pipelines that get nothing hold results back."""
    stride = one.work.pool_stride
    array = (10 + one.knobs.rows) * one.work.positions / (one.work.steps * stride)
    frozen = array + 3 / position + 7 / groups
    held = (_positions(one, groups) + WAIT * one.work.positions / one.work.steps) / stride
    # Between the two, at the end of a chunk, arrange has the chunk before to empty.
    ends = [np.maximum(0, np.ceil((at - tail) / before)) for at in (frozen, frozen + held)]
    return np.asarray(held * position + (ends[1] - ends[0]) * (phase - before * position), np.int64)


def _positions(one: _Pass, groups: Numbers) -> Numbers:
    """Positions that the FIFOs between array and arrange hold: those of sums rows + WAIT, of which the skew of the
    rows takes its part, those of groups and results WAIT each."""
    skew = ceil_div(one.knobs.rows - 1, one.work.steps)
    held = max(0, one.knobs.rows + WAIT - skew) * one.work.positions
    return held + (2 * WAIT // groups) * one.work.pool_stride


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
    one = _Pass(knobs, work, way, link)
    classes = distinct_rows(work, knobs.rows)
    total = _fill(one, first)
    least: Numbers | None = None  # cycles of a channel tile
    for index, (count, saved) in enumerate(classes):
        if not count:
            continue
        uses = _uses(one, saved)
        before = _changed(one, uses, saved, _saved_before(classes, index))
        tile = _tile(one, uses, saved, last=index == 2) + before
        if index == 2:
            total = total + _held_back(one, total.ddr, tile, saved)
        total = total + tile.times(np.int64(count))
        if least is None:  # no chunk is there yet to leave
            total = total + _cycles(saver=_changed(one, uses, saved, 0).saver - before.saver)
        use = (tile.total - tile.drain) // one.channel_tiles
        least = use if least is None else np.minimum(least, use) if index < 2 else least
        if index == 2:
            # A single channel tile still empties the last chunk of the row tile before, which may be of other height.
            end = _use(one, saved, _saved_before(classes, index), uses[1].blocks) if one.channel_tiles == 1 else uses[1]
            total = total + _weights_once(one, least, saved) + _drain(one, end)
    return total + _all_crosses(one, total)


def _held_back(one: _Pass, waits: Numbers, last: Cycles, saved: int) -> Cycles:
    """Less waiting for the DDR: ports hold results back, and these leave during the last tile, which reads nothing."""
    hold = _ddr(BURST_WORDS * OUTSTANDING * one.knobs.map_ports * one.knobs.word_bytes, one.link)
    spare = np.maximum(0, last.total - _ddr(_written(one, saved), one.link))
    return _cycles(ddr=-np.minimum(waits, np.minimum(hold, spare)))


def least_overhead(link: Link) -> int:
    """Cycles of any pass beside what it computes, where its maps stay on chip: fetched, its last results out; the
    array's rows come on top."""
    program = PASS_BYTES // 4 + link.read_latency + 2
    return program + PIPELINE + REGION


def _saved_before(classes: tuple[tuple[int, int], ...], index: int) -> int:
    """Rows that leave the row tile before: classes 0 and 1 alternate, class 2 is the last tile."""
    (first, rows), (second, others), (_, saved) = classes
    if index == 2:
        return saved if first == 0 else others if second == first else rows
    return (rows, others)[1 - index] if first and second else (rows, others)[index]


def _changed(one: _Pass, uses: tuple[_Use, _Use], saved: int, before: int) -> Cycles:
    """The first channel tile of a row tile lets the last chunk of the row tile before leave, of other height."""
    if before == saved:
        return _cycles()
    return _cycles(saver=_use(one, saved, before, uses[0].blocks).cycles - uses[0].cycles)


def _cycles(**parts: Numbers) -> Cycles:
    """Cycles of which only some parts are not zero."""
    zero = np.zeros((), np.int64)
    return Cycles(**{name: np.asarray(parts.get(name, zero), np.int64) for name in PARTS})


def _uses(one: _Pass, saved: int) -> tuple[_Use, _Use]:
    """A channel tile, and the last one, which may fill fewer words of the map."""
    whole = one.knobs.columns // one.knobs.lanes
    rest = ceil_div(one.work.filters, one.knobs.lanes) - (one.channel_tiles - 1) * whole
    last = _use(one, saved, saved, rest)
    return (last if rest == whole or one.channel_tiles == 1 else _use(one, saved, saved, whole)), last


def _fill(one: _Pass, first: bool) -> Cycles:
    """read_rows counts its bursts, asks, and waits; load puts the rows of the first tile into the banks."""
    knobs, work, way, link = one.knobs, one.work, one.way, one.link
    if work.from_chip:
        return _fill_from_chip(one)
    count = _up(np.int64(one.row_tiles * knobs.rows + work.ahead), knobs.map_ports)
    bursts = _up(_rows_in(work, knobs.rows, one.row_tiles) * way.bursts, knobs.map_ports)
    start = count + np.where(bursts > BURSTS_AHEAD, REQUEST_STAGES, 0) + link.read_latency + ENTER_READER
    iterations = _loads(one, knobs.rows + work.ahead)
    rows = _rows_in(work, knobs.rows, 1) * way.words * knobs.word_bytes
    fill = start + np.maximum(iterations, _ddr(rows + _weights_meanwhile(one, first), link))
    if first:
        fill = np.maximum(fill, REQUEST_STAGES + link.read_latency + ENTER_READER + one.load(work.steps))
    return _cycles(fill=fill, program=np.asarray(PASS_BYTES // 4 + link.read_latency + 2))


def _fill_from_chip(one: _Pass) -> Cycles:
    """load moves the rows of the first tile from a map buffer into its banks."""
    fill = _loads(one, one.knobs.rows + one.work.ahead) + ROW_TILE_BUBBLE
    return _cycles(fill=fill, program=np.asarray(PASS_BYTES // 4 + one.link.read_latency + 2))


def _loads(one: _Pass, strides: int) -> Numbers:
    """Iterations of load that bring so many row strides: a group a port from DDR, a bank from a map buffer."""
    together = np.int64(one.knobs.rows) if one.work.from_chip else one.knobs.map_ports
    groups = _up(np.int64(strides), together)
    return np.asarray(groups * one.work.phases * one.way.words, np.int64)


def _tiles_loaded(one: _Pass) -> Numbers:
    """include/read.h, plan_weights: tiles of the pass itself; its first came during the pass before."""
    return np.asarray(np.where(one.streams, one.channel_tiles * one.row_tiles, one.channel_tiles) - 1, np.int64)


def _streamed(words: Numbers, ports: Numbers, word_bytes: Numbers, link: Link) -> Numbers:
    """Cycles that ``words`` of each of so many ports take which read at once: a word a cycle and the DDR at most."""
    milli = sum(
        np.where((ports == count) & (word_bytes == wide), milli_cycles(count, int(wide), link.milli_bytes), 0)
        for count in (1, 2, 4)
        for wide in np.unique(word_bytes)
    )
    return _up(words * milli, np.int64(1000))


@lru_cache(maxsize=256)
def milli_cycles(ports: int, word_bytes: int, milli_bytes: int) -> int:
    """1/1000 cycles a word where so many ports move words all the time. The DDR serves chunks of 64 bytes, the port
    first that waits longest; a chunk begins in a whole cycle and then holds its port for a cycle a word, so that ports
    with little more to give than the DDR leave gaps between chunks (systolic/cycles: memory.cpp)."""
    words = max(1, DDR_CHUNK // word_bytes)
    chunk = words * word_bytes * 1000
    free, ready, chunks = 0, [0] * ports, 64
    for _ in range(chunks * ports):
        port = min(range(ports), key=lambda p: ready[p])
        start = max(free, ready[port] * milli_bytes)  # in bytes that the DDR could have moved, times 1000
        free = start + chunk
        ready[port] = ceil_div(start, milli_bytes) + words
    return max(1000, ceil_div(1000 * max(ready), chunks * words))


def _ddr(moved: Numbers, link: Link) -> Numbers:
    return _up(moved * 1000, np.int64(link.milli_bytes))


def _tile(one: _Pass, uses: tuple[_Use, _Use], saved: int, last: bool) -> Cycles:
    """One row tile with all its channel tiles; during the last one no rows are loaded."""
    knobs, work, way, tiles = one.knobs, one.work, one.way, one.channel_tiles
    compute = tiles * one.feeds
    array = (tiles - 1) * uses[0].load + uses[1].load
    behind = (tiles - 1) * uses[0].saver + uses[1].saver
    waits = one.streams * np.maximum(0, one.load(work.steps) - uses[0].cycles)
    weights = (tiles - 1 if last else tiles) * waits
    loads = _loads(one, knobs.rows) * (0 if last else 1)
    hidden = np.where(way.inputs_resident, one.feeds, compute)  # load: one loop of max(feeds, loads) iterations
    pause = np.where(way.overlap, np.maximum(0, loads - hidden), loads)
    saver = (tiles - 1) * uses[0].cycles + uses[1].cycles - compute
    idle = np.where(pause > 0, np.maximum(0, pause - uses[1].spare), 0)
    takes = np.where(behind > array, np.maximum(compute + pause, behind + idle), array + pause)
    rows = np.maximum(0, takes - compute - saver)
    bubbles = np.where(way.inputs_resident, tiles * ROW_TILE_BUBBLE, max(ROW_TILE_BUBBLE, tiles * CHANNEL_TILE_BUBBLE))
    bubbles = bubbles + np.where((way.overlap == 0) & (loads > 0), ROW_TILE_BUBBLE, 0)
    busy = compute + saver + weights + rows
    part = way.overlap * np.minimum(loads, hidden)  # of the loads, what moves beside the results
    beside = _ddr(_tile_bytes(one, saved, last, part), one.link) - (busy - rows)
    ddr = np.maximum(0, np.maximum(beside, _ddr(_tile_bytes(one, saved, last, loads), one.link) - busy))
    reads = _tile_bytes(one, 0, last, part)
    streamed = _tile_bytes(one, 0, last, np.zeros((), np.int64))
    ddr = np.maximum(ddr, _writes(one, saved, reads - streamed, streamed) - busy)
    ddr = np.maximum(ddr, _reads(one, loads, _written(one, saved), streamed) - busy)
    return _cycles(compute=compute, saver=saver, weights=weights, rows=rows, ddr=ddr, drain=bubbles)


def _tile_bytes(one: _Pass, saved: int, last: bool, loads: Numbers) -> Numbers:
    """What crosses during one row tile, or during so many of its loads."""
    steps = one.streams * (one.channel_tiles - (1 if last else 0)) * one.work.steps
    weights = steps * one.knobs.columns * one.knobs.word_bytes
    return np.asarray(_written(one, saved) + _read(one, loads) + weights, np.int64)


def _written(one: _Pass, saved: int) -> Numbers:
    """Bytes of the results of one row tile that DDR takes."""
    if one.work.to_chip:
        return np.zeros((), np.int64)
    words = ceil_div(one.work.filters, one.knobs.lanes) * one.work.value_words * one.knobs.word_bytes
    return np.asarray(saved * _up(one.way.width, np.int64(one.work.pool_stride)) * words, np.int64)


def _read(one: _Pass, loads: Numbers) -> Numbers:
    """Bytes that so many loads take, of row tiles after the first: the last may have fewer rows, and the last ports
    none."""
    work, rows, tiles = one.work, one.knobs.rows, one.row_tiles
    if tiles == 1 or work.from_chip:
        return np.zeros((), np.int64)
    groups = _up(np.int64(rows), one.knobs.map_ports) * work.phases * (tiles - 1)
    exist = _rows_in(work, rows, tiles) - _rows_in(work, rows, 1)
    return np.asarray(loads * exist * one.knobs.word_bytes // groups, np.int64)


def _writes(one: _Pass, saved: int, rows: Numbers, weights: Numbers) -> Numbers:
    """Cycles of the ports that write one row tile's results while so many bytes of rows and of weights are read."""
    if one.work.to_chip:
        return np.zeros((), np.int64)
    blocks = ceil_div(one.work.filters, one.knobs.lanes)
    row = blocks * _up(one.way.width, np.int64(one.work.pool_stride)) * one.work.value_words
    words = saved * row // one.knobs.map_ports
    most = _up(np.int64(saved), one.knobs.map_ports) * row
    return np.asarray(np.maximum(most, _beside(one, words, rows, weights)), np.int64)


def _reads(one: _Pass, loads: Numbers, results: Numbers, weights: Numbers) -> Numbers:
    """The same of the ports that read the next tile's rows while so many bytes of results are written."""
    words = _read(one, loads) // (one.knobs.map_ports * one.knobs.word_bytes)
    return np.asarray(one.way.overlap * _beside(one, words, results, weights), np.int64)


def _beside(one: _Pass, words: Numbers, maps: Numbers, weights: Numbers) -> Numbers:
    """Cycles of the maps' ports for ``words`` each while other ports move so many bytes of maps and of weights.

    As long as others move, the DDR gives every port that is busy the same share; a port without a pause then falls
    behind, and nothing lets it catch up."""
    knobs, milli = one.knobs, one.link.milli_bytes
    others = np.where(maps > 0, knobs.map_ports * knobs.word_bytes, 0)
    others = others + np.where(weights > 0, knobs.weight_ports * knobs.weight_bytes, 0)
    asked = (knobs.map_ports * knobs.word_bytes + others) * 1000  # 1/1000 bytes a cycle, if the DDR gave them
    lacks = np.maximum(0, asked - milli)
    # A port's share is milli / asked of a word a cycle: others take bytes · asked / (their words · milli) cycles.
    lost = (maps + weights) * lacks // (np.maximum(1, others) * milli)
    return np.asarray(words + np.minimum(lost, words * lacks // milli), np.int64)


def _weights_once(one: _Pass, use: Numbers, saved: int) -> Cycles:
    """Weights that cross once: those that stay arrive during the first row tile; where rows stay, a tile of them
    during the row tiles of the tile before. use: the cycles of a channel tile, at least; saved: rows that leave a row
    tile, at least."""
    work, knobs, tiles = one.work, one.knobs, one.channel_tiles
    port = work.steps * knobs.port_beats
    moved = work.steps * knobs.columns * knobs.word_bytes
    results = _written(one, saved) // tiles
    loads = _loads(one, knobs.rows) * one.way.overlap
    beside = np.maximum(one.load(work.steps), _ddr(moved + results + _read(one, loads) // tiles, one.link))
    ported = (tiles - 1) * one.way.resident * np.maximum(0, port - use)
    first = (tiles - 1) * one.way.resident * np.maximum(0, beside - use)
    # What the DDR gave while the first rows came lies in the ports, but no port gives more than a word a cycle.
    first = np.maximum(ported, first - _ddr(_weights_meanwhile(one, False), one.link))
    each = np.maximum(one.load(work.steps), _ddr(moved + results * one.row_tiles, one.link))
    rounds = (tiles - 1) * one.way.inputs_resident * np.maximum(0, each - use * one.row_tiles)
    return _cycles(weights=first + rounds)


def _weights_meanwhile(one: _Pass, first: bool) -> Numbers:
    """Bytes of weights that cross while the first rows do, into the buffers of their ports: of the tiles that are asked
    for ahead, where the pass has fewer also of the next one's. They take their ports' share of the DDR at most."""
    knobs, work = one.knobs, one.work
    own, asked = _tiles_loaded(one) + first, TILES_AHEAD + first  # the first tile of a frame is used at once
    steps = np.minimum(asked, own) * work.steps + np.where(own < asked, one.way.next_steps, 0)
    words = np.minimum(BURST_WORDS * OUTSTANDING, steps * knobs.port_beats)
    counting = _up(np.int64(one.row_tiles * knobs.rows + work.ahead), knobs.map_ports)  # before rows are asked for
    rows = _rows_in(work, knobs.rows, 1) * one.way.words // knobs.map_ports
    words = np.minimum(np.maximum(0, words - counting), rows)
    return np.asarray(words * knobs.weight_ports * knobs.weight_bytes, np.int64)


def _all_crosses(one: _Pass, total: Cycles) -> Cycles:
    """What a pass lacks to move all its bytes: those of weights that come while rows do, and of the next pass's."""
    work, knobs, way = one.work, one.knobs, one.way
    rows = _rows_in(work, knobs.rows, one.row_tiles) * way.words
    weights = (_tiles_loaded(one) * work.steps + way.next_steps) * knobs.columns
    written = work.saved_height * _up(way.width, np.int64(work.pool_stride)) * ceil_div(work.filters, knobs.lanes)
    maps = rows * (not work.from_chip) + written * work.value_words * (not work.to_chip)
    moved = (maps + weights) * knobs.word_bytes
    least = _ddr(np.asarray(moved, np.int64), one.link) + one.link.read_latency + one.link.write_latency
    return _cycles(ddr=np.maximum(0, least - (total.total - total.program)))


def _drain(one: _Pass, use: _Use) -> Cycles:
    """After the last position: the skew, the Saver's pipelines, what arrange still holds, the last burst's answer;
    or what is not there yet of the next pass's first weights."""
    work, way, knobs = one.work, one.way, one.knobs
    columns = _up(way.width, np.int64(work.pool_stride))
    burst = np.minimum(np.minimum(columns, knobs.chunk) * work.value_words, BURST_WORDS)
    answered = 0 if work.to_chip else burst + one.link.write_latency + ANSWER
    drain = PIPELINE + knobs.rows + use.over + use.last + answered + REGION
    hidden = np.where(way.inputs_resident, use.cycles * one.row_tiles, use.cycles)
    # Where the DDR is slower than the ports, the readers are ahead by what the ports hold.
    beats = way.next_steps * knobs.port_beats
    arrives = np.maximum(beats, one.load(way.next_steps) - BURST_WORDS * OUTSTANDING)
    late = arrives - hidden + REGION + FEED_END
    return _cycles(drain=drain, weights=np.maximum(0, late - drain))


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
    bursts = np.where(count > 1, work.blocks, 1)
    first = Passes(width, words[:, 0], bursts, np.where(count > 1, own, following), *flags)
    middle = Passes(width, words[:, 1], bursts, own, *flags)
    last = Passes(last_width, words[:, 2], bursts, np.full(len(choices), following, np.int64), *flags)
    return first, middle, last, count


def layer_cycles(
    knobs: Knobs, work: Work, choices: tuple[Way, ...], following: int, link: Link, first_layer: bool
) -> Cycles:
    """All passes of one layer, [knobs, ways]. Frame by frame, each but the last is followed by the layer itself."""
    if work.repeats == 1:
        return _frame_cycles(knobs, work, choices, following, link, first_layer)
    first = _frame_cycles(knobs, work, choices, work.steps, link, first_layer)
    middle = _frame_cycles(knobs, work, choices, work.steps, link, False)
    last = _frame_cycles(knobs, work, choices, following, link, False)
    return first + middle.times(np.int64(work.repeats - 2)) + last


def _frame_cycles(
    knobs: Knobs, work: Work, choices: tuple[Way, ...], following: int, link: Link, first_layer: bool
) -> Cycles:
    first, middle, last, count = passes_of(work, choices, following)
    cycles = pass_cycles(knobs, work, first, link, first_layer)
    if int(count.max()) == 1:
        return cycles
    cycles = cycles + pass_cycles(knobs, work, last, link, False).times(np.minimum(count - 1, 1))
    return cycles + pass_cycles(knobs, work, middle, link, False).times(np.maximum(count - 2, 0))


def layer_traffic(rows: int, columns: int, word_bytes: int, lanes: int, work: Work, way: Way) -> Traffic:
    """DDR bytes of one layer: strips read the weights again, and the columns that their kernels share; so do frames."""
    row_tiles, channel_tiles = ceil_div(work.out_height, rows), ceil_div(work.filters, columns)
    passes = way.cut.count * work.repeats
    loads = channel_tiles * (row_tiles if way.order == "streamed" else 1) * passes
    blocks = ceil_div(work.filters, lanes)
    rows_read, saved = _rows_in(work, rows, row_tiles), work.saved_height * work.saved_width
    return Traffic(
        maps_read=0 if work.from_chip else work.repeats * rows_read * way.cut.total_words * word_bytes,
        maps_written=0 if work.to_chip else work.repeats * saved * blocks * work.value_words * word_bytes,
        weights=loads * work.steps * columns * word_bytes,
        requantisers=passes * channel_tiles * columns * REQUANTISER_BYTES,
        program=passes * PASS_BYTES,
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
    """A whole schedule: modelled, not traced. Cycles, traffic and MACs are those of all frames of a batch."""

    array: Array
    link: Link
    layers: tuple[LayerCost, ...]
    batch: int = 1

    @property
    def cycles(self) -> int:
        return sum(layer.total for layer in self.layers)

    @property
    def traffic(self) -> Traffic:
        return sum((layer.traffic for layer in self.layers), Traffic(0, 0, 0, 0, 0))

    @property
    def frames_per_second(self) -> float:
        return self.link.clock_mhz * 1e6 * self.batch / self.cycles

    @property
    def cycles_per_frame(self) -> int:
        return round(self.cycles / self.batch)

    @property
    def bytes_per_frame(self) -> int:
        return round(self.traffic.total / self.batch)

    @property
    def macs(self) -> int:
        return sum(layer.work.macs for layer in self.layers)

    def efficiency(self, layer: LayerCost) -> float:
        """MACs that the network asks for / MACs that the array could do meanwhile."""
        return layer.work.macs / (self.array.macs_per_cycle * layer.total)


def cost(schedule: SystolicSchedule, link: Link) -> Cost:
    """What ``schedule`` costs, layer by layer."""
    network, array = schedule.network, schedule.array
    works = works_of(schedule)
    layers = []
    for index, (work, tiling) in enumerate(zip(works, schedule.tilings, strict=True)):
        following = works[index + 1].steps if index + 1 < len(works) else 0
        layers.append(layer_cost(array, work, way_of(network, tiling, array), following, link, index == 0))
    return Cost(array, link, tuple(layers), schedule.batch)


def works_of(schedule: SystolicSchedule) -> tuple[Work, ...]:
    """Every layer, its maps where the schedule has them."""
    tilings = schedule.tilings
    return staying(
        [work_of(schedule.network, tiling.job, schedule.array) for tiling in tilings],
        [tiling.on_chip for tiling in tilings],
    )


def layer_cost(array: Array, work: Work, way: Way, following: int, link: Link, first_layer: bool) -> LayerCost:
    """``following``: steps of the next layer's first weight tile, which arrives during this one."""
    knobs = knobs_of(array)
    grid = layer_cycles(knobs, work, (way,), following, link, first_layer)
    cycles = Cycles(*(np.asarray(getattr(grid, f.name)).reshape(-1)[0] for f in fields(grid)))
    traffic = layer_traffic(array.rows, array.columns, knobs.word_bytes, array.lanes, work, way)
    return LayerCost(work, way, cycles, traffic, needs(work, array.rows, array.columns, way, following))
