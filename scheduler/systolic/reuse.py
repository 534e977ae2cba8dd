"""The data reuse of a tiled layer: the rows that stay in the row buffer, and the reads of rows and weights from DDR.

The functions describe a tiling tile by tile, for explanations. scheduler/systolic/model/cost.py computes the totals.
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
    """The input rows and columns that a row tile reads from the row buffer.

    Attributes:
        first: The first input row.
        fresh: The first input row that the row tile above has not loaded already.
        end: The input row after the last one.
        columns: The first input column of the column tile, and the column after its last one.
    """

    first: int
    fresh: int
    end: int
    columns: tuple[int, int]


@dataclass(frozen=True)
class Step:
    """One channel tile of one row tile, which the engine computes as a unit, with what is loaded for it.

    Attributes:
        row_tile: The index of the row tile.
        channel_tile: The index of the channel tile.
        reads_rows: Whether the row tile's rows are loaded into the row buffer for this step.
        reads_weights: Whether the channel tile's weights are read from DDR for this step.
    """

    row_tile: int
    channel_tile: int
    reads_rows: bool
    reads_weights: bool


def strip(network: QuantizedNetwork, scheduled: ScheduledLayer, row_tile: int, tile: ColumnTile) -> Strip:
    """Return the input rows that are in the row buffer while ``row_tile`` of column tile ``tile`` is computed."""
    layer, shape, rows = scheduled.layer, scheduled.shape, scheduled.array.rows
    width = layer.read_width(network.nodes[layer.input].shape.width)
    columns = input_columns(layer, tile, width, scheduled.array.word_pixels if layer.reads_pixels else 1)
    first = _inside(shape.in_height, row_tile * rows * shape.stride - shape.pad_top)
    above = _end(scheduled, row_tile - 1) if row_tile else first
    return Strip(first, max(first, above), _end(scheduled, row_tile), columns)


def _end(scheduled: ScheduledLayer, row_tile: int) -> int:
    """Return the index after the last input row that a row tile reads."""
    shape, rows = scheduled.shape, scheduled.array.rows
    last_stride = (row_tile + 1) * rows - 1 + shape.ahead
    return _inside(shape.in_height, last_stride * shape.stride + shape.phases - shape.pad_top)


def _inside(height: int, row: int) -> int:
    return min(max(0, row), height)


def steps(scheduled: ScheduledLayer) -> Iterator[Step]:
    """Yield the (row tile, channel tile) steps of one column tile in the order in which the engine computes them."""
    rows, channels, order = range(scheduled.row_tiles), range(scheduled.channel_tiles), scheduled.tiling.order
    if order == "inputs-resident":
        places = ((row, channel) for channel in channels for row in rows)
    else:
        places = ((row, channel) for row in rows for channel in channels)
    for row, channel in places:
        yield Step(row, channel, channel == 0, row == 0 or order == "streamed")


@dataclass(frozen=True)
class Reuse:
    """The number of times that a layer reads its input map and its weights from memory, for all frames of a batch.

    Attributes:
        passes: Passes over a frame's map, one per column tile.
        map_reads: Times that a value of the input map is read, on average. Above 1 if column tiles share columns.
        weight_reads: Times that all weights are read from DDR.
        buffered_rows: Rows of a column tile that the row buffer holds.
    """

    passes: int
    map_reads: float
    weight_reads: int
    buffered_rows: int


def reuse(network: QuantizedNetwork, scheduled: ScheduledLayer) -> Reuse:
    """Return the number of times that the layer ``scheduled`` reads its input map and its weights from memory."""
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
