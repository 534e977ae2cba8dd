"""The loads and feeds of rows and weights of the engine in SystemVerilog, which run in parallel, each at its own pace.

    load           phase k: feeds │ gap │ phase k+1: feeds
                   loads ──┤            loads ───────┤       a phase ends when feeds and loads have ended
    feed_weights   tile k │ gap │ tile k+1
    its buffer     words arrive while there is room, independent of the feeds

A late word delays the phase that needs it, but no earlier one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import BURST_WORDS, OUTSTANDING
from scheduler.systolic.engines.rtl.stages import (
    COMMAND_CYCLES,
    FEED_GAP,
    FEED_TO_STEP,
    LOAD_GAP,
    LOAD_TO_STEP,
    READ_FIFO_LATENCY,
    READ_WORDS,
    RESPONSE_TO_REQUEST,
    ROW_LEAD,
    TILE_TO_STEP,
    WEIGHT_LEAD,
)
from scheduler.systolic.engines.rtl.state import RtlState
from scheduler.systolic.model.ddr_shares import ROWS, SAVES, WEIGHTS, shares_of
from scheduler.systolic.model.grid import PassGrid, RowLoad, Times, latest
from scheduler.systolic.model.phases import RowPhase, WeightPhase
from scheduler.systolic.shape import row_strides_per_cycle, rows_by_port, rows_in


def first_beat(grid: PassGrid) -> int:
    """Return the cycles from a DDR reader's request until its first word can be taken."""
    return COMMAND_CYCLES + grid.ddr.read_latency + READ_FIFO_LATENCY


# --- rows ---------------------------------------------------------------------------------------------------------


def rows_of_tile(grid: PassGrid, tile: int) -> RowLoad:
    """Return the work of loading the input rows of row tile ``tile``, which is empty after the last tile.

    The first tile includes the rows below it that its kernel reaches. Padding rows below the map are not loaded.
    Padding rows above the map are not loaded if the stride is 1.
    """
    shape, rows = grid.shape, grid.arrays.rows
    if tile >= grid.row_tiles:
        return grid.no_rows
    first = 0 if tile == 0 else tile * rows + shape.ahead
    above = shape.pad_top if shape.stride == 1 else 0
    strides = min((tile + 1) * rows + shape.ahead, ceil_div(shape.pad_top + shape.in_height, shape.stride))
    strides_per_cycle = row_strides_per_cycle(shape, rows) if shape.from_chip else grid.arrays.map_ports
    groups = np.ceil(max(0, strides - max(first, above)) / np.asarray(strides_per_cycle, np.float64))
    loads = grid.flat(np.asarray(groups * shape.phases * grid.tilings.words, np.float64))
    if shape.from_chip:
        return replace(grid.no_rows, loads=loads)
    read = rows_in(shape, rows, tile + 1) - (rows_in(shape, rows, tile) if tile else 0)

    def slowest(ports: int) -> Times:
        loaded = rows_by_port(shape, rows, tile, ports) if tile else [0] * ports
        pairs = zip(rows_by_port(shape, rows, tile + 1, ports), loaded, strict=True)
        return np.asarray(max(rows_then - rows_now for rows_then, rows_now in pairs) * grid.tilings.words, np.float64)

    read_bytes = grid.flat(0.0) + read * grid.tilings.words * grid.arrays.word_bytes
    return RowLoad(loads, grid.by_ports(slowest), read_bytes, grid.flat(0.0))


def first_words(grid: PassGrid, words: Times, fifo_words: float = 0.0) -> Times:
    """Return the cycles in which a map port reads ``words`` words of rows, counted from its first word.

    The port moves one word per cycle, unless its requests take longer: one cycle per burst, and one more per piece of a
    row. If bursts are short, each OUTSTANDING bursts after the first ones wait for the DDR's latency.

    Args:
        grid: The pass.
        words: The words of the port.
        fifo_words: Words that the port's FIFO takes without such a wait.
    """
    part = np.minimum(grid.burst, BURST_WORDS)
    rounds = latest(0, np.ceil((words - fifo_words) / (OUTSTANDING * part)) - 1)
    late = rounds * (grid.ddr.read_latency + part + RESPONSE_TO_REQUEST) + (
        words - fifo_words - rounds * OUTSTANDING * part
    )
    return latest(words * _request_pace(grid), late + fifo_words)


def _request_pace(grid: PassGrid) -> Times:
    """Return the cycles per word that a map port needs for its requests: one per burst, and one more per piece of a
    row."""
    return latest(1, (np.ceil(grid.burst / BURST_WORDS) + COMMAND_CYCLES) / grid.burst)


def load_rows(grid: PassGrid, state: RtlState, phase: RowPhase, saved_bytes: Times, weight_bytes: Times) -> RtlState:
    """Return the cycle model's state when a row tile's rows have been fed and the next rows are loaded.

    Args:
        grid: The pass.
        state: The state after the phase's last tile.
        phase: The phase.
        saved_bytes: Bytes of results that the DDR moves during the phase.
        weight_bytes: Bytes of weights that the DDR moves during the phase.
    """
    overlapped = grid.tilings.overlap > 0
    loads, words, any_loads = phase.rows.loads, phase.rows.words, phase.rows.loads > 0
    fed = latest(phase.start + phase.feeds, state.array - ROW_LEAD)
    begun = np.where(overlapped, phase.start - FEED_TO_STEP, fed - FEED_TO_STEP + LOAD_GAP)
    lost = shares_of(grid).lost_cycles(ROWS, words, {SAVES: saved_bytes, WEIGHTS: weight_bytes})
    asked_words = state.rows_asked + words
    queued = state.rows_arrived + first_words(grid, asked_words) - first_words(grid, state.rows_asked) + lost
    last_word = latest(queued, begun + first_words(grid, words, READ_WORDS) + lost)
    arrived = np.where(words > 0, latest(last_word, state.ddr_done), state.rows_arrived)
    loaded = np.where(any_loads, latest(begun + loads, np.where(words > 0, arrived, 0)), 0)
    loop = latest(fed + LOAD_GAP, np.where(any_loads, begun + loads + LOAD_TO_STEP, 0))
    next_step = latest(loop, loaded + np.where(any_loads, LOAD_TO_STEP, 0))
    return replace(
        state, rows_ready=next_step, rows_late=next_step - loop, rows_arrived=arrived, rows_asked=asked_words
    )


TILES_BACK = 4
"""The number of weight tiles, from the one that is fed back to earlier ones, for which ``_room`` checks the buffer."""

# --- weights ------------------------------------------------------------------------------------------------------


def weight_pace(grid: PassGrid, tile: Times) -> Times:
    """Return the cycles per word of a weight port while only weights are read. ``tile`` is a weight tile's words per
    port."""
    return latest(shares_of(grid).paces(WEIGHTS)[WEIGHTS], _weight_request_pace(grid, tile))


def _weight_request_pace(grid: PassGrid, tile: Times) -> Times:
    """Return the cycles per word of a weight port that its requests and the read latency need, without the DDR's rate.

    The requests take one cycle per burst and one more per tile. If the pass loads more than OUTSTANDING tiles, short
    bursts wait for the DDR's latency.
    """
    burst = np.clip(tile, 1, BURST_WORDS)
    asking = (np.ceil(tile / BURST_WORDS) + COMMAND_CYCLES) / latest(1, tile)
    answered = np.where(grid.tiles_loaded > OUTSTANDING, (grid.ddr.read_latency + burst) / (OUTSTANDING * burst), 0)
    return latest(1, asking, answered)


def weights_at_once(grid: PassGrid) -> Times:
    """Return the words that a weight port reads before the array takes its first step.

    They are the words of all tiles that the pass loads, and of the next pass's first tile. Streamed tiles are loaded
    again for each row tile. The room in the buffer limits them, and the buffer already holds one tile. A buffer
    whose depth is not chosen yet has room for all of them.
    """
    shape, depth = grid.shape, grid.arrays.weight_depth
    words = (grid.tiles_loaded * shape.steps + grid.tilings.next_steps) * grid.step_words
    return np.minimum(words, (depth - shape.steps) * grid.step_words + READ_WORDS) if depth else words


def load_weights(grid: PassGrid, state: RtlState, phase: WeightPhase) -> RtlState:
    """Return the cycle model's state when a weight tile has been fed. The next words arrive continuously while the
    buffer has room."""
    words, any_words = phase.words, phase.words > 0
    tile = grid.step_words * (grid.tilings.next_steps if phase.next_pass else grid.shape.steps)
    rivals = {ROWS: phase.row_bytes, SAVES: phase.saved_bytes(grid)}
    lost = shares_of(grid).lost_cycles(WEIGHTS, words, rivals)
    continuous = state.weights_arrived + words * _weight_request_pace(grid, tile) + lost
    last_word = latest(continuous, _room(grid, phase, weight_pace(grid, tile)))
    arrived = np.where(any_words, last_word, state.weights_arrived)
    loop = latest(phase.start + phase.feeds, state.array - WEIGHT_LEAD) + FEED_GAP
    next_step = loop if phase.next_pass else latest(loop, np.where(any_words, arrived + TILE_TO_STEP, 0))
    return replace(state, weights_ready=next_step, weights_late=next_step - loop, weights_arrived=arrived)


def _room(grid: PassGrid, phase: WeightPhase, pace: Times) -> Times:
    """Return the cycle at which the last weight word arrives that had to wait for room in the weight buffer.

    It is 0 if all tiles of the pass stay in the buffer. The *new* tile is the one that arrives while tile k is fed:

        fed      tile k − 2 │ tile k − 1                     │ tile k
        held                │ k − 1, k, and a part of new    │ k, and all of new

    Steps of the new tile that fit in the buffer next to 2 + i tiles can arrive before tile k − i is fed. The other
    steps have to wait until then.
    """
    steps, new_steps = grid.shape.steps, phase.words / grid.step_words
    needs = steps + latest(steps, np.asarray(grid.tilings.next_steps, np.float64))
    depth = latest(grid.arrays.weight_depth, needs)
    room = grid.flat(0.0)
    for further in range(TILES_BACK):
        overflow_steps = new_steps - latest(0, depth - (2 + further) * steps)
        begun = phase.start - further * phase.feeds
        room = latest(
            room, np.where(overflow_steps > 0, begun + (overflow_steps * grid.step_words - READ_WORDS) * pace, 0)
        )
    return np.where(grid.tilings.weights_resident > 0, 0, room)
