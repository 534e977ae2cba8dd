"""Dilated convolutions as layers that read only the places of their windows, without the zeros between them.

Columns are skipped by addresses: the loader advances by the dilation from one kernel column to the next. Rows are
skipped by several layers, called *parts*, each of which writes some rows of the map. There are two ways:

by taps     One part writes the output rows that see the same rows of the kernel. The input rows that one output row
            sees, which are a dilation apart, are read as one joined row. Rows of padding are not read.
by phases   One part writes output rows that are a dilation d apart. They see input rows that are d apart, so the part
            is a convolution without dilation on every d-th row.

Taps need the fewest cycles, but read an input row once per kernel row. A depthwise layer cannot use taps, because the
channel blocks of a channel tile are not neighbours in a joined row. Padding other than 0 cannot be left out. These
layers use phases, or keep the zeros between their rows if that needs fewer cycles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from cnn.dilation import with_zeros
from cnn.maps import Padding, Shape
from scheduler.convolutions import dense
from scheduler.hardware.arithmetic import ceil_div
from scheduler.systolic.network.layer import Layer
from scheduler.systolic.network.reorg import Part, Rows

TYPICAL_ROWS = 16
"""Rows of PEs of a typical array. Phases and zeros are compared for it, because the array is not chosen yet."""


def dilated_layers(layer: Layer, dilation: tuple[int, int], source: Shape) -> Iterator[Layer]:
    """Yield the array layers that compute a dilated convolution: several that skip rows, or ``layer`` itself if it is
    not dilated.

    Args:
        layer: The convolution. Its weights have no zeros between the places of the window.
        dilation: Rows and columns from one place of the window to the next.
        source: The shape of the map that it reads.
    """
    if layer.reads_pixels:  # a word holds several columns of pixels, so single columns cannot be skipped
        yield replace(layer, weights=with_zeros(layer.weights, dilation))
        return
    weights, (rows, columns) = dense(layer.weights, dilation)
    layer = replace(layer, weights=weights, column_step=columns)
    parts = _parts(layer, source, rows) if rows > 1 and layer.stride == 1 else []
    if not parts:
        yield replace(layer, weights=with_zeros(layer.weights, (rows, 1)))
        return
    for number, part in enumerate(parts, 1):
        yield replace(part, name=f"{layer.name}.{number}") if len(parts) > 1 else part


def _parts(layer: Layer, source: Shape, step: int) -> list[Layer]:
    """Return the layers that each compute some rows of a dilated convolution, whose kernel rows are ``step`` apart.

    The list is empty if the zeros need fewer cycles, or if an output row sees only padding.
    """
    padded = bool(layer.padding.top or layer.padding.bottom)
    if not layer.depthwise and not (layer.around and padded):
        return _by_taps(layer, source, step)
    places = layer.kernel[0]
    phases = step * ceil_div(ceil_div(layer.out.height, step), TYPICAL_ROWS) * places
    zeros = ceil_div(layer.out.height, TYPICAL_ROWS) * ((places - 1) * step + 1)
    return _by_phases(layer, source, step) if phases < zeros else []


def _part(layer: Layer, reads: Rows, writes: Rows) -> Layer:
    """Return the layer restricted to the input rows ``reads`` and the output rows ``writes``."""
    shape = replace(layer.out, height=writes.count)
    return replace(layer, part=Part(reads, writes, 0, 1, 1), out=shape, saved=shape)


def _by_taps(layer: Layer, source: Shape, step: int) -> list[Layer]:
    """Return one layer per group of output rows for which the same kernel rows are inside the map."""
    places, top = layer.kernel[0], layer.padding.top

    def taps(row: int) -> tuple[int, int]:
        """Return the rows of the kernel that are inside the map for output row ``row``, as (first, past-last)."""
        return max(0, ceil_div(top - row, step)), min(places, (source.height - 1 - row + top) // step + 1)

    parts = []
    for (first, end), alike in groupby(range(layer.out.height), taps):
        rows = list(alike)
        if end <= first:
            return []
        reads, writes = Rows(rows[0] - top + first * step, 1, len(rows)), Rows(rows[0], 1, len(rows))
        weights, joined = layer.weights[:, :, first:end], end - first
        padding = Padding(0, layer.padding.left, 0, layer.padding.right)
        several = replace(layer, weights=weights, padding=padding, joined=joined, row_step=step if joined > 1 else 0)
        parts.append(_part(several, reads, writes))
    return parts


def _by_phases(layer: Layer, source: Shape, step: int) -> list[Layer]:
    """Return one layer per phase of a dilated convolution: the output rows phase, phase + ``step``, phase + 2 ·
    ``step`` and so on."""
    top = layer.padding.top
    parts = []
    for phase in range(min(step, layer.out.height)):
        first, above = (phase - top) % step, max(0, ceil_div(top - phase, step))
        reads = Rows(first, step, ceil_div(source.height - first, step))
        if reads.count < 1:
            return []
        padding = Padding(above, layer.padding.left, 0, layer.padding.right)
        writes = Rows(phase, step, ceil_div(layer.out.height - phase, step))
        parts.append(_part(replace(layer, padding=padding), reads, writes))
    return parts
