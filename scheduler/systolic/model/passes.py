"""Cycles of one pass: a recurrence over its tiles, of the same processes and in the same order as the engine runs them.

A pass is: its first rows arrive; then tile after tile computes while the next rows, the next weights and the results
before it move; at the end the last results drain. Each tile begins when the array, the loop that loads rows and the one
that loads weights are through with what comes before (scheduler/systolic/model/state.py). Tiles that are alike are
taken together: a pass costs a few steps of each kind, whatever the layer's size.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import BURST_WORDS, OUTSTANDING, DdrTiming
from scheduler.systolic.model.cycles import PARTS, Cycles
from scheduler.systolic.model.ddr_shares import ROWS, SAVES, WEIGHTS, Shares
from scheduler.systolic.model.knobs import Knobs
from scheduler.systolic.model.saver import CHUNK_BUBBLE, SAVER_STAGES, save, saver_of
from scheduler.systolic.model.shape import (
    HELD_WORDS,
    PASS_BYTES,
    REQUANTISER_BYTES,
    REQUEST_STAGES,
    Passes,
    Shape,
    Times,
    most,
    rows_by_port,
    up,
)
from scheduler.systolic.model.state import FEED_STAGES, LOAD_STAGES, State, sweep
from scheduler.systolic.model.transfers import load_rows, load_weights, move
from scheduler.systolic.work import Work

REGION = 4
"""Hand-shakes around a DATAFLOW region (the trace's Fabric: region_start + region_stop)."""

ENTER_READER = 6
"""read_rows, read_weights: the loop that asks is entered and drained, the one that loads is entered."""

READ_STAGES = 4
"""From a beat of the memory to the loop that loads: the reader's pipeline and a FIFO."""

FIRST_WEIGHTS = 2
"""read_weights asks in this cycle; rows are counted before they are asked for."""

ANSWER = 8
"""write_rows: entered, drained, and its last responses collected, beside the latency of the write."""


def pass_cycles(knobs: Knobs, work: Work, way: Passes, ddr: DdrTiming, first: bool) -> Cycles:
    """One pass, [knobs, ways]. ``first``: of the frame, so that its own first weights have to arrive too."""
    inside = way.inputs_resident > 0
    if inside.all() or not inside.any():
        return _pass(Shape(knobs, work, way, ddr, first), bool(inside.all()))
    parts = [
        _pass(Shape(knobs, work, way.pick(chosen), ddr, first), bool(chosen[inside].any()))
        for chosen in (inside, ~inside)
    ]
    order = np.argsort(np.concatenate([np.flatnonzero(inside), np.flatnonzero(~inside)]))
    return Cycles(*(np.concatenate([getattr(part, n) for part in parts], axis=-1)[..., order] for n in PARTS))


ROUNDED = (len(PARTS) - 2) // 2
"""Cycles by which a pass may come out shorter than it is: half a one for each part but two, which are whole."""


def least_fill(work: Work, rows: int, map_ports: int, row_words: int, ddr: DdrTiming) -> int:
    """Cycles before the array's first step, at least: see ``_first_rows``. map_ports: at most; row_words: at least, of
    all strips together."""
    groups = ceil_div(rows + work.ahead, rows if work.from_chip else map_ports)
    loaded = groups * work.phases * row_words + 2 * LOAD_STAGES
    if work.from_chip:
        return loaded
    counted = ceil_div(ceil_div(work.out_height, rows) * rows + work.ahead, map_ports)
    return counted + 3 + ddr.read_latency + READ_STAGES + loaded


def least_drain(work: Work, rows: int, ddr: DdrTiming) -> int:
    """Cycles after the array's last step, at least: see ``_end``."""
    out = rows + SAVER_STAGES - 1 + CHUNK_BUBBLE + REGION
    return out if work.to_chip else out + 1 + ddr.write_latency + ANSWER


def least_weights(cycles: int, ddr: DdrTiming) -> int:
    """Cycles before the array can take the last of the weights that arrive in so many, at least: see
    ``_first_weight``, ``load_weights``."""
    return 1 + ddr.read_latency + READ_STAGES + cycles + 2 * FEED_STAGES


def program_cycles(ddr: DdrTiming) -> int:
    """fetch_pass: the words of a pass and their latency."""
    return PASS_BYTES // 4 + ddr.read_latency + 2


def _pass(one: Shape, inputs_resident: bool) -> Cycles:
    state = _start(one)
    fill = state.rows
    state = _channel_tiles(one, state) if inputs_resident else _row_tiles(one, state)
    compute = one.flat(float(one.row_tiles * one.channel_tiles) * one.feeds)
    return _cycles(
        fill=fill,
        compute=compute,
        rows=state.wait_rows - fill,
        weights=state.wait_weights,
        saver=state.wait_saver,
        ddr=state.wait_ddr,
        drain=_end(one, state) - state.array,
        program=one.flat(program_cycles(one.ddr)),
    )


def _cycles(**parts: Times) -> Cycles:
    return Cycles(**{name: np.rint(parts[name]).astype(np.int64) for name in PARTS})


# --- before the first tile ----------------------------------------------------------------------------------------


def _start(one: Shape) -> State:
    """read_rows counts its bursts, asks, and waits; load puts the rows of the first tile into the banks."""
    ddr, zero = one.ddr, one.flat(0.0)
    tile = one.work.steps * one.step_words
    asked, rows = _first_rows(one)
    weights = _first_weight(one) + (tile * one.weight_pace if one.first else 0)
    requantisers = float(one.channel_tiles * one.knobs.columns)
    fetched = one.first_bytes + requantisers * REQUANTISER_BYTES
    fetched = fetched + (tile * one.weight_bytes if one.first else 0)
    loaded = one.flat(ddr.read_latency + requantisers + 5)  # requantise takes nothing before
    entered = 2 * FEED_STAGES + 1
    return State(
        **{
            **dict.fromkeys(State.__dataclass_fields__, zero),
            "rows": one.flat(rows + 2 * LOAD_STAGES),
            "rows_at": one.flat(rows),
            "weights": one.flat(weights + entered - 1 if one.first else entered),
            "weights_at": one.flat(weights),
            "ddr": one.flat(np.minimum(asked, REQUEST_STAGES / 2) + fetched / one.rate),
            "arrange": loaded,
        }
    )


def _first_word(one: Shape) -> tuple[Times, Times]:
    """When the first row is asked for, and when load has its first word. The loop that asks drains as deep as one that
    loads; where more bursts are asked for while words come, the loop that loads is as deep."""
    knobs, work = one.knobs, one.work
    counted = up((one.row_tiles * knobs.rows + work.ahead) / knobs.map_ports)
    bursts = up(one.rows_read * one.way.bursts / knobs.map_ports)
    skipped = np.floor(work.pad_top / knobs.map_ports) * one.way.bursts
    asked = counted + 3 + skipped
    loop = asked + np.minimum(bursts, OUTSTANDING) + REQUEST_STAGES + ENTER_READER - 3
    loop = loop + np.where(bursts > OUTSTANDING, REQUEST_STAGES, 0)
    return asked, most(loop, asked + one.ddr.read_latency) + READ_STAGES


def _first_rows(one: Shape) -> tuple[Times, Times]:
    """When the first row is asked for, and when load has the last word of the first tile."""
    iterations = one.loads_of(one.knobs.rows + one.work.ahead)
    if one.work.from_chip:
        return one.flat(0.0), iterations
    asked, there = _first_word(one)
    return asked, _rows_from_ddr(one, asked, there, iterations)


def _rows_from_ddr(one: Shape, asked: Times, there: Times, iterations: Times) -> Times:
    """The first weights and requantisers come meanwhile."""
    knobs = one.knobs
    words = up(one.first_rows / knobs.map_ports) * one.way.words
    head = (asked - FIRST_WEIGHTS) * np.minimum(one.rate, one.weight_bytes)
    weights = most(0, np.minimum(HELD_WORDS, _weights_asked(one)) * one.weight_bytes - head)
    requantisers = np.minimum(one.channel_tiles * knobs.columns, words) * REQUANTISER_BYTES
    begun = asked + one.ddr.read_latency + READ_STAGES
    lost = Shares.of(one).lost(ROWS, words, {WEIGHTS: weights, SAVES: one.flat(0.0)})
    lost = lost + np.where(lost > 0, requantisers / one.rate, 0)
    moved = begun + one.first_bytes / one.rate
    late = begun + _until_the_slowest(one, np.minimum(weights, words * one.weight_bytes) + requantisers)
    came = most(there + words * one.row_pace, begun + words * one.row_pace + lost, moved, late)
    inside = min(knobs.rows + one.work.ahead, ceil_div(one.work.pad_top + one.work.in_height, one.work.stride))
    return most(there + iterations, came + iterations - one.loads_of(inside))


def _weights_asked(one: Shape) -> Times:
    """Words of weights that a port is asked for before the array begins: two tiles, and a third when the first of a
    frame is there."""
    tile, own, asked = one.work.steps * one.step_words, one.tiles_loaded, 3 if one.first else 2
    return np.minimum(asked, own) * tile + np.where(own < asked, one.way.next_steps * one.step_words, 0)


def _weights_left(one: Shape, began: Times) -> Times:
    """Words of weights asked for ahead that a port has not moved when the first rows are there."""
    pace = Shares.of(one).paces(ROWS, WEIGHTS)[WEIGHTS]
    held = np.minimum(HELD_WORDS, _weights_asked(one))
    return most(0, held - (began - one.ddr.read_latency) / pace)


def _until_the_slowest(one: Shape, beside: Times) -> Times:
    """Cycles until the port with most rows of the first tile has them: the others, which need fewer, take their share
    of the DDR meanwhile for rows of the next tile, as far as they hold them."""
    ahead = one.read_ahead if one.row_tiles > 1 else 0.0

    def moved(ports: int) -> Times:
        rows = rows_by_port(one.work, one.knobs.rows, 1, ports)
        words = [np.minimum(max(rows) * one.way.words, its * one.way.words + ahead) for its in rows]
        return np.asarray(sum(words), np.float64)

    return np.where(one.map_bytes > one.rate, (one.by_ports(moved) * one.knobs.word_bytes + beside) / one.rate, 0)


def _first_weight(one: Shape) -> Times:
    """When feed_weights has the first word of what the pass loads: two tiles are asked for at once."""
    tiles = one.tiles_loaded + (one.way.next_steps > 0)
    loop = np.minimum(tiles, 2) + REQUEST_STAGES + READ_STAGES + np.where(tiles > 2, REQUEST_STAGES, 0)
    return most(loop, 1 + one.ddr.read_latency) + READ_STAGES


# --- tiles --------------------------------------------------------------------------------------------------------


def _row_tiles(one: Shape, state: State) -> State:
    """All channel tiles over one row tile after the other."""
    blocks = ceil_div(one.work.filters, one.knobs.lanes)
    tile_words = one.flat(one.work.steps * one.step_words)

    def row(state: State, index: int) -> State:
        more = index < one.row_tiles - 1
        rows = one.rows_after(index)
        read = rows.bytes / one.channel_tiles

        def channel(state: State, tile: int) -> State:
            last = tile == one.channel_tiles - 1
            loads = np.where(one.streams | (index == 0 and not last), tile_words, 0)
            if last and not more:
                loads = one.flat(one.way.next_steps * one.step_words)
            beside = loads * one.weight_bytes
            began, size = state.weights, (one.saved(index), one.blocks(tile))
            state = _tile(one, state, size, read, beside, last and not more)
            return load_weights(one, state, began, one.feeds, loads, last and not more)

        began, pending = state.rows, state.pending
        leaves = np.where(state.taken <= state.filled, state.wrote, 0)  # until the first chunk is filled none does
        state = sweep(state, one.channel_tiles, 1, channel)
        tiles = np.where(one.streams, one.channel_tiles, (one.channel_tiles - 1) * (index == 0))
        left = one.columns * one.column_bytes(one.saved(index), blocks) + pending - state.pending
        weights = tiles * tile_words
        if index == 0:
            weights = most(weights, _weights_left(one, began))
        others = left, weights * one.weight_bytes
        return load_rows(one, state, began, one.channel_tiles * one.feeds, rows, others, leaves)

    return sweep(state, one.row_tiles, _period(one), row)


def _channel_tiles(one: Shape, state: State) -> State:
    """All row tiles under one channel tile after the other; rows come once."""

    def channel(state: State, tile: int) -> State:
        last = tile == one.channel_tiles - 1
        words = one.flat((one.way.next_steps if last else one.work.steps) * one.step_words)

        def row(state: State, index: int) -> State:
            rows = one.rows_after(index) if tile == 0 else one.no_rows
            beside = np.minimum(words / one.row_tiles, most(one.feeds, rows.loads) / one.weight_pace) * one.weight_bytes
            began, pending, size = state.rows, state.pending, (one.saved(index), one.blocks(tile))
            state = _tile(one, state, size, rows.bytes, beside, last and index == one.row_tiles - 1)
            others = one.columns * one.column_bytes(*size) + pending - state.pending, beside
            return load_rows(one, state, began, one.feeds, rows, others)

        began = state.weights
        state = sweep(state, one.row_tiles, _period(one), row)
        return load_weights(one, state, began, one.feeds * one.row_tiles, words, last)

    return sweep(state, one.channel_tiles, 1, channel)


def _period(one: Shape) -> int:
    """Row tiles leave one row more every second time where a pool window straddles them."""
    return 2 if one.work.pool_size == 2 and one.knobs.rows % 2 == 1 else 1


def _tile(one: Shape, state: State, size: tuple[int, int], rows: Times, weights: Times, last: bool) -> State:
    """One channel tile of one row tile; bytes of rows and weights that are read meanwhile."""
    loaded = most(state.array, state.rows)
    start = most(loaded, state.weights)
    late_rows = np.minimum(loaded - state.array, state.rows_late)
    late_weights = np.minimum(start - loaded, state.weights_late)
    waited = replace(
        state,
        wait_rows=state.wait_rows + (loaded - state.array) - late_rows,
        wait_weights=state.wait_weights + (start - loaded) - late_weights,
        wait_ddr=state.wait_ddr + late_rows + late_weights,
    )
    after = save(one, waited, start, saver_of(one, *size, last))
    return move(one, state, after, start, size, rows, weights)


# --- after the last tile ------------------------------------------------------------------------------------------


def _end(one: Shape, state: State) -> Times:
    """The skew, the Saver's pipelines, what arrange still holds, the last burst's answer; or what is not there yet of
    the next pass's first weights."""
    knobs, work, ddr = one.knobs, one.work, one.ddr
    groups = up(one.saved(one.row_tiles - 1) / knobs.save_rows)
    came = most(state.arrange, state.array + knobs.rows + SAVER_STAGES + groups - 2)
    begin = came + state.excess + CHUNK_BUBBLE
    if work.to_chip:
        return most(begin + state.left, state.weights) + REGION
    burst = np.minimum(np.minimum(one.columns, knobs.chunk) * work.value_words, BURST_WORDS)
    answered = ddr.write_latency + ANSWER
    moved = most(state.ddr, begin) + state.pending / one.rate
    return most(begin + state.left + burst + answered, moved + answered, state.weights) + REGION
