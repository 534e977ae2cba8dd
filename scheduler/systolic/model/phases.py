"""The data that the loop over the tiles of a pass gives to an engine: tiles, phases of rows and phases of weights.

In a phase of rows, the process that loads rows feeds the array with the rows of one row tile, and loads the rows of the
next one. A phase of weights is the same for the weights of one channel tile. The loop order decides which phase
contains the other:

    weights resident, or streamed     rows     │ row tile 0           │ row tile 1           │
                                      weights  │ 0 │ 1 │ 2 │          │ 0 │ 1 │ 2 │          │
    inputs resident                   weights  │ channel tile 0       │ channel tile 1       │
                                      rows     │ 0 │ 1 │ 2 │          │ 0 │ 1 │ 2 │          │
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.hardware.arithmetic import ceil_div
from scheduler.systolic.model.grid import PassGrid, RowLoad, Times


@dataclass(frozen=True, eq=False)
class TileTraffic:
    """The data that move between chip and DDR while the array computes one channel tile of one row tile.

    Attributes:
        saved_rows: Output rows of the tile, after the pool or the upsample.
        blocks: Words (channel blocks) that the tile writes per output pixel.
        row_bytes: Bytes of input rows that are read from DDR during the tile.
        weight_bytes: Bytes of weights that are read from DDR during the tile.
        word_cycles: Cycles in which the DDR moves a word of each writing port, as expected before the tile.
        last: Whether it is the last tile of the pass, after which all pipelines drain.
    """

    saved_rows: int
    blocks: int
    row_bytes: Times
    weight_bytes: Times
    word_cycles: Times
    last: bool


@dataclass(frozen=True, eq=False)
class RowPhase:
    """A phase of rows in the cycle model: the array computes a row tile while the input rows of the next one are
    loaded.

    Attributes:
        row_tile: The index of the row tile.
        channel_tile: The index of the only channel tile that is computed, or None if all of them are.
        start: Time at which the phase's first input can be fed to the array, in cycles.
        feeds: Steps (cycles) that the array computes.
        rows: The work of loading the next row tile's rows.
        weight_words: Words that each weight port reads during the phase.
    """

    row_tile: int
    channel_tile: int | None
    start: Times
    feeds: Times
    rows: RowLoad
    weight_words: Times

    def saved_bytes(self, grid: PassGrid) -> Times:
        """Return the DDR bytes of results that the phase's tiles write, plus the residual map's bytes that they
        read."""
        every = ceil_div(grid.shape.filters, grid.arrays.lanes)
        blocks = every if self.channel_tile is None else grid.blocks(self.channel_tile)
        return grid.columns * grid.column_bytes(grid.saved(self.row_tile), blocks)


@dataclass(frozen=True, eq=False)
class Expected:
    """The DDR traffic that an engine's cycle model expects while a row tile is computed, before the first of its tiles.

    Attributes:
        row_bytes: Bytes of rows that are read during each tile.
        late_row_bytes: Bytes of rows that are read after the last tile.
        weight_words: Words that each weight port reads during the phase.
        word_cycles: Cycles in which the DDR moves a word of each port that writes.
    """

    row_bytes: Times
    late_row_bytes: Times | float
    weight_words: Times
    word_cycles: Times


@dataclass(frozen=True, eq=False)
class WeightPhase:
    """A phase of weights in the cycle model: one channel tile's weights are fed to the array while the next weights are
    loaded.

    Attributes:
        row_tiles: The indices of the row tiles that the weights are fed for.
        channel_tile: The index of the channel tile.
        start: Time at which the weights of its first step can be fed, in cycles.
        feeds: Steps (cycles) that the array computes.
        words: Words that each weight port reads.
        next_pass: Whether these words are the next pass's first weights.
        row_bytes: Bytes of rows that are read during the phase.
    """

    row_tiles: range
    channel_tile: int
    start: Times
    feeds: Times
    words: Times
    next_pass: bool
    row_bytes: Times

    def saved_bytes(self, grid: PassGrid) -> Times:
        """Return the DDR bytes of results that the phase's tiles write, plus the residual map's bytes that they
        read."""
        blocks = grid.blocks(self.channel_tile)
        return grid.columns * sum(grid.column_bytes(grid.saved(row_tile), blocks) for row_tile in self.row_tiles)
