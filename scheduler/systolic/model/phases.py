"""What the loop over the tiles of a pass tells an engine: tiles, and phases of rows and of weights.

A phase of rows is the time in which the process that loads rows feeds the array with those of one row tile and loads
the next ones; a phase of weights is the same for one tile of weights. Which phase is inside of which depends on the
loop order:

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
    """What moves during one channel tile of one row tile.

    Attributes:
        saved_rows: Rows that leave the tile.
        blocks: Words of a position that it writes.
        row_bytes: Bytes of rows that are read meanwhile.
        weight_bytes: Bytes of weights that are read meanwhile.
        word_cycles: Cycles in which the DDR moves a word of each port that writes, as far as they are known before.
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
    """A phase of rows: the array takes a row tile while the next rows come.

    Attributes:
        row_tile: The number of the row tile.
        channel_tile: The number of the only channel tile that is computed; None if all are.
        start: When its first row can be fed.
        feeds: Steps that the array takes.
        rows: The rows that are loaded.
        weight_words: Words that each weight port reads meanwhile.
    """

    row_tile: int
    channel_tile: int | None
    start: Times
    feeds: Times
    rows: RowLoad
    weight_words: Times

    def saved_bytes(self, grid: PassGrid) -> Times:
        """Return the bytes that its tiles write."""
        every = ceil_div(grid.shape.filters, grid.arrays.lanes)
        blocks = every if self.channel_tile is None else grid.blocks(self.channel_tile)
        return grid.columns * grid.column_bytes(grid.saved(self.row_tile), blocks)


@dataclass(frozen=True, eq=False)
class Expected:
    """What an engine expects of a phase of rows before its first tile.

    Attributes:
        row_bytes: Bytes of rows that are read during each tile.
        late_row_bytes: Bytes of rows that are read after the last tile.
        weight_words: Words that each weight port reads meanwhile.
        word_cycles: Cycles in which the DDR moves a word of each port that writes.
    """

    row_bytes: Times
    late_row_bytes: Times | float
    weight_words: Times
    word_cycles: Times


@dataclass(frozen=True, eq=False)
class WeightPhase:
    """A phase of weights: a tile of weights is fed while words of another one come.

    Attributes:
        row_tiles: The numbers of the row tiles that it is fed for.
        channel_tile: The number of the channel tile.
        start: When its first step can be fed.
        feeds: Steps that the array takes.
        words: Words that each weight port reads.
        next_pass: Whether these are the next pass's first tile.
        row_bytes: Bytes of rows that are read meanwhile.
    """

    row_tiles: range
    channel_tile: int
    start: Times
    feeds: Times
    words: Times
    next_pass: bool
    row_bytes: Times

    def saved_bytes(self, grid: PassGrid) -> Times:
        """Return the bytes that its tiles write."""
        blocks = grid.blocks(self.channel_tile)
        return grid.columns * sum(grid.column_bytes(grid.saved(row_tile), blocks) for row_tile in self.row_tiles)
