"""The engine in C++: its cycles step by step, its logic and its FIFOs.

    read_rows ── load ──┐
                        ├── pe_row ─── pool ── requantise ── arrange ── write_rows
    read_weights ─ feed ┘

transfers.py computes the times of rows and weights, and saver.py and output_timing.py the times of the output stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from contract.geometry import HLS, SUM_BITS
from contract.program import PASS_WORDS
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import BURST_WORDS, REQUEST_STAGES, DdrTiming
from scheduler.systolic.area.logic import Fabric
from scheduler.systolic.area.memories import MULTIPLIER_BITS, Buffer
from scheduler.systolic.array import Array
from scheduler.systolic.engines.hls.fabric import hls_fabric
from scheduler.systolic.engines.hls.fifos import FIFOS
from scheduler.systolic.engines.hls.output_timing import (
    CHUNK_BUBBLE,
    arrange_stages,
    chunk_bubble,
    chunk_write,
    output_chunk,
    uses_ports,
)
from scheduler.systolic.engines.hls.saver import chunk_begin, save, tile_save
from scheduler.systolic.engines.hls.stages import MIN_STAGES, frozen_groups, requantise_stages, saver_stages, skew_of
from scheduler.systolic.engines.hls.state import FEED_STAGES, LOAD_STAGES, State
from scheduler.systolic.engines.hls.transfers import (
    FIRST_WEIGHTS,
    READ_STAGES,
    bytes_before_writes,
    first_row_word,
    load_rows,
    load_weights,
    move,
    rows_from_ddr,
    save_pace,
    unread_weights,
)
from scheduler.systolic.engines.language import LANGUAGES
from scheduler.systolic.model.ddr_shares import ROWS, WEIGHTS
from scheduler.systolic.model.grid import REQUANTISER_BYTES, PassGrid, RowLoad, Times, ceiling, latest
from scheduler.systolic.model.phases import Expected, RowPhase, TileTraffic, WeightPhase
from scheduler.systolic.model.progress import changed
from scheduler.systolic.shape import LayerShape, row_strides_per_cycle

REGION = 4
"""Cycles of the hand-shakes around a DATAFLOW region (region_start + region_stop of the trace's Fabric)."""

ANSWER = 8
"""The lowest number of cycles from arrange's first word to the memory's buffer, plus the cycles from the memory's
response to the end of write_rows."""


class HlsEngine:
    """The engine in C++ (HLS): its loops feed and load in the same iterations, and its pipelines stop without input.

    See ``scheduler.systolic.engines.engine.Engine``.
    """

    language = LANGUAGES[HLS]
    fetches_alone = True
    fifos: tuple[Buffer, ...] = FIFOS
    factor_bits = MULTIPLIER_BITS

    def begin(self, grid: PassGrid) -> State:
        """Return the cycle model's state at the start of a pass, when the first input rows are in the banks of the row
        buffer."""
        ddr, zero = grid.ddr, grid.flat(0.0)
        tile = grid.shape.steps * grid.step_words
        request, rows = _first_rows(grid)
        weights = _first_weight(grid) + (tile * grid.weight_pace if grid.first else 0)
        looked_up = grid.shape.table_depth
        requantisers = float(grid.channel_tiles * grid.arrays.columns + looked_up)
        fetched = grid.first_bytes + requantisers * REQUANTISER_BYTES
        fetched = fetched + (tile * grid.weight_bytes if grid.first else 0)
        requests = 2 if looked_up else 1
        # requantise takes no sums until all requantisers and the table are loaded.
        loaded = grid.flat(requests * ddr.read_latency + requantisers + 5)
        first_result = loaded + requantise_stages(grid.arrays) - 2  # arrange begins its first chunk with this result
        entered = 2 * FEED_STAGES + 1
        asking = REQUEST_STAGES + 2
        return State(
            **{
                **dict.fromkeys((f.name for f in fields(State)), zero),
                "rows_ready": grid.flat(rows + 2 * LOAD_STAGES),
                "rows_arrived": grid.flat(rows),
                "weights_ready": grid.flat(weights + entered - 1 if grid.first else entered),
                "weights_arrived": grid.flat(weights),
                "weights_asked": grid.flat(FIRST_WEIGHTS + asking if grid.first else FIRST_WEIGHTS),
                "weights_read": grid.flat(weights if grid.first else asking),
                "ddr_done": grid.flat(request + fetched / grid.rate),
                "arrange_done": first_result - chunk_bubble(grid),
            }
        )

    def rows(self, grid: PassGrid, row_tile: int) -> RowLoad:
        """Return the work of loading input rows during row tile ``row_tile``. Padding rows below the map take loop
        iterations, but no words."""
        return grid.rows_after(row_tile)

    def expect(self, grid: PassGrid, state: State, phase: RowPhase) -> Expected:
        """Return the DDR data that are expected to move while the array computes one row tile.

        If loading takes longer than the computation, the rest of the rows is read after the last tile.
        """
        rows, saved_rows = phase.rows, grid.saved(phase.row_tile)
        if phase.channel_tile is not None:
            words = np.minimum(phase.weight_words, latest(phase.feeds, rows.loads) / grid.weight_pace)
            read = {ROWS: rows.bytes, WEIGHTS: words * grid.weight_bytes}
            return Expected(rows.bytes, 0.0, words, save_pace(grid, state, saved_rows, read))
        alone = bytes_before_writes(grid, state) if phase.row_tile == 0 else 0
        read = {ROWS: latest(0, rows.bytes - alone), WEIGHTS: phase.weight_words * grid.weight_bytes}
        share = np.minimum(1 / grid.channel_tiles, grid.feeds / latest(1, rows.loads))
        late = rows.bytes * (1 - share * grid.channel_tiles)
        return Expected(rows.bytes * share, late, phase.weight_words, save_pace(grid, state, saved_rows, read))

    def tile(self, grid: PassGrid, state: State, start: Times, traffic: TileTraffic) -> State:
        """Return the cycle model's state when the output stage has taken a tile's sums, and the DDR has moved the
        requested data."""
        tile = tile_save(grid, traffic)
        return move(grid, state, save(grid, state, start, tile), start, traffic, tile)

    def load_weights(self, grid: PassGrid, state: State, phase: WeightPhase) -> State:
        """Return the cycle model's state when the loop of feed_weights ends, which feeds one weight tile and loads the
        next."""
        return load_weights(grid, state, phase)

    def load_rows(self, grid: PassGrid, begun: State, state: State, phase: RowPhase, expected: Expected) -> State:
        """Return the cycle model's state when the loop of load ends, which feeds the rows of one row tile and loads the
        next ones."""
        words = expected.weight_words
        if phase.channel_tile is None:
            state = changed(state, ddr_done=state.ddr_done + expected.late_row_bytes / grid.rate)
            words = latest(words, unread_weights(grid, phase.start)) if phase.row_tile == 0 else words
        saved_bytes = phase.saved_bytes(grid) + begun.pending_bytes - state.pending_bytes
        return load_rows(grid, state, phase, saved_bytes, words * grid.weight_bytes)

    def end(self, grid: PassGrid, state: State) -> Times:
        """Return the cycle at which a pass ends: its last DDR write is answered and the next pass's first weights are
        loaded.

        Before the last burst, the last results pass through the rows' skew and the Saver's pipelines, and arrange
        outputs its last chunks.
        """
        shape, ddr = grid.shape, grid.ddr
        state, last_result = drained(grid, state)
        begin = chunk_begin(grid, state, last_result)
        last = output_chunk(grid, state, begin, begin, grid.flat(0.0))
        if shape.to_chip:
            return latest(last.output_done + arrange_stages(grid) - 1, state.weights_ready) + REGION
        burst = np.minimum(grid.tail_columns * shape.value_words, BURST_WORDS)
        moving = latest(latest(state.ddr_done, begin) + burst, state.stored)
        transferred = moving + state.pending_bytes / grid.rate + ddr.write_latency
        return latest(last.last_response + 1, transferred, state.weights_ready) + REGION

    def program(self, grid: PassGrid) -> Times:
        """Return the cycles of fetch_pass, a loop that reads a pass's program words before the other processes
        start."""
        return grid.flat(program_cycles(grid.ddr, grid.shape.pass_words))

    def least_fill(self, shape: LayerShape, rows: int, map_ports: int, row_words: int, ddr: DdrTiming) -> int:
        """Return a lower bound of a pass's cycles before the array's first step; see ``_first_rows``."""
        groups = ceil_div(rows + shape.ahead, row_strides_per_cycle(shape, rows) if shape.from_chip else map_ports)
        loaded = groups * shape.phases * row_words + 2 * LOAD_STAGES
        if shape.from_chip:
            return loaded
        return 1 + ddr.read_latency + READ_STAGES + loaded

    def least_drain(self, shape: LayerShape, rows: int, ddr: DdrTiming) -> int:
        """Return a lower bound of a pass's cycles after the array's last step; see ``end``."""
        drained = skew_of(rows) + MIN_STAGES + CHUNK_BUBBLE + REGION
        return drained if shape.to_chip else drained + 1 + ddr.write_latency + ANSWER

    def least_weights(self, cycles: int, ddr: DdrTiming) -> int:
        """Return a lower bound of a pass's cycles before its first weights can be used; see ``_first_weight``."""
        return 1 + ddr.read_latency + READ_STAGES + cycles + 2 * FEED_STAGES

    def least_program(self, ddr: DdrTiming) -> int:
        """Return a lower bound of ``program``, the cycles of fetch_pass."""
        return program_cycles(ddr)

    def fabric(self, array: Array) -> Fabric:
        """Return the LUTs and FFs of the C++ engine's logic for ``array``."""
        return hls_fabric(array)

    def sum_bits(self, shapes: Sequence[LayerShape]) -> int:
        """Return the accumulators' bits, which are always SUM_BITS because their C++ type is ``int``."""
        return SUM_BITS


def program_cycles(ddr: DdrTiming, words: int = PASS_WORDS) -> int:
    """Return the cycles in which fetch_pass reads a pass's program: one per 32-bit word, plus the DDR's latency."""
    return words + max(ddr.read_latency, REQUEST_STAGES + 1) + 2


# --- before the first tile ----------------------------------------------------------------------------------------


def _first_rows(grid: PassGrid) -> tuple[Times, Times]:
    """Return the cycle of a pass's first row request, and the cycle at which load has the last word of the first row
    tile."""
    iterations = grid.loads_of(grid.arrays.rows + grid.shape.ahead)
    if grid.shape.from_chip:
        return grid.flat(0.0), iterations
    request, first_word = first_row_word(grid)
    return request, rows_from_ddr(grid, request, first_word, iterations)


def _first_weight(grid: PassGrid) -> Times:
    """Return the cycle of a pass at which feed_weights has the first weight word from DDR.

    read_weights first requests two tiles, if the pass loads two or more.
    """
    tiles = grid.tiles_loaded + (grid.tilings.next_steps > 0)
    loop = np.minimum(tiles, 2) * (REQUEST_STAGES + 2)
    return latest(loop, 1 + grid.ddr.read_latency) + READ_STAGES


# --- after the last tile ------------------------------------------------------------------------------------------


def chunks_in_pipelines(grid: PassGrid, end: State) -> Times:
    """Return how many chunks (groups of output columns), before the last two, still have results in the pipelines when
    the array ends.

    It is above 0 only if chunks have few results. In a tile of several chunks, only the last one can be that short.
    """
    tail, chunk = grid.tail_columns, np.asarray(grid.arrays.chunk, np.float64)
    results_before = np.where(grid.columns > chunk, end.chunk_results * chunk / tail, end.chunk_results)
    standing = np.floor((frozen_groups(grid.arrays) - end.chunk_results) / results_before)
    return np.clip(standing, 0, latest(0, np.ceil(end.results / end.chunk_results) - 2))


def drained(grid: PassGrid, end: State) -> tuple[State, Times]:
    """Return the state ``end`` after the output stage's arrange has taken all chunks but the last, and the cycle of the
    last result.

    The chunks in the pipelines follow each other, and each is output before the next one.
    """
    groups = ceiling(grid.saved(grid.row_tiles - 1) / grid.arrays.save_rows)
    flushed = end.array + skew_of(grid.arrays.rows) + saver_stages(grid.arrays) + groups - 1
    chunks = chunks_in_pipelines(grid, end)
    phases = chunks * (latest(end.chunk_results, end.chunk_words) + chunk_bubble(grid))
    if not uses_ports(grid.shape):
        return end, latest(end.arrange_done, flushed + phases)
    chunk = chunk_write(grid, end.chunk_columns, end.column_words)
    first_word = flushed - (chunks + 1) * end.chunk_results + chunk_bubble(grid) + arrange_stages(grid)
    free = np.where(chunks > 0, first_word + (chunks + 1) * chunk.interval, 0)
    held_up = np.where(chunks > 0, free - chunk.full_fifo_cycles, 0)
    return changed(end, ports_free=latest(end.ports_free, free)), latest(end.arrange_done, flushed + phases, held_up)
