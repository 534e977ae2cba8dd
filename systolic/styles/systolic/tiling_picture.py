"""The tiling of one layer as a figure and as text: its tiles, the rows in the row buffer, and repeated reads."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from scheduler.systolic.reuse import Step, Strip, reuse, steps, strip
from scheduler.systolic.schedule import ScheduledLayer
from scheduler.systolic.tiling import ColumnTile
from systolic.report.figures import COLOURS, Picture
from systolic.styles.systolic.priced import PricedSchedule

WIDTH = 4.3
"""The width of a picture in inches, so that a page shows two of them next to each other and a telephone one."""

SMALL = 7.5
"""The size of labels in points."""

SHOWN = 5
"""Limit for the row tiles, and for the channel tiles, whose order is shown. Tiles in the middle are left out."""

# Input rows: read for this row tile, kept from the tile above, and read later.
ROWS, KEPT, LATER = COLOURS["rows"], "#f3dcb0", "#faf3e3"
# Output tiles that are computed and being computed; weights that are read.
DONE, NOW, WEIGHTS = COLOURS["fill"], COLOURS["compute"], COLOURS["weights"]
# Rows and weights that are already in their buffer.
STAYS = "#e8e8e8"


def tiling(mapping: PricedSchedule, layer: int) -> Figure:
    """Draw a layer's input rows in the row buffer, its output tiles, and the order in which tiles are computed.

    The picture shows the moment at which the array computes the second row tile of the first column tile. If there is
    only one row tile, it shows that one.
    """
    scheduled = mapping.schedule.layers[layer]
    figure = Picture(figsize=(WIDTH, 5.3), layout="constrained")
    figure.set_label(tiling_words(mapping, layer))
    figure.suptitle(_title(mapping, layer), fontsize=SMALL + 1.5, x=0.01, ha="left")
    grid = figure.add_gridspec(2, 2, height_ratios=(1.15, 1))
    rows, result, order = (figure.add_subplot(place) for place in (grid[0, 0], grid[0, 1], grid[1, :]))
    row_tile = min(1, scheduled.row_tiles - 1)
    tile = scheduled.tiling.columns.tiles[0]
    _draw_rows(
        rows, scheduled, [strip(mapping.network, scheduled, number, tile) for number in (row_tile, row_tile + 1)]
    )
    _draw_result(result, scheduled, row_tile)
    _draw_order(order, scheduled)
    return figure


# --- the two maps --------------------------------------------------------------------------------------------------


def _draw_rows(axes: Axes, scheduled: ScheduledLayer, strips: Sequence[Strip]) -> None:
    """Draw the layer's input map. strips: the input rows of the row tile that is computed, and of the next one."""
    shape, (buffered, next_strip) = scheduled.shape, strips
    _map(axes, (shape.in_height, shape.in_width), f"input, {shape.in_channels} ch.")
    first, end = buffered.columns
    if scheduled.tiling.inputs_resident:
        _band(axes, (0, shape.in_height), (first, end), LATER)
    elif scheduled.tiling.overlap:
        _band(axes, (next_strip.fresh, next_strip.end), (first, end), LATER)
    _band(axes, (buffered.first, buffered.fresh), (first, end), KEPT)
    _band(axes, (buffered.fresh, buffered.end), (first, end), ROWS)
    stayed, fresh = buffered.fresh - buffered.first, buffered.end - buffered.fresh
    axes.set_xlabel(f"rows {buffered.first}…{buffered.end - 1}: {stayed} kept, {fresh} new", fontsize=SMALL)


def _draw_result(axes: Axes, scheduled: ScheduledLayer, row_tile: int) -> None:
    """Draw the layer's output map with its tiles. row_tile: the row tile that is computed."""
    shape, rows = scheduled.shape, scheduled.array.rows
    _map(axes, (shape.out_height, shape.out_width), f"output, {shape.filters} ch.")
    for number, tile in enumerate(scheduled.tiling.columns.tiles):
        for top in range(0, shape.out_height, rows):
            bottom = min(shape.out_height, top + rows)
            place = top // rows if number == 0 else scheduled.row_tiles
            colour = NOW if place == row_tile else DONE if place < row_tile else "none"
            _band(axes, (top, bottom), (tile.first, tile.first + tile.columns), colour, edge="#333333")
    axes.set_xlabel(_result_label(scheduled, scheduled.tiling.columns.tiles[0], row_tile), fontsize=SMALL)


def _result_label(scheduled: ScheduledLayer, tile: ColumnTile, row_tile: int) -> str:
    rows = min(scheduled.array.rows, scheduled.shape.out_height - row_tile * scheduled.array.rows)
    name = f"row tile {row_tile} of 0…{scheduled.row_tiles - 1}" if scheduled.row_tiles > 1 else "one row tile"
    return f"{name}: {rows} × {tile.columns}"


def _map(axes: Axes, size: tuple[int, int], title: str) -> None:
    """Prepare the axes for a feature map, with rows downwards and columns to the right.

    A map is drawn to scale unless one side is more than four times the other.
    """
    height, width = size
    axes.set_title(f"{height:,} × {width:,} {title}", fontsize=SMALL + 0.5)
    axes.set(xlim=(0, width), ylim=(height, 0), xticks=[0, width], yticks=[0, height])
    axes.tick_params(labelsize=SMALL)
    if max(height, width) <= 4 * min(height, width):
        axes.set_aspect("equal")


def _band(axes: Axes, rows: tuple[int, int], columns: tuple[int, int], colour: str, edge: str = "none") -> None:
    (top, bottom), (left, right) = rows, columns
    axes.add_patch(
        Rectangle((left, top), right - left, bottom - top, facecolor=colour, edgecolor=edge, lw=0.5, clip_on=True)
    )


# --- the order -----------------------------------------------------------------------------------------------------


def shown_of(count: int) -> list[int | None]:
    """Return the tile numbers from 0 to ``count`` − 1; of many, None replaces all in the middle."""
    if count <= SHOWN:
        return list(range(count))
    return [*range(SHOWN - 2), None, count - 1]


def _draw_order(axes: Axes, scheduled: ScheduledLayer) -> None:
    """Draw a grid of row tiles and channel tiles, each with its position in the order and what is read for it."""
    down, right = shown_of(scheduled.row_tiles), shown_of(scheduled.channel_tiles)
    for y, row in enumerate(down):
        for x, channel in enumerate(right):
            if row is None or channel is None:
                axes.text(x + 0.5, y + 0.5, "…", fontsize=SMALL, ha="center", va="center")
            else:
                number, step = _step(scheduled, row, channel)
                _draw_step(axes, (x, y), number, step)
    axes.set(xlim=(0, max(3, len(right))), ylim=(len(down), 0))
    axes.set_xticks([x + 0.5 for x in range(len(right))], _labels(right), fontsize=SMALL)
    axes.set_yticks([y + 0.5 for y in range(len(down))], _labels(down), fontsize=SMALL)
    axes.set_xlabel(f"channel tiles of {scheduled.array.columns} filters", fontsize=SMALL)
    axes.set_ylabel(f"row tiles of {scheduled.array.rows} rows", fontsize=SMALL)
    count = scheduled.tiling.columns.count
    again = f", for each of {count} column tiles" if count > 1 else ""
    axes.set_title(f"order of computation{again}", fontsize=SMALL + 0.5, loc="left")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    words = ((ROWS, "rows read"), (WEIGHTS, "weights read"), (STAYS, "already in the buffer"))
    patches = [Patch(facecolor=colour, label=word) for colour, word in words]
    axes.legend(
        handles=patches,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.22),
        ncol=3,
        fontsize=SMALL,
        frameon=False,
        columnspacing=1.0,
        handlelength=1.0,
    )


def _step(scheduled: ScheduledLayer, row: int, channel: int) -> tuple[int, Step]:
    """Return the position of a (row tile, channel tile) in the order of computation, and what is read for it."""
    across = scheduled.row_tiles if scheduled.tiling.inputs_resident else scheduled.channel_tiles
    number = channel * across + row if scheduled.tiling.inputs_resident else row * across + channel
    return number, next(islice(steps(scheduled), number, None))


def _draw_step(axes: Axes, corner: tuple[int, int], number: int, step: Step) -> None:
    x, y = corner
    for left, colour in (
        (x + 0.06, ROWS if step.reads_rows else STAYS),
        (x + 0.5, WEIGHTS if step.reads_weights else STAYS),
    ):
        axes.add_patch(Rectangle((left, y + 0.08), 0.44, 0.84, facecolor=colour))
    box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"}
    axes.text(x + 0.5, y + 0.5, f"{number:,}", fontsize=SMALL, ha="center", va="center", bbox=box)


def _labels(numbers: Sequence[int | None]) -> list[str]:
    return ["" if number is None else str(number) for number in numbers]


# --- in words ------------------------------------------------------------------------------------------------------


def _title(mapping: PricedSchedule, layer: int) -> str:
    scheduled = mapping.schedule.layers[layer]
    reread = reuse(mapping.network, scheduled)
    rows = "on chip" if scheduled.shape.from_chip else f"read {_times(reread.map_reads)}"
    weights = _times(reread.weight_reads)
    return f"{scheduled.shape.name}, {scheduled.tiling.order}: rows {rows}, weights read {weights}"


def tiling_words(mapping: PricedSchedule, layer: int) -> str:
    """Return the tiling of a layer in words, with the bytes read, for readers who cannot see the figure."""
    scheduled, priced = mapping.schedule.layers[layer], mapping.cost.layers[layer]
    shape, needs, array, reread = scheduled.shape, priced.needs, scheduled.array, reuse(mapping.network, scheduled)
    rows = "are read from the map buffer" if shape.from_chip else f"are read {_times(reread.map_reads)}"
    moved = "" if shape.from_chip else f", {priced.traffic.maps_read:,} bytes"
    return (
        f"{shape.name}, {scheduled.tiling.order}: {shape.out_height} × {shape.out_width} × {shape.filters} in "
        f"{scheduled.row_tiles} row tile(s) × {scheduled.channel_tiles} channel tile(s) × {reread.passes} column "
        f"tile(s). Rows {rows}{moved}{_while(scheduled)}; the row buffer holds {reread.buffered_rows} of "
        f"{shape.in_height} rows, in {needs.row_depth:,} of {array.row_depth:,} words per bank. Weights are read "
        f"{_times(reread.weight_reads)}, {priced.traffic.weights:,} bytes, through {needs.weight_depth:,} of "
        f"{array.weight_depth:,} words per column."
    )


def _while(scheduled: ScheduledLayer) -> str:
    return ", each row tile's rows while the tile before it is computed" if scheduled.tiling.overlap else ""


def _times(count: float) -> str:
    return "once" if count == 1 else f"{count:.3g} times"
