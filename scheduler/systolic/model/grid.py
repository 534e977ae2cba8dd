"""Strips of one layer that cost the same, on a grid of arrays: the numbers that every part of a pass is priced with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import BURST_WORDS, OUTSTANDING, DdrTiming, milli_cycles
from scheduler.systolic.area.resources import FIFO_DEPTH
from scheduler.systolic.model.arrays import ArrayGrid, Numbers
from scheduler.systolic.shape import LayerShape

Times: TypeAlias = "npt.NDArray[np.float64]"

REQUEST_STAGES = 64
"""Stages between a request and a load of the same loop (m_axi ``latency``)."""

PART_BUBBLE = 2
"""From the last beat of a part to the request that takes its place, and back."""

HELD_WORDS = BURST_WORDS * OUTSTANDING + FIFO_DEPTH
"""Words that a port and its FIFO hold."""

REQUANTISER_BYTES, PASS_BYTES = 16, 256
"""One channel's requantiser; one pass of the program (include/types.h, include/pass.h)."""


def up(numbers: Times) -> Times:
    return np.asarray(np.ceil(numbers), np.float64)


def most(first: Times | float, *others: Times | float) -> Times:
    result = np.asarray(first, np.float64)
    for other in others:
        result = np.maximum(result, other)
    return result


def rows_by_port(shape: LayerShape, rows: int, tiles: int, ports: int) -> list[int]:
    """include/read.h, row_exists: map rows among the row strides that ``tiles`` tiles read, which go round."""
    strides = tiles * rows + shape.ahead
    inside = [0] * ports
    for phase in range(shape.phases):
        low = max(0, ceil_div(shape.pad_top - phase, shape.stride))
        high = max(low, min(strides, ceil_div(shape.pad_top + shape.in_height - phase, shape.stride)))
        for port in range(ports):
            inside[port] += ceil_div(high - port, ports) - ceil_div(low - port, ports)
    return inside


def rows_in(shape: LayerShape, rows: int, tiles: int) -> int:
    """The same of all ports."""
    return sum(rows_by_port(shape, rows, tiles, 1))


@dataclass(frozen=True, eq=False)
class PassTilings:
    """Strips that cost the same, [tilings]. width: columns; words: of a row, in so many bursts; next_steps: of the
    tile that is loaded for the pass after; the flags are 0 or 1."""

    width: Numbers
    words: Numbers
    bursts: Numbers
    next_steps: Numbers
    resident: Numbers
    inputs_resident: Numbers
    overlap: Numbers

    def pick(self, chosen: npt.NDArray[np.bool_]) -> PassTilings:
        return PassTilings(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))


@dataclass(frozen=True, eq=False)
class Rows:
    """Of a row tile, as they come. loads: iterations of load; words: of the port with most of them; bytes: of all
    ports; padding: iterations after the last word, for rows below the map."""

    loads: Times
    words: Times
    bytes: Times
    padding: Times


@dataclass(frozen=True, eq=False)
class PassGrid:
    """A pass in numbers that broadcast to [arrays, tilings]. Times are cycles, rates bytes a cycle.

    first: of the frame, so that its own first weights have to arrive too.
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
        return np.broadcast_shapes(self.arrays.chunk.shape, self.arrays.weight_words.shape, self.tilings.width.shape)

    def flat(self, value: Times | float) -> Times:
        return np.asarray(value + np.zeros(self.extent), np.float64)

    def by_ports(self, number: Callable[[int], Times]) -> Times:
        """What ``number`` says of as many map ports as an array has."""
        found = self.flat(0.0)
        for ports in np.unique(self.arrays.map_ports):
            found = np.where(self.arrays.map_ports == ports, number(int(ports)), found)
        return found

    # --- the array

    @cached_property
    def feeds(self) -> Times:
        """Cycles in which the array takes the positions of one tile."""
        return up(self.tilings.width / self.shape.positions) * self.shape.steps

    @cached_property
    def columns(self) -> Times:
        """Columns that leave a tile."""
        return up(self.tilings.width / self.shape.pool_stride)

    @property
    def column_cycles(self) -> float:
        """Cycles of the array that one of them takes."""
        return self.shape.steps * self.shape.pool_stride / self.shape.positions

    # --- ports and memory

    @cached_property
    def rate(self) -> float:
        return self.ddr.milli_bytes / 1000

    @cached_property
    def map_bytes(self) -> Times:
        """What the ports of maps move a cycle in one direction."""
        return np.asarray(self.arrays.map_ports * self.arrays.word_bytes, np.float64)

    @cached_property
    def weight_bytes(self) -> Times:
        return np.asarray(self.arrays.weight_ports * self.arrays.port_bytes, np.float64)

    @cached_property
    def row_pace(self) -> Times:
        """Cycles a word of a port that reads rows: each of the bursts that are on their tiling waits for its data."""
        burst = self.tilings.words / self.tilings.bursts
        parts = up(burst / BURST_WORDS)
        return most(1, (parts * self.ddr.read_latency + burst) / (OUTSTANDING * burst))

    @cached_property
    def weight_pace(self) -> Times:
        """Cycles a word of the weight ports: a word a cycle, the DDR, and what is on its tiling at most."""
        return self._weight_pace(self.step_words * self.shape.steps)

    @cached_property
    def next_weight_pace(self) -> Times:
        return self._weight_pace(self.step_words * self.tilings.next_steps)

    def _weight_pace(self, tile: Times) -> Times:
        arrays = self.arrays
        milli = sum(
            np.where(
                (arrays.weight_ports == ports) & (arrays.port_bytes == wide),
                milli_cycles(((ports, int(wide), BURST_WORDS),), self.ddr.milli_bytes)[0],
                0,
            )
            for ports in (1, 2, 4)
            for wide in np.unique(arrays.port_bytes)
        )
        part = np.clip(tile, 1, BURST_WORDS)
        return most(np.asarray(milli) / 1000, (self.ddr.read_latency + part) / (OUTSTANDING * part))

    # --- weights

    @cached_property
    def step_words(self) -> Times:
        """Words of a weight port for one step."""
        return np.asarray(self.arrays.port_beats, np.float64)

    @cached_property
    def streams(self) -> npt.NDArray[np.bool_]:
        """Where weights cross again for every row tile."""
        return np.asarray((self.tilings.resident == 0) & (self.tilings.inputs_resident == 0))

    @cached_property
    def tiles_loaded(self) -> Times:
        """include/read.h, plan_weights: tiles that the pass itself loads."""
        once = self.channel_tiles + int(self.first) - 1
        return np.where(self.streams, once + (self.row_tiles - 1) * self.channel_tiles, float(once))

    @cached_property
    def weights_ahead(self) -> Times:
        """Cycles by which weights may come before their phase: two tiles are asked for, and what ports hold."""
        tile = (self.shape.steps * self.step_words + REQUEST_STAGES + FIFO_DEPTH) * self.weight_pace
        asked = np.minimum(self.next_weights_ahead, tile - self.ddr.read_latency)
        return np.where(self.tiles_loaded + (self.tilings.next_steps > 0) > 2, asked, self.next_weights_ahead)

    @cached_property
    def next_weights_ahead(self) -> Times:
        """The same of the next pass's tile, after which nothing is asked for: what a port holds that stood still, full.
        It goes on when one part has left it, but for what the FIFO takes, and that is felt a latency later."""
        left = self.ddr.read_latency + max(0, BURST_WORDS - FIFO_DEPTH)
        return most(0, OUTSTANDING * BURST_WORDS * self.weight_pace - left)

    # --- rows

    @cached_property
    def first_rows(self) -> int:
        return rows_in(self.shape, self.arrays.rows, 1)

    @cached_property
    def rows_read(self) -> int:
        return rows_in(self.shape, self.arrays.rows, self.row_tiles)

    def loads_of(self, strides: int) -> Times:
        """include/load.h: iterations that load so many row strides: one a port, or a bank from a map buffer."""
        together = self.arrays.rows if self.shape.from_chip else self.arrays.map_ports
        return up(strides / np.asarray(together, np.float64)) * self.shape.phases * self.tilings.words

    @cached_property
    def read_ahead(self) -> Times:
        """Words of rows that a port and its FIFO hold."""
        return OUTSTANDING * np.minimum(self.tilings.words / self.tilings.bursts, BURST_WORDS) + FIFO_DEPTH

    @cached_property
    def loads(self) -> Times:
        """The same of a tile after the first."""
        return self.loads_of(self.arrays.rows)

    @cached_property
    def first_bytes(self) -> Times:
        """Of the rows of the first tile that DDR gives."""
        rows = 0 if self.shape.from_chip else self.first_rows
        return np.asarray(rows * self.tilings.words * self.arrays.word_bytes, np.float64)

    @cached_property
    def no_rows(self) -> Rows:
        none = self.flat(0.0)
        return Rows(none, none, none, none)

    def rows_after(self, index: int) -> Rows:
        """What comes while row tile ``index`` is computed: the next one's rows. A map buffer's take no words."""
        if index + 1 >= self.row_tiles:
            return self.no_rows
        shape, rows = self.shape, self.arrays.rows
        read = 0 if shape.from_chip else rows_in(shape, rows, index + 2) - rows_in(shape, rows, index + 1)
        loads = self.flat(self.loads)
        if read == 0:
            return replace(self.no_rows, loads=loads)

        def slowest(ports: int) -> Times:
            before, after = (max(rows_by_port(shape, rows, index + tiles, ports)) for tiles in (1, 2))
            return np.asarray((after - before) * self.tilings.words, np.float64)

        return Rows(
            loads,
            self.by_ports(slowest),
            self.flat(0.0) + read * self.tilings.words * self.arrays.word_bytes,
            loads - self.loads_of(ceil_div(read, shape.phases)),
        )

    # --- results

    @cached_property
    def written_ahead(self) -> Times:
        """include/save.h, write_rows: words that a port is given before the DDR has moved them. Only so many bursts
        may be without an answer, the adapter holds so many words, and the FIFO before it some more."""
        burst = np.minimum(self.columns, self.arrays.chunk) * self.shape.value_words
        answered = (OUTSTANDING - 1) * burst - self.ddr.write_latency - PART_BUBBLE
        return most(0, np.minimum(answered, BURST_WORDS * OUTSTANDING)) + FIFO_DEPTH

    def saved(self, tile: int) -> int:
        """include/pool.h, rows_of_tile: rows that leave a row tile."""
        shape, rows = self.shape, self.arrays.rows
        inside, last = min(rows, shape.out_height - tile * rows), tile == self.row_tiles - 1
        if shape.pool_size == 1:
            return inside
        if shape.pool_stride == 1:
            return inside + (tile > 0) - (not last)
        kept = tile * rows % 2
        return (kept + inside + last) // 2

    def blocks(self, tile: int) -> int:
        """Words of the map that a channel tile fills: the last one fewer."""
        whole = self.arrays.columns // self.arrays.lanes
        every = ceil_div(self.shape.filters, self.arrays.lanes)
        return every - (self.channel_tiles - 1) * whole if tile == self.channel_tiles - 1 else whole

    def column_bytes(self, saved: int, blocks: int) -> int:
        """What DDR takes of a column."""
        return 0 if self.shape.to_chip else saved * blocks * self.shape.value_words * self.arrays.word_bytes
