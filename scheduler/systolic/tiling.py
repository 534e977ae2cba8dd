"""How one layer is tiled: column tiles × loop order × overlapped loading, and the buffers that each way needs.

A layer's output is cut three ways. The array's rows and columns give row tiles and channel tiles; column tiles are cut
only where rows are too wide for the row buffer:

              columns of the output
            ┌──────────┬──────────┬────┐
    M rows  │ row tile 0          │    │     × channel tiles of N filters
            ├──────────┼──────────┼────┤
    M rows  │ row tile 1          │    │     the engine makes one pass over each column tile
            └──────────┴──────────┴────┘
             column tile 0, 1, …

Every tiling is one that the engine executes (scheduler/systolic/program); the search chooses among ``tilings``. What a
tiling has to keep is a row of TILING_RULES, what it needs of the array one of needs.py.
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
"""Loop orders of the engine. weights-resident: all weight tiles stay in the buffer, row tiles are the outer loop.
inputs-resident: all rows of a column tile stay, channel tiles are the outer loop. streamed: neither stays, weights
cross once a row tile."""

MAX_COLUMN_TILES = 8
"""Column tiles of a layer at most: more are needed only where the row buffer is smaller than any that is built."""


@dataclass(frozen=True)
class ColumnTile:
    """Columns ``first`` … ``first + columns − 1`` of a layer's convolution output."""

    first: int
    columns: int


@dataclass(frozen=True)
class ColumnTiles:
    """A layer's columns in tiles of equal width, but for the last.

    words: of one row in the row buffer, for the first tile, the widest between, and the last; total_words: over all
    tiles. Neighbours read some columns twice, those that their kernels share.
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
    """How a layer is tiled. order: one of ORDERS, what stays on chip while the other streams past. overlap: the next
    row tile's rows arrive while this one is computed. on_chip: its result stays in a map buffer, for the next layer."""

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


# --- what a tiling keeps -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TilingRule:
    """What the tiling of every layer keeps on an array of a number of rows.

    Attributes:
        holds: Whether the layer, its tiling and the rows keep the rule.
        error: The error for a tiling that breaks it.
    """

    holds: Callable[[LayerShape, Tiling, int], bool]
    error: Callable[[LayerShape, Tiling, int], SystolicError]


def _cut_window(shape: LayerShape, tiling: Tiling) -> SystolicError:
    """Return the error for column tiles that cut a window of the pool."""
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
)


def broken_tiling_rules(shape: LayerShape, tiling: Tiling, rows: int) -> list[SystolicError]:
    """Return the errors of the rules that a tiling breaks."""
    return [rule.error(shape, tiling, rows) for rule in TILING_RULES if not rule.holds(shape, tiling, rows)]


def tilings(shape: LayerShape, rows: int, cuts: tuple[ColumnTiles, ...]) -> tuple[Tiling, ...]:
    """Return every tiling that differs on an array of ``rows`` rows and keeps the rules."""
    candidates = different_tilings(shape, rows, cuts)
    return tuple(tiling for tiling in candidates if all(rule.holds(shape, tiling, rows) for rule in TILING_RULES))


def different_tilings(shape: LayerShape, rows: int, cuts: tuple[ColumnTiles, ...]) -> tuple[Tiling, ...]:
    """Return every tiling that differs; with one row tile nothing is loaded twice, and all orders are one."""
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
    """Every distinct cut into at most ``limit`` column tiles, the fewest tiles first."""
    widths = dict.fromkeys(_tile_widths(layer, limit))
    return tuple(column_tiles(network, layer, array, width) for width in widths)


def _tile_widths(layer: Layer, limit: int) -> Iterator[int]:
    """Tiles end where a pool window ends; a pool of stride 1 needs every column's right neighbour: one tile. So do rows
    that are read as one though they lie apart: each is one piece."""
    windows = ceil_div(layer.out.width, layer.pool_stride)
    if (layer.pool_size == 2 and layer.pool_stride == 1) or layer.row_step:
        yield layer.out.width
        return
    for count in range(1, min(limit, windows) + 1):
        yield ceil_div(windows, count) * layer.pool_stride


def column_tiles(network: QuantizedNetwork, layer: Layer, array: Array, width: int) -> ColumnTiles:
    """``layer`` in tiles of ``width`` columns, the last one with what remains."""
    total = layer.out.width
    tiles = tuple(ColumnTile(first, min(width, total - first)) for first in range(0, total, width))
    words = [row_words(network, layer, array, tile) for tile in tiles]
    return ColumnTiles(tiles, (words[0], max(words[1:-1], default=words[0]), words[-1]), sum(words))


def input_columns(layer: Layer, tile: ColumnTile, width: int, align: int) -> tuple[int, int]:
    """First and past-last input column that a column tile reads, of ``width``; the first is aligned down to ``align``.

    A tile that lies in the padding alone reads one column all the same, whose values it does not use.
    """
    first = min(max(0, tile.first * layer.column_stride - layer.padding.left), width - 1)
    end = (tile.first + tile.columns - 1) * layer.column_stride - layer.padding.left + layer.reach
    return first // align * align, max(first + 1, min(width, end))


def row_words(network: QuantizedNetwork, layer: Layer, array: Array, tile: ColumnTile) -> int:
    """Words of one row of a column tile in the row buffer."""
    pixels = array.word_pixels if layer.reads_pixels else 1
    width = layer.read_width(network.nodes[layer.input].shape.width)
    first, end = input_columns(layer, tile, width, pixels)
    return read_blocks(layer, array) * ceil_div(end - first, pixels)


# --- buffers -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BufferNeeds:
    """The least buffers that a tiling runs in, by the names that they have in an Array."""

    row_depth: int
    weight_depth: int
    kept_depth: int
    channel_tiles: int
    map_depth: int


def buffer_needs(shape: LayerShape, rows: int, columns: int, tiling: Tiling, next_steps: int) -> BufferNeeds:
    """What ``tiling`` needs on an array of ``rows`` × ``columns``.

    next_steps: steps of the next layer, whose first weight tile arrives during this one; 0 after the last.
    """
    row_tiles, channel_tiles = ceil_div(shape.out_height, rows), ceil_div(shape.filters, columns)
    # After a column tile, or a frame, that is not the last comes this layer's own first weight tile again.
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
    """Words of one bank that the result, and the maps beside it, take in a map buffer, [row][block][column];
    systolic/map_buffer.h."""
    return ceil_div(shape.saved_height, rows) * (shape.kept_blocks or shape.out_blocks) * shape.saved_width


def row_slots(shape: LayerShape, rows: int, tiling: Tiling) -> int:
    """Return the row strides that a bank of the row buffer holds: those of a tile, and of the next one if it is loaded
    meanwhile; all of them if inputs stay. Rows of a map buffer may begin in a bank other than 0, which can take one
    more row stride."""
    first_bank = shape.turned % rows if shape.from_chip and shape.stride == 1 else 0
    span = (first_bank + rows - 1 + shape.ahead) // rows + 1  # of a tile, kernel included
    if tiling.inputs_resident:
        return ceil_div(shape.out_height, rows) - 1 + span
    return span + (1 if tiling.overlap else 0)


def _kept_sums(shape: LayerShape, rows: int, tiling: Tiling) -> int:
    """Sums of a channel tile that wait for the tile below: none where pool windows never straddle row tiles."""
    straddles = shape.pool_size > 1 and shape.out_height > rows and (shape.pool_stride == 1 or rows % 2 == 1)
    return ceil_div(tiling.columns.width, shape.pool_stride) if straddles else 0
