"""The numbers of one pass, for every tiling of a layer on a grid of arrays. All parts of the model use them.

A pass is one column tile of one layer. Its numbers are numpy arrays of shape (arrays, tilings), so that one formula
prices all arrays of a geometry at once. Numbers that depend only on the arrays, or only on the tilings, broadcast.
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
from scheduler.systolic.shape import LayerShape, adds_from_ddr, row_strides_per_cycle, rows_by_port, rows_in, saved_rows

Times: TypeAlias = "npt.NDArray[np.float64]"
"""Cycles. If a name says so, bytes or words."""

V = TypeVar("V")

ENTER_READ = 4
"""Cycles in which the pipeline of a reading loop fills and drains, in addition to one cycle per word."""

ASK_TILE, ASK_PIECES = 1 + REQUEST_STAGES + ENTER_READ, 1 + OUTSTANDING + REQUEST_STAGES
"""Cycles to request the next tile of weights, and to request a group of pieces of rows (loader/read.h)."""

BURSTS_PER_GROUP = OUTSTANDING // 2
"""Bursts that write_rows requests in one group (saver/save.h)."""

PART_BUBBLE = 2
"""Cycles from the last beat of one part of a burst to the request that takes the part's place, and back."""

HELD_WORDS = BURST_WORDS * OUTSTANDING + FIFO_DEPTH
"""Words that a port's read buffer and its FIFO can hold together."""

REQUANTISER_BYTES, PROGRAM_WORD_BYTES = 16, 4
"""Bytes of one channel's requantiser, and of one word of the program (systolic/types.h, systolic/pass.h)."""


def ceiling(numbers: Times) -> Times:
    """Return an array of numbers, each rounded up, as floats."""
    return np.asarray(np.ceil(numbers), np.float64)


def latest(first: Times | float, *further: Times | float) -> Times:
    """Return the element-wise maximum of arrays of times, which is the latest time for each array and tiling."""
    result = np.asarray(first, np.float64)
    for times in further:
        result = np.maximum(result, times)
    return result


@dataclass(frozen=True, eq=False)
class RowLoad:
    """The work of loading the input rows of one row tile into the row buffer.

    Attributes:
        loads: Iterations of the load process.
        words: Words that the map port with the most words reads.
        bytes: Bytes that all map ports together read.
        padding: Iterations after the last word from DDR, for the padding rows below the map.
    """

    loads: Times
    words: Times
    bytes: Times
    padding: Times


@dataclass(frozen=True, eq=False)
class PassGrid:
    """One pass of a layer (the run over one column tile) on a grid of candidate arrays × tilings. Times are in cycles.

    Attributes:
        arrays: The candidate arrays, all of one geometry.
        shape: The sizes of the layer.
        tilings: The pass under each candidate tiling of the layer.
        ddr: The DDR's timing.
        first: Whether it is the first pass of the frame, which also has to wait for its own first weights.
    """

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
        """The numpy shape to which all numbers of the pass broadcast: (arrays, tilings)."""
        return np.broadcast_shapes(self.arrays.chunk.shape, self.arrays.weight_words.shape, self.tilings.width.shape)

    def flat(self, value: Times | float) -> Times:
        """Return a numpy array of shape (arrays, tilings) that holds ``value``."""
        return np.asarray(value + np.zeros(self.extent), np.float64)

    @cached_property
    def _known(self) -> dict[tuple[object, ...], Any]:
        return {}

    def cached(self, compute: Callable[..., V], *numbers: Times) -> V:
        """Return ``compute(self, *numbers)`` for this pass, from a cache if it was computed before with equal numbers.

        A pass has few kinds of tiles and chunks, and each kind occurs many times.
        """
        key = (compute, *((values.shape, values.tobytes()) for values in numbers))
        if key not in self._known:
            self._known[key] = compute(self, *numbers)
        known: V = self._known[key]
        return known

    def by_ports(self, number: Callable[[int], Times]) -> Times:
        """Return ``number(ports)`` for each array and tiling, with ``ports`` the number of map ports of that array."""
        values = self.flat(0.0)
        for ports in np.unique(self.arrays.map_ports):
            values = np.where(self.arrays.map_ports == ports, number(int(ports)), values)
        return values

    # --- the array

    @cached_property
    def feeds(self) -> Times:
        """Cycles in which the array computes one tile, which is a channel tile of a row tile."""
        return ceiling(self.tilings.width / self.shape.positions) * self.shape.position_steps

    @cached_property
    def columns(self) -> Times:
        """Output columns of the pass's column tile, after the pool or the upsample."""
        return ceiling(self.tilings.width / self.shape.pool_stride) * (self.shape.upscale * self.shape.spread)

    @cached_property
    def tail_columns(self) -> Times:
        """Output columns in the last chunk, the unit in which the output stage writes columns, of a column tile."""
        chunk = np.asarray(self.arrays.chunk, np.float64)
        return self.columns - (ceiling(self.columns / chunk) - 1) * chunk

    @property
    def column_cycles(self) -> float:
        """Cycles in which the array computes one output column of a tile."""
        return self.shape.steps * self.shape.column_positions / self.shape.positions

    # --- ports and memory

    @cached_property
    def rate(self) -> float:
        """Bytes per cycle that the DDR moves on all ports together."""
        return self.ddr.milli_bytes / 1000

    @cached_property
    def map_bytes(self) -> Times:
        """Bytes per cycle that all map ports together can read, or can write."""
        return np.asarray(self.arrays.map_ports * self.arrays.word_bytes, np.float64)

    @cached_property
    def weight_bytes(self) -> Times:
        """Bytes per cycle that all weight ports together can read."""
        return np.asarray(self.arrays.weight_ports * self.arrays.port_bytes, np.float64)

    @cached_property
    def pieces(self) -> Times:
        """Pieces of consecutive DDR words through which a map port steps in the pass. Padding rows count, although they
        are not read."""
        strides = ceiling((self.row_tiles * self.arrays.rows + self.shape.ahead) / self.arrays.map_ports)
        return strides * self.shape.phases * np.asarray(self.tilings.bursts, np.float64)

    @property
    def burst(self) -> Times:
        """Words per piece of a row, which a map port requests and reads together."""
        return np.asarray(self.tilings.words / self.tilings.bursts)

    @cached_property
    def burst_pace(self) -> Times:
        """Cycles per word of a port that reads map rows, as limited by the DDR's read latency.

        A port can have OUTSTANDING requests open. With short bursts they do not hide the latency.
        """
        parts = ceiling(self.burst / BURST_WORDS)
        return latest(1, (parts * self.ddr.read_latency + self.burst) / (OUTSTANDING * self.burst))

    @cached_property
    def request_pace(self) -> Times:
        """Cycles per word of read_rows, the C++ process that alternates between DDR requests and reads of map rows.

        The first two groups of pieces are requested before the first word is read, and are not counted.
        """
        groups = latest(0, ceiling(self.pieces / OUTSTANDING) - 2)
        return 1 + groups * (ASK_PIECES + ENTER_READ) / (self.pieces * self.burst)

    @cached_property
    def row_pace(self) -> Times:
        """Cycles per word of a port that reads map rows, by the slower of request time and read latency."""
        return latest(self.request_pace, self.burst_pace)

    @cached_property
    def weight_pace(self) -> Times:
        """Cycles per word of a port that reads weights, as limited by the DDR's rate and by the latency of OUTSTANDING
        bursts."""
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
        """Words that each weight port reads for one step, which is one cycle of the array."""
        return np.asarray(self.arrays.port_beats, np.float64)

    @cached_property
    def streams(self) -> npt.NDArray[np.bool_]:
        """Return whether the pass reads the weights from DDR again for every row tile, per array and tiling."""
        return np.asarray((self.tilings.weights_resident == 0) & (self.tilings.inputs_resident == 0))

    @cached_property
    def tiles_loaded(self) -> Times:
        """The number of weight tiles that the pass reads for itself, not for the next pass (loader/read.h,
        plan_weights)."""
        once = self.channel_tiles + int(self.first) - 1
        return np.where(self.streams, once + (self.row_tiles - 1) * self.channel_tiles, float(once))

    @cached_property
    def weight_lead(self) -> Times:
        """Cycles by which the words of a weight tile may arrive from DDR before feed_weights starts to load the tile.

        The words fill the port's buffer and wait there until the phase begins. Then feed_weights takes words. The port
        requests the next burst after a whole burst, less FIFO_DEPTH words that the FIFO holds, was taken from the
        buffer. The next burst arrives one read latency later:

            buffer     full ────┐ one burst is taken ┌ the next burst arrives
            request             └─ read latency ─────┘
        """
        refill = self.ddr.read_latency + max(0, BURST_WORDS - FIFO_DEPTH)
        return latest(0, OUTSTANDING * BURST_WORDS * self.weight_pace - refill)

    # --- rows

    @cached_property
    def first_rows(self) -> int:
        """The number of map rows that the pass's first row tile reads, without padding rows."""
        return rows_in(self.shape, self.arrays.rows, 1)

    def loads_of(self, strides: int) -> Times:
        """Return the iterations in which load fills the row buffer with ``strides`` row strides (groups of ``stride``
        input rows).

        One row stride per map port is loaded at the same time. From a map buffer it is one per bank that can be moved
        together.
        """
        rows = self.arrays.rows
        strides_per_cycle = row_strides_per_cycle(self.shape, rows) if self.shape.from_chip else self.arrays.map_ports
        return ceiling(strides / np.asarray(strides_per_cycle, np.float64)) * self.shape.phases * self.tilings.words

    @cached_property
    def prefetched_words(self) -> Times:
        """Words of rows that a map port reads before they are needed, which are held by its open bursts and its
        FIFO."""
        return OUTSTANDING * np.minimum(self.burst, BURST_WORDS) + FIFO_DEPTH

    @cached_property
    def loads(self) -> Times:
        """Iterations in which load fills the row buffer with the rows of one row tile after the first."""
        return self.loads_of(self.arrays.rows)

    @cached_property
    def first_bytes(self) -> Times:
        """Bytes of the input map that are read from DDR for the first row tile, 0 if the map is on chip."""
        rows = 0 if self.shape.from_chip else self.first_rows
        return np.asarray(rows * self.tilings.words * self.arrays.word_bytes, np.float64)

    @cached_property
    def later_bytes(self) -> Times:
        """Bytes of the input map that are read from DDR for all row tiles after the first, 0 if the map is on chip."""
        shape, rows = self.shape, self.arrays.rows
        later = 0 if shape.from_chip else rows_in(shape, rows, self.row_tiles) - self.first_rows
        return np.asarray(later * self.tilings.words * self.arrays.word_bytes, np.float64)

    @cached_property
    def no_rows(self) -> RowLoad:
        """The work of the load process while no input rows are loaded, which is zero."""
        zero = self.flat(0.0)
        return RowLoad(zero, zero, zero, zero)

    def rows_after(self, index: int) -> RowLoad:
        """Return the work of loading the next row tile's input rows, which is done while row tile ``index`` is
        computed.

        Rows from a map buffer take iterations, but no words of a port.
        """
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
    def accepted_words(self) -> Times:
        """Words of results that a writing port accepts before the DDR has moved them (saver/save.h, write_rows).

        The port accepts the words of one group of bursts while it awaits the responses to the group before. The FIFO in
        front of the port holds further words.
        """
        burst = np.minimum(self.columns, self.arrays.chunk) * self.shape.value_words
        answered = BURSTS_PER_GROUP * burst - self.ddr.write_latency - PART_BUBBLE
        return latest(0, np.minimum(answered, BURST_WORDS * OUTSTANDING)) + FIFO_DEPTH

    def saved(self, tile: int) -> int:
        """Return the number of output rows that row tile ``tile`` writes, after the pool or the upsample."""
        return saved_rows(self.shape, self.arrays.rows, tile)

    def blocks(self, tile: int) -> int:
        """Return the number of words (channel blocks) that channel tile ``tile`` writes per output pixel.

        A block counts also if the tile writes only a part of its lanes. The last tile may write fewer blocks.
        """
        columns, lanes = self.arrays.columns, self.arrays.lanes
        every = ceil_div(self.shape.filters, lanes)
        return min(every, ceil_div((tile + 1) * columns, lanes)) - tile * columns // lanes

    def column_bytes(self, saved: int, blocks: int) -> int:
        """Return the DDR bytes that a tile writes (and a residual add reads) per output column.

        A residual add from DDR reads the same number of bytes as the tile's results have.

        Args:
            saved: Output rows of the tile.
            blocks: Channel blocks of the tile.
        """
        words = saved * blocks * self.shape.value_words
        return words * self.arrays.word_bytes * (int(not self.shape.to_chip) + int(adds_from_ddr(self.shape)))
