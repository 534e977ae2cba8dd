"""One pass in numbers, for every tiling of a layer on a grid of arrays: what all parts of the model are computed from.

A pass is one column tile of one layer. Its numbers are numpy arrays of shape [arrays, tilings], so that one formula
prices a whole geometry at once; numbers that depend on the arrays alone, or on the tilings alone, broadcast.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import BURST_WORDS, OUTSTANDING, REQUEST_STAGES, DdrTiming, milli_cycles
from scheduler.systolic.engines.hls.fifos import FIFO_DEPTH
from scheduler.systolic.model.arrays import ArrayGrid, PassTilings
from scheduler.systolic.shape import LayerShape, adds_from_ddr, moved_together, rows_by_port, rows_in, saved_rows

Times: TypeAlias = "npt.NDArray[np.float64]"
"""Cycles, or bytes and words where a name says so."""

V = TypeVar("V")

ENTER_READ = 4
"""Cycles beside its words of a loop that reads: entered, and drained."""

ASK_TILE, ASK_PIECES = 1 + REQUEST_STAGES + ENTER_READ, 1 + OUTSTANDING + REQUEST_STAGES
"""Cycles in which the next tile of weights is asked for, a group of pieces of rows (loader/read.h)."""

BURSTS_TOGETHER = OUTSTANDING // 2
"""saver/save.h, write_rows: bursts that are requested in one loop."""

PART_BUBBLE = 2
"""From the last beat of a part to the request that takes its place, and back."""

HELD_WORDS = BURST_WORDS * OUTSTANDING + FIFO_DEPTH
"""Words that the buffer of a port and its FIFO hold."""

REQUANTISER_BYTES, PROGRAM_WORD_BYTES = 16, 4
"""One channel's requantiser; one word of the program (systolic/types.h, systolic/pass.h)."""


def ceiling(numbers: Times) -> Times:
    """Rounded up, as floats."""
    return np.asarray(np.ceil(numbers), np.float64)


def latest(first: Times | float, *further: Times | float) -> Times:
    """The largest of each place: of times, the latest."""
    result = np.asarray(first, np.float64)
    for times in further:
        result = np.maximum(result, times)
    return result


@dataclass(frozen=True, eq=False)
class RowLoad:
    """The rows of a row tile, as they are loaded. loads: iterations of load. words: of the port with most of them;
    bytes: of all ports. padding: iterations after the last word, for rows below the map."""

    loads: Times
    words: Times
    bytes: Times
    padding: Times


@dataclass(frozen=True, eq=False)
class PassGrid:
    """A pass on a grid of arrays. Times are cycles, rates bytes a cycle. first: whether it is the frame's first pass,
    whose own first weights have to arrive too."""

    arrays: ArrayGrid
    shape: LayerShape
    tilings: PassTilings
    ddr: DdrTiming
    first: bool

    @cached_property
    def row_tiles(self) -> int:
        return ceil_div(self.shape.out_height, self.arrays.rows)

    @cached_property
    def channel_tiles(self) -> int:
        return ceil_div(self.shape.filters, self.arrays.columns)

    @cached_property
    def extent(self) -> tuple[int, ...]:
        return np.broadcast_shapes(self.arrays.chunk.shape, self.arrays.weight_words.shape, self.tilings.width.shape)

    def flat(self, value: Times | float) -> Times:
        """``value`` in every place of the grid."""
        return np.asarray(value + np.zeros(self.extent), np.float64)

    @cached_property
    def _known(self) -> dict[tuple[object, ...], Any]:
        return {}

    def once(self, compute: Callable[..., V], *numbers: Times) -> V:
        """``compute`` of this pass and these numbers: looked up where they are equal to earlier ones. Tiles and chunks
        of a pass are of few kinds, and each comes again and again."""
        key = (compute, *((values.shape, values.tobytes()) for values in numbers))
        if key not in self._known:
            self._known[key] = compute(self, *numbers)
        known: V = self._known[key]
        return known

    def by_ports(self, number: Callable[[int], Times]) -> Times:
        """``number`` of as many map ports as each array has."""
        values = self.flat(0.0)
        for ports in np.unique(self.arrays.map_ports):
            values = np.where(self.arrays.map_ports == ports, number(int(ports)), values)
        return values

    # --- the array

    @cached_property
    def feeds(self) -> Times:
        """Cycles in which the array takes the positions of one tile."""
        return ceiling(self.tilings.width / self.shape.positions) * self.shape.position_steps

    @cached_property
    def columns(self) -> Times:
        """Columns that leave a tile, after the pool or the upsample."""
        return ceiling(self.tilings.width / self.shape.pool_stride) * (self.shape.upscale * self.shape.spread)

    @cached_property
    def tail_columns(self) -> Times:
        """Columns of the last chunk of a tile."""
        chunk = np.asarray(self.arrays.chunk, np.float64)
        return self.columns - (ceiling(self.columns / chunk) - 1) * chunk

    @property
    def column_cycles(self) -> float:
        """Cycles of the array for one of these columns."""
        return self.shape.steps * self.shape.column_positions / self.shape.positions

    # --- ports and memory

    @cached_property
    def rate(self) -> float:
        """Bytes that the DDR moves a cycle."""
        return self.ddr.milli_bytes / 1000

    @cached_property
    def map_bytes(self) -> Times:
        """Bytes that the ports of maps move a cycle, in one direction."""
        return np.asarray(self.arrays.map_ports * self.arrays.word_bytes, np.float64)

    @cached_property
    def weight_bytes(self) -> Times:
        """Bytes that the weight ports give a cycle."""
        return np.asarray(self.arrays.weight_ports * self.arrays.port_bytes, np.float64)

    @cached_property
    def pieces(self) -> Times:
        """Pieces of rows that a port steps over in the pass, those of padding too."""
        strides = ceiling((self.row_tiles * self.arrays.rows + self.shape.ahead) / self.arrays.map_ports)
        return strides * self.shape.phases * np.asarray(self.tilings.bursts, np.float64)

    @property
    def burst(self) -> Times:
        """Words of a piece of a row."""
        return np.asarray(self.tilings.words / self.tilings.bursts)

    @cached_property
    def burst_pace(self) -> Times:
        """Cycles a word of a port that reads rows: short bursts wait for the latency of OUTSTANDING before them."""
        parts = ceiling(self.burst / BURST_WORDS)
        return latest(1, (parts * self.ddr.read_latency + self.burst) / (OUTSTANDING * self.burst))

    @cached_property
    def asked_pace(self) -> Times:
        """Cycles a word of read_rows, which asks for pieces between those that it reads: all but two groups of them."""
        groups = latest(0, ceiling(self.pieces / OUTSTANDING) - 2)
        return 1 + groups * (ASK_PIECES + ENTER_READ) / (self.pieces * self.burst)

    @cached_property
    def row_pace(self) -> Times:
        """Cycles a word of a port, by both."""
        return latest(self.asked_pace, self.burst_pace)

    @cached_property
    def weight_pace(self) -> Times:
        """Cycles a word of a weight port: by the DDR, by the latency of the bursts that may be on their way."""
        arrays = self.arrays
        milli = sum(
            np.where(
                (arrays.weight_ports == ports) & (arrays.port_bytes == width),
                milli_cycles(((ports, int(width), BURST_WORDS),), self.ddr.milli_bytes)[0],
                0,
            )
            for ports in (1, 2, 4)
            for width in np.unique(arrays.port_bytes)
        )
        answered = (self.ddr.read_latency + BURST_WORDS) / (OUTSTANDING * BURST_WORDS)
        return latest(1, np.asarray(milli) / 1000, answered)

    # --- weights

    @cached_property
    def step_words(self) -> Times:
        """Words of a weight port for one step."""
        return np.asarray(self.arrays.port_beats, np.float64)

    @cached_property
    def streams(self) -> npt.NDArray[np.bool_]:
        """Whether weights cross again for every row tile."""
        return np.asarray((self.tilings.resident == 0) & (self.tilings.inputs_resident == 0))

    @cached_property
    def tiles_loaded(self) -> Times:
        """loader/read.h, plan_weights: tiles of weights that the pass loads for itself."""
        once = self.channel_tiles + int(self.first) - 1
        return np.where(self.streams, once + (self.row_tiles - 1) * self.channel_tiles, float(once))

    @cached_property
    def weights_ahead(self) -> Times:
        """Cycles by which the words of a tile may come before the phase that loads them.

        They fill the port's buffer and wait there until the phase begins. When feed_weights then takes words, the
        port asks for the next burst only after a whole burst has left the buffer (less what the FIFO holds already),
        and the answer takes a read latency:

            buffer     full ────┐ one burst leaves   ┌ the next burst arrives
            request             └─ read latency ─────┘
        """
        refill = self.ddr.read_latency + max(0, BURST_WORDS - FIFO_DEPTH)
        return latest(0, OUTSTANDING * BURST_WORDS * self.weight_pace - refill)

    # --- rows

    @cached_property
    def first_rows(self) -> int:
        """Map rows of the first row tile."""
        return rows_in(self.shape, self.arrays.rows, 1)

    def loads_of(self, strides: int) -> Times:
        """loader/load.h: iterations that load so many row strides. Those of all ports load at once; from a map buffer
        those of all banks."""
        rows = self.arrays.rows
        together = moved_together(self.shape, rows) if self.shape.from_chip else self.arrays.map_ports
        return ceiling(strides / np.asarray(together, np.float64)) * self.shape.phases * self.tilings.words

    @cached_property
    def read_ahead(self) -> Times:
        """Words of rows that a port asks for ahead: those of the bursts on their way, and a FIFO."""
        return OUTSTANDING * np.minimum(self.burst, BURST_WORDS) + FIFO_DEPTH

    @cached_property
    def loads(self) -> Times:
        """Iterations that load a row tile after the first."""
        return self.loads_of(self.arrays.rows)

    @cached_property
    def first_bytes(self) -> Times:
        """Bytes that the DDR gives for the first row tile."""
        rows = 0 if self.shape.from_chip else self.first_rows
        return np.asarray(rows * self.tilings.words * self.arrays.word_bytes, np.float64)

    @cached_property
    def later_bytes(self) -> Times:
        """Bytes that the DDR gives for all row tiles after the first."""
        shape, rows = self.shape, self.arrays.rows
        later = 0 if shape.from_chip else rows_in(shape, rows, self.row_tiles) - self.first_rows
        return np.asarray(later * self.tilings.words * self.arrays.word_bytes, np.float64)

    @cached_property
    def no_rows(self) -> RowLoad:
        """Nothing is loaded."""
        zero = self.flat(0.0)
        return RowLoad(zero, zero, zero, zero)

    def rows_after(self, index: int) -> RowLoad:
        """What is loaded while row tile ``index`` is computed: the rows of the next one. From a map buffer they take
        iterations, and no words."""
        if index + 1 >= self.row_tiles:
            return self.no_rows
        shape, rows = self.shape, self.arrays.rows
        read = 0 if shape.from_chip else rows_in(shape, rows, index + 2) - rows_in(shape, rows, index + 1)
        loads = self.flat(self.loads)
        if read == 0:
            return replace(self.no_rows, loads=loads)

        def slowest(ports: int) -> Times:
            loaded, loading = (max(rows_by_port(shape, rows, index + tiles, ports)) for tiles in (1, 2))
            return np.asarray((loading - loaded) * self.tilings.words, np.float64)

        return RowLoad(
            loads,
            self.by_ports(slowest),
            self.flat(0.0) + read * self.tilings.words * self.arrays.word_bytes,
            loads - self.loads_of(ceil_div(read, shape.phases)),
        )

    # --- results

    @cached_property
    def written_ahead(self) -> Times:
        """saver/save.h, write_rows: words that a port takes before the DDR has moved them. Those of the bursts that
        are requested together, while the answers to the ones before are awaited, and the FIFO before it holds more."""
        burst = np.minimum(self.columns, self.arrays.chunk) * self.shape.value_words
        answered = BURSTS_TOGETHER * burst - self.ddr.write_latency - PART_BUBBLE
        return latest(0, np.minimum(answered, BURST_WORDS * OUTSTANDING)) + FIFO_DEPTH

    def saved(self, tile: int) -> int:
        """Rows that leave a row tile."""
        return saved_rows(self.shape, self.arrays.rows, tile)

    def blocks(self, tile: int) -> int:
        """Words of a position of the map that a channel tile fills, or half of which it does; the last one may fill
        fewer."""
        columns, lanes = self.arrays.columns, self.arrays.lanes
        every = ceil_div(self.shape.filters, lanes)
        return min(every, ceil_div((tile + 1) * columns, lanes)) - tile * columns // lanes

    def column_bytes(self, saved: int, blocks: int) -> int:
        """Bytes that a column writes to DDR, and reads where as much is added."""
        words = saved * blocks * self.shape.value_words
        return words * self.arrays.word_bytes * (int(not self.shape.to_chip) + int(adds_from_ddr(self.shape)))
