"""The engine in SystemVerilog: its cycles step by step, its logic and its FIFOs.

The modules next to this one have the parts: stages.py the depths and gaps, loader.py the rows and weights, and saver.py
the output stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from contract.geometry import RTL
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import DdrTiming
from scheduler.systolic.area.logic import Fabric
from scheduler.systolic.area.memories import Buffer
from scheduler.systolic.array import Array
from scheduler.systolic.engines.language import LANGUAGES
from scheduler.systolic.engines.rtl.fabric import DIGIT_ROWS, rtl_fabric
from scheduler.systolic.engines.rtl.fifos import QUEUES
from scheduler.systolic.engines.rtl.loader import (
    first_beat,
    first_words,
    load_rows,
    load_weights,
    rows_of_tile,
    weight_pace,
    weights_at_once,
)
from scheduler.systolic.engines.rtl.saver import save, tile_save
from scheduler.systolic.engines.rtl.stages import (
    COMMAND_CYCLES,
    FETCH,
    FIRST_FEED,
    LOAD_TO_STEP,
    OUTPUT_LATENCY,
    PASS_END,
    PASS_START,
    READ_FIFO_LATENCY,
    READ_WORDS,
    SUM_OUTPUT_LATENCY,
    TILE_TO_STEP,
    UNCOUNTED_START,
)
from scheduler.systolic.engines.rtl.state import RtlState
from scheduler.systolic.model.ddr_shares import ROWS, SAVES, WEIGHTS, shares_of
from scheduler.systolic.model.grid import REQUANTISER_BYTES, PassGrid, RowLoad, Times, latest
from scheduler.systolic.model.phases import Expected, RowPhase, TileTraffic, WeightPhase
from scheduler.systolic.model.progress import changed
from scheduler.systolic.shape import LayerShape, row_strides_per_cycle, rows_in

MIN_SUMS, MIN_RESULTS = 7, 9
"""Lower bounds of ``sums``, without the skew of the rows, and of ``results`` of a ``Stages``, in cycles.

They hold for the shortest chains of DSPs and for the simplest requantiser."""


class RtlEngine:
    """The engine in SystemVerilog: parallel state machines, and pipelines that never stall, with FIFOs between them.

    ``scheduler.systolic.engines.engine.Engine`` describes the methods.
    """

    language = LANGUAGES[RTL]
    fetches_alone = False
    fifos: tuple[Buffer, ...] = QUEUES
    factor_bits = DIGIT_ROWS

    def begin(self, grid: PassGrid) -> RtlState:
        """Return the cycle model's state at the start of a pass, when the first input rows are in the row buffer.

        read_rows, read_weights and requantise send their first requests as soon as the pass starts.
        """
        shape, zero = grid.shape, grid.flat(0.0)
        tile = grid.shape.steps * grid.step_words
        beat = float(first_beat(grid))
        rows = _first_rows(grid)
        weights = beat + (tile * weight_pace(grid, tile) if grid.first else 0.0)
        constants = float(grid.channel_tiles * grid.arrays.columns)
        requantised = beat + constants + (beat + shape.table_depth if shape.table_depth else 0.0)
        fetched = rows_of_tile(grid, 0).bytes + (constants + shape.table_depth) * REQUANTISER_BYTES
        fetched = fetched + (tile * grid.weight_bytes if grid.first else 0.0)
        return RtlState(
            **{
                **dict.fromkeys((f.name for f in fields(RtlState)), zero),
                "rows_ready": grid.flat(rows + LOAD_TO_STEP),
                "rows_arrived": grid.flat(rows),
                "rows_asked": rows_of_tile(grid, 0).words,
                "weights_ready": grid.flat(weights + TILE_TO_STEP if grid.first else float(FIRST_FEED)),
                "weights_arrived": grid.flat(weights),
                "ddr_done": grid.flat(beat + fetched / grid.rate),
                "requantised": grid.flat(requantised - 1),
            }
        )

    def rows(self, grid: PassGrid, row_tile: int) -> RowLoad:
        """Return the work of loading the input rows of the row tile after ``row_tile``, without the padding rows that
        are not loaded."""
        return rows_of_tile(grid, row_tile + 1)

    def expect(self, grid: PassGrid, state: RtlState, phase: RowPhase) -> Expected:
        """Return the bytes of input rows per tile and the weight words that are loaded while a row tile is computed.

        The cycles that writes lose to other ports are not expected here, because ``tile`` computes them per tile.
        """
        tiles = grid.channel_tiles if phase.channel_tile is None else 1
        return Expected(phase.rows.bytes / tiles, 0.0, phase.weight_words, grid.flat(1.0))

    def tile(self, grid: PassGrid, state: RtlState, start: Times, traffic: TileTraffic) -> RtlState:
        """Return the cycle model's state when the output stage has taken a tile's sums, and the DDR has moved the
        tile's data."""
        saved_bytes = grid.columns * grid.column_bytes(traffic.saved_rows, traffic.blocks)
        words = grid.columns * tile_save(grid, traffic.saved_rows, traffic.blocks, grid.flat(1.0)).words
        to_ddr = not grid.shape.to_chip
        cycles = traffic.weight_bytes / grid.weight_bytes
        # This share of the weights' words arrives during the tile. The other words have arrived before it.
        late = np.clip((state.weights_arrived + cycles - start) / latest(1, cycles), 0, 1)
        rivals = {ROWS: traffic.row_bytes, WEIGHTS: traffic.weight_bytes * late}
        lost = shares_of(grid).lost_cycles(SAVES, words, rivals) if to_ddr else grid.flat(0.0)
        pace = traffic.word_cycles + lost / words
        saved = save(grid, state, start, tile_save(grid, traffic.saved_rows, traffic.blocks, pace))
        read_bytes = grid.map_bytes * (not grid.shape.from_chip) + grid.weight_bytes
        earliest = start - READ_WORDS * read_bytes / grid.rate
        # Resident weights are not counted, because they are read whenever the DDR has time.
        weight_bytes = np.where(grid.tilings.weights_resident > 0, 0, traffic.weight_bytes)
        busy = (traffic.row_bytes + weight_bytes + saved_bytes) / grid.rate
        return changed(saved, ddr_done=latest(state.ddr_done, earliest) + busy)

    def load_weights(self, grid: PassGrid, state: RtlState, phase: WeightPhase) -> RtlState:
        """Return the cycle model's state when a weight tile has been fed. The next words arrive continuously while the
        buffer has room."""
        return load_weights(grid, state, phase)

    def load_rows(
        self, grid: PassGrid, begun: RtlState, state: RtlState, phase: RowPhase, expected: Expected
    ) -> RtlState:
        """Return the cycle model's state when a row tile's rows are fed and the next rows loaded, in parallel and each
        at its own pace."""
        weight_bytes = expected.weight_words * grid.weight_bytes
        return load_rows(grid, state, phase, phase.saved_bytes(grid), weight_bytes)

    def end(self, grid: PassGrid, state: RtlState) -> Times:
        """Return the cycle at which a pass ends: its last DDR write is answered and the next pass's first weights are
        loaded."""
        answered = 0 if grid.shape.to_chip else grid.ddr.write_latency
        emptied = state.emptied + (SUM_OUTPUT_LATENCY if grid.shape.added else OUTPUT_LATENCY) + answered
        return latest(emptied, state.weights_arrived) + PASS_END

    def program(self, grid: PassGrid) -> Times:
        """Return the cycles in which the engine only takes the program words of a pass, and does nothing else.

        A pass is read from DDR while the one before it runs. The first pass of a frame waits for its own words. It also
        waits for the second pass's words, because it loads the second pass's first weights.
        """
        if not grid.first:
            return grid.flat(float(PASS_START))
        fetched = grid.shape.pass_words + grid.ddr.read_latency + FETCH
        read = np.where(grid.tilings.next_steps > 0, 2 * fetched, fetched + 1)
        return grid.flat(PASS_START + read - UNCOUNTED_START)

    def least_fill(self, shape: LayerShape, rows: int, map_ports: int, row_words: int, ddr: DdrTiming) -> int:
        """Return a lower bound of the cycle at which a pass's first row tile is loaded (``_first_rows``)."""
        strides = ceil_div(rows_in(shape, rows, 1), shape.phases)
        groups = ceil_div(strides, row_strides_per_cycle(shape, rows) if shape.from_chip else map_ports)
        loads = groups * shape.phases * row_words
        if shape.from_chip:
            return 1 + loads + LOAD_TO_STEP
        padding = 0 if shape.stride == 1 else min(shape.pad_top, shape.phases) * row_words
        return COMMAND_CYCLES + ddr.read_latency + READ_FIFO_LATENCY + max(0, loads - padding) + LOAD_TO_STEP

    def least_drain(self, shape: LayerShape, rows: int, ddr: DdrTiming) -> int:
        """Return a lower bound of a pass's cycles from the array's last step to the pass's end.

        One cycle each is counted for a group of sums and for a word of results.
        """
        drained = MIN_SUMS + rows // 2 + 1 + MIN_RESULTS + 1 + OUTPUT_LATENCY + PASS_END
        return drained if shape.to_chip else drained + ddr.write_latency

    def least_weights(self, cycles: int, ddr: DdrTiming) -> int:
        """Return a lower bound of the cycles until the last of the weights that take ``cycles`` to read can be used."""
        return COMMAND_CYCLES + ddr.read_latency + READ_FIFO_LATENCY + cycles

    def least_program(self, ddr: DdrTiming) -> int:
        """Return a lower bound of ``program``, the cycles in which the engine only takes a pass."""
        return PASS_START

    def fabric(self, array: Array) -> Fabric:
        """Return the LUTs and FFs of the SystemVerilog engine's logic for ``array``."""
        return rtl_fabric(array)

    def sum_bits(self, shapes: Sequence[LayerShape]) -> int:
        """Return the accumulator bits that the largest possible sum of these layers needs."""
        return max(shape.sum_bits for shape in shapes)


def _first_rows(grid: PassGrid) -> Times:
    """Return the cycle of a pass at which the last word of the first row tile is loaded.

    The first weights and the requantisers are read from the same DDR in the meantime.
    """
    shape, rows = grid.shape, rows_of_tile(grid, 0)
    if shape.from_chip:
        return grid.flat(1 + rows.loads)
    stepped, padding = _rows_above(grid)
    first_word = stepped * np.asarray(grid.tilings.bursts, np.float64) + first_beat(grid)
    lost = shares_of(grid).lost_cycles(
        ROWS, rows.words, {WEIGHTS: weights_at_once(grid) * grid.weight_bytes, SAVES: grid.flat(0.0)}
    )
    return latest(
        1 + rows.loads,
        first_word + rows.loads - padding * grid.tilings.words,
        first_word + first_words(grid, rows.words) + lost,
        first_word + rows.bytes / grid.rate,
    )


def _rows_above(grid: PassGrid) -> tuple[Times, Times]:
    """Return two numbers of padding rows above the map: rows that a port steps over, and rows that are filled before
    data arrive.

    The first number is the rows that a port steps over before its first row of the map, in one cycle per piece. The
    second number is the rows whose places are filled before the first word arrives. With stride 1 it is 0. With a
    larger stride it is the number of rows in the first group of row strides that are padding for every port.
    """
    shape, ports = grid.shape, grid.arrays.map_ports
    if shape.stride == 1:
        return np.floor(shape.pad_top / ports), grid.flat(0.0)
    rows = np.clip(shape.pad_top - (ports - 1) * shape.stride, 0, shape.phases).astype(np.float64)
    return rows, rows
