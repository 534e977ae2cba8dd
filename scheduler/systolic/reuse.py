"""What a tiled layer reads again and what stays: the strips of rows in the row buffer, the passages of its weights.

The numbers of a tiling as a reader follows them, tile by tile; scheduler/systolic/model/cost.py has their sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cnn.quantized import QuantizedNetwork
from scheduler.systolic.schedule import ScheduledLayer
from scheduler.systolic.shape import rows_in
from scheduler.systolic.tiling import ColumnTile, Tiling, column_tiles, input_columns, row_slots


@dataclass(frozen=True)
class Strip:
    """Input rows ``first`` … ``end`` − 1 that a row tile computes from; those before ``fresh`` stayed from the tile
    above. columns: first and past-last one of the column tile's."""

    first: int
    fresh: int
    end: int
    columns: tuple[int, int]


@dataclass(frozen=True)
class Step:
    """One channel tile of one row tile, in the order of computing. reads_rows: its row tile's rows come to the row
    buffer. reads_weights: its weights cross the DDR."""

    row_tile: int
    channel_tile: int
    reads_rows: bool
    reads_weights: bool


def strip(network: QuantizedNetwork, scheduled: ScheduledLayer, row_tile: int, tile: ColumnTile) -> Strip:
    """The rows that lie in the row buffer while ``row_tile`` of a column tile is computed."""
    layer, shape, rows = scheduled.layer, scheduled.shape, scheduled.array.rows
    width = layer.read_width(network.nodes[layer.input].shape.width)
    columns = input_columns(layer, tile, width, scheduled.array.word_pixels if layer.reads_pixels else 1)
    first = _inside(shape.in_height, row_tile * rows * shape.stride - shape.pad_top)
    above = _end(scheduled, row_tile - 1) if row_tile else first
    return Strip(first, max(first, above), _end(scheduled, row_tile), columns)


def _end(scheduled: ScheduledLayer, row_tile: int) -> int:
    """Past the last row of the last row stride that a row tile computes from."""
    shape, rows = scheduled.shape, scheduled.array.rows
    last_stride = (row_tile + 1) * rows - 1 + shape.ahead
    return _inside(shape.in_height, last_stride * shape.stride + shape.phases - shape.pad_top)


def _inside(height: int, row: int) -> int:
    return min(max(0, row), height)


def steps(scheduled: ScheduledLayer) -> Iterator[Step]:
    """Of one column tile, in the order in which the engine computes them."""
    rows, channels, order = range(scheduled.row_tiles), range(scheduled.channel_tiles), scheduled.tiling.order
    if order == "inputs-resident":
        places = ((row, channel) for channel in channels for row in rows)
    else:
        places = ((row, channel) for row in rows for channel in channels)
    for row, channel in places:
        yield Step(row, channel, channel == 0, row == 0 or order == "streamed")


@dataclass(frozen=True)
class Reuse:
    """Of a layer, in all frames of a batch. passes: over a frame's map, one a column tile. map_reads: how often the
    map's values are read, above 1 where column tiles share columns. weight_reads: how often all weights cross the DDR.
    buffered_rows: rows of a column tile that the row buffer holds."""

    passes: int
    map_reads: float
    weight_reads: int
    buffered_rows: int


def reuse(network: QuantizedNetwork, scheduled: ScheduledLayer) -> Reuse:
    """How often ``scheduled`` reads what it reads."""
    shape, tiling, rows = scheduled.shape, scheduled.tiling, scheduled.array.rows
    uncut = column_tiles(network, scheduled.layer, scheduled.array, shape.out_width).total_words
    read = rows_in(shape, rows, scheduled.row_tiles)
    return Reuse(
        passes=tiling.columns.count,
        map_reads=tiling.columns.total_words / uncut,
        weight_reads=shape.repeats * tiling.columns.count * _weight_reads(tiling, scheduled.row_tiles),
        buffered_rows=min(read, row_slots(shape, rows, tiling) * rows * shape.phases),
    )


def _weight_reads(tiling: Tiling, row_tiles: int) -> int:
    return row_tiles if tiling.order == "streamed" else 1
