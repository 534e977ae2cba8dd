"""The tilings of one layer, and the buffers that each of them needs.

A tiling is a cut into column tiles, a loop order, and the choice whether loads overlap the computation. A layer's
output is cut in three ways. The rows and columns of the array determine row tiles and channel tiles. Column tiles are
cut only if rows are too wide for the row buffer:

              columns of the output
            ┌──────────┬──────────┬────┐
    M rows  │ row tile 0          │    │     × channel tiles of N filters
            ├──────────┼──────────┼────┤
    M rows  │ row tile 1          │    │     the engine makes one pass over each column tile
            └──────────┴──────────┴────┘
             column tile 0, 1, …

The engine can execute every tiling (scheduler/systolic/program), and the search chooses among ``tilings``. TILING_RULES
lists the rules of a tiling, and needs.py its requirements on the array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from boards.errors import ChoiceError, InvalidValueError, SystolicError
from cnn.quantized import QuantizedNetwork
from scheduler.hardware.arithmetic import ceil_div
from scheduler.systolic.array import Array
from scheduler.systolic.network.layer import Layer
from scheduler.systolic.shape import LayerShape, read_blocks

ORDERS = ("weights-resident", "inputs-resident", "streamed")
"""The loop orders of the engine.

- weights-resident: All weight tiles stay in the weight buffer. Row tiles are the outer loop.
- inputs-resident: All rows of a column tile stay in the row buffer. Channel tiles are the outer loop.
- streamed: Neither of them stays. Row tiles are the outer loop, and the weights are read from DDR once per row tile.
"""

STORED_SUMS_DISTANCE = 2
"""The fewest steps of the Saver from the write of a stored sum to its read in the row tile below (pool.h)."""

MAX_COLUMN_TILES = 8
"""The maximum number of column tiles of a layer.

Only a row buffer that is smaller than any usual one would need more."""


@dataclass(frozen=True)
class ColumnTile:
    """One column tile: columns ``first`` … ``first + columns − 1`` of a layer's convolution output."""

    first: int
    columns: int


@dataclass(frozen=True)
class ColumnTiles:
    """A cut of a layer's output columns into tiles of equal width. The last tile may be narrower.

    Attributes:
        tiles: The tiles, from left to right.
        words: Row-buffer words of one input row: for the first tile, the widest tile between, and the last tile.
        total_words: Row-buffer words of one input row, summed over all tiles. Input columns that the kernels of two
            neighbouring tiles share are read by both, and count twice.
    """

    tiles: tuple[ColumnTile, ...]
    words: tuple[int, int, int]
    total_words: int

    @property
    def count(self) -> int:
        return len(self.tiles)

    @property
    def width(self) -> int:
        return self.tiles[0].columns

    @property
    def last_width(self) -> int:
        return self.tiles[-1].columns

    @property
    def widest_words(self) -> int:
        return max(self.words)


@dataclass(frozen=True)
class Tiling:
    """The tiling of a layer: its column tiles, its loop order, and whether loads overlap computation.

    Attributes:
        columns: The column tiles.
        order: The loop order, one of ORDERS.
        overlap: Whether the next row tile's rows are loaded while a row tile is computed.
        on_chip: Whether the layer's output stays in a map buffer until its readers have read it.
    """

    columns: ColumnTiles
    order: str
    overlap: bool
    on_chip: bool = False

    @property
    def weights_resident(self) -> bool:
        return self.order == "weights-resident"

    @property
    def inputs_resident(self) -> bool:
        return self.order == "inputs-resident"


# --- rules of a tiling ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TilingRule:
    """A rule that the tiling of every layer must follow, on an array with a given number of rows.

    Attributes:
        holds: Returns whether the layer's tiling follows the rule.
        error: Returns the error for a tiling that breaks the rule.
    """

    holds: Callable[[LayerShape, Tiling, int], bool]
    error: Callable[[LayerShape, Tiling, int], SystolicError]


def _cut_window(shape: LayerShape, tiling: Tiling) -> SystolicError:
    """Return the error for column tiles whose borders cut a window of the pool."""
    width, stride = tiling.columns.width, shape.pool_stride
    below = width // stride * stride
    required = f"a multiple of the pool's stride ({stride}), so that no window is cut"
    return InvalidValueError("tile_columns", width, required, tuple(filter(None, (below, below + stride))))


TILING_RULES = (
    TilingRule(
        lambda shape, tiling, rows: tiling.order in ORDERS,
        lambda shape, tiling, rows: ChoiceError("order", tiling.order, ORDERS),
    ),
    TilingRule(
        lambda shape, tiling, rows: shape.out_height > rows or (tiling.order == "streamed" and not tiling.overlap),
        lambda shape, tiling, rows: InvalidValueError(
            "order",
            f"{tiling.order}{' with overlap' if tiling.overlap else ''}",
            "streamed without overlap, because the layer is one row tile and has no next one",
        ),
    ),
    TilingRule(
        lambda shape, tiling, rows: tiling.columns.count == 1 or tiling.columns.width % shape.pool_stride == 0,
        lambda shape, tiling, rows: _cut_window(shape, tiling),
    ),
    TilingRule(
        lambda shape, tiling, rows: tiling.columns.count == 1 or not (shape.pool_size == 2 and shape.pool_stride == 1),
        lambda shape, tiling, rows: InvalidValueError(
            "tile_columns",
            tiling.columns.width,
            "the whole width, because every column of a pool of stride 1 needs its right neighbour",
            (shape.out_width,),
        ),
    ),
    TilingRule(
        lambda shape, tiling, rows: not _stores_sums(shape, rows) or _pool_steps(shape, tiling) >= STORED_SUMS_DISTANCE,
        lambda shape, tiling, rows: InvalidValueError(
            "tile_columns",
            tiling.columns.width,
            "a width without a tile of one column, whose pool would read a sum of the row tile above before its write",
            remedy="take another tile_columns, or an even number of rows",
        ),
    ),
)


def broken_tiling_rules(shape: LayerShape, tiling: Tiling, rows: int) -> list[SystolicError]:
    """Return one error per rule that a layer's tiling breaks."""
    return [rule.error(shape, tiling, rows) for rule in TILING_RULES if not rule.holds(shape, tiling, rows)]


def tilings(shape: LayerShape, rows: int, cuts: tuple[ColumnTiles, ...]) -> tuple[Tiling, ...]:
    """Return the legal tilings of a layer on an array of ``rows`` rows, for the given column cuts."""
    candidates = different_tilings(shape, rows, cuts)
    return tuple(tiling for tiling in candidates if all(rule.holds(shape, tiling, rows) for rule in TILING_RULES))


def different_tilings(shape: LayerShape, rows: int, cuts: tuple[ColumnTiles, ...]) -> tuple[Tiling, ...]:
    """Return all tilings of a layer that differ in their execution, legal or not.

    With a single row tile all loop orders are the same, because no data are loaded twice.
    """
    if shape.out_height <= rows:
        return tuple(Tiling(cut, "streamed", False) for cut in cuts)
    flags = (
        ("weights-resident", True),
        ("weights-resident", False),
        ("inputs-resident", True),
        ("streamed", True),
        ("streamed", False),
    )
    return tuple(Tiling(cut, order, overlap) for cut in cuts for order, overlap in flags)


# --- column tiles --------------------------------------------------------------------------------------------------


def column_cuts(
    network: QuantizedNetwork, layer: Layer, array: Array, limit: int = MAX_COLUMN_TILES
) -> tuple[ColumnTiles, ...]:
    """Return all different cuts of a layer's output into at most ``limit`` column tiles, the fewest tiles first."""
    widths = dict.fromkeys(_tile_widths(layer, limit))
    return tuple(column_tiles(network, layer, array, width) for width in widths)


def _tile_widths(layer: Layer, limit: int) -> Iterator[int]:
    """Yield the width of the column tiles for cuts into 1 … ``limit`` tiles.

    A tile ends at the end of a pool window. There is only one tile in two cases. A pool of stride 1 needs the right
    neighbour of every column. Joined input rows that are not neighbours are read as one piece each.
    """
    windows = ceil_div(layer.out.width, layer.pool_stride)
    if (layer.pool_size == 2 and layer.pool_stride == 1) or layer.row_step:
        yield layer.out.width
        return
    for count in range(1, min(limit, windows) + 1):
        yield ceil_div(windows, count) * layer.pool_stride


def column_tiles(network: QuantizedNetwork, layer: Layer, array: Array, width: int) -> ColumnTiles:
    """Return the column tiles of ``layer`` with ``width`` columns each. The last tile has the remaining columns."""
    total = layer.out.width
    tiles = tuple(ColumnTile(first, min(width, total - first)) for first in range(0, total, width))
    words = [row_words(network, layer, array, tile) for tile in tiles]
    return ColumnTiles(tiles, (words[0], max(words[1:-1], default=words[0]), words[-1]), sum(words))


def input_columns(layer: Layer, tile: ColumnTile, width: int, align: int) -> tuple[int, int]:
    """Return the first input column that a column tile reads, and the column after the last one.

    A tile whose windows are entirely in the padding still reads one column, whose values are not used.

    Args:
        layer: The layer.
        tile: The column tile.
        width: The number of input columns.
        align: The pixels of a word. The first column is rounded down to a multiple of it.
    """
    first = min(max(0, tile.first * layer.column_stride - layer.padding.left), width - 1)
    end = (tile.first + tile.columns - 1) * layer.column_stride - layer.padding.left + layer.reach
    return first // align * align, max(first + 1, min(width, end))


def row_words(network: QuantizedNetwork, layer: Layer, array: Array, tile: ColumnTile) -> int:
    """Return the row-buffer words of one input row of a column tile."""
    pixels = array.word_pixels if layer.reads_pixels else 1
    width = layer.read_width(network.nodes[layer.input].shape.width)
    first, end = input_columns(layer, tile, width, pixels)
    return read_blocks(layer, array) * ceil_div(end - first, pixels)


# --- buffers -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BufferNeeds:
    """The smallest buffer depths with which a tiling can run. Each field has the same name and unit as in an
    ``Array``."""

    row_depth: int
    weight_depth: int
    kept_depth: int
    channel_tiles: int
    map_depth: int


def buffer_needs(shape: LayerShape, rows: int, columns: int, tiling: Tiling, next_steps: int) -> BufferNeeds:
    """Return the buffer depths that a layer's ``tiling`` needs on an array of ``rows`` × ``columns``.

    Args:
        shape: The layer.
        rows: The rows of the array.
        columns: The columns of the array.
        tiling: The tiling.
        next_steps: Steps of the next layer, whose first weight tile is loaded during this one. 0 after the last layer.
    """
    row_tiles, channel_tiles = ceil_div(shape.out_height, rows), ceil_div(shape.filters, columns)
    # After every column tile and frame but the last, this layer's own first weight tile is loaded again.
    prefetched = max(next_steps, shape.steps) if tiling.columns.count * shape.repeats > 1 else next_steps
    reloaded = channel_tiles > 1 or (row_tiles > 1 and tiling.order == "streamed")
    streamed = shape.steps + max(shape.steps if reloaded else 0, prefetched)
    return BufferNeeds(
        row_depth=row_slots(shape, rows, tiling) * shape.phases * tiling.columns.widest_words,
        weight_depth=channel_tiles * shape.steps + prefetched if tiling.weights_resident else streamed,
        kept_depth=_kept_sums(shape, rows, tiling) * (1 if tiling.inputs_resident else channel_tiles),
        channel_tiles=channel_tiles,
        map_depth=map_words(shape, rows) if tiling.on_chip else 0,
    )


def map_words(shape: LayerShape, rows: int) -> int:
    """Return the words per bank that the layer's output map takes in a map buffer, with the maps stored side by side.

    A bank is stored in the order [row][block][column] (systolic/map_buffer.h).
    """
    return ceil_div(shape.saved_height, rows) * (shape.kept_blocks or shape.out_blocks) * shape.saved_width


def row_slots(shape: LayerShape, rows: int, tiling: Tiling) -> int:
    """Return how many row strides (groups of ``stride`` input rows) each bank of the row buffer must hold for the
    tiling.

    They are the row strides of a tile, and also of the next tile if loads overlap the computation. If inputs stay, they
    are all row strides. Rows from a map buffer may begin in a bank other than 0, which can take one more row stride.
    """
    first_bank = shape.turned % rows if shape.from_chip and shape.stride == 1 else 0
    span = (first_bank + rows - 1 + shape.ahead) // rows + 1  # of one tile, with the rows that its kernel reaches
    if tiling.inputs_resident:
        return ceil_div(shape.out_height, rows) - 1 + span
    return span + (1 if tiling.overlap else 0)


def _kept_sums(shape: LayerShape, rows: int, tiling: Tiling) -> int:
    """Return how many sums per channel tile are stored for the next row tile, because a pool window spans both.

    They are 0 if no pool window extends over two row tiles.
    """
    return ceil_div(tiling.columns.width, shape.pool_stride) if _stores_sums(shape, rows) else 0


def _stores_sums(shape: LayerShape, rows: int) -> bool:
    """Return whether a window of the layer's pool extends over two row tiles."""
    return shape.pool_size > 1 and shape.out_height > rows and (shape.pool_stride == 1 or rows % 2 == 1)


def _pool_steps(shape: LayerShape, tiling: Tiling) -> int:
    """Return the fewest steps that the Saver's pool takes for a tile: one per column, and one more at stride 1.

    A column takes more steps if it has more output rows than the array saves at once (save_rows).
    """
    return tiling.columns.last_width + (shape.pool_stride == 1)
