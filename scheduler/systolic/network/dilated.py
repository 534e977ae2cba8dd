"""Dilated convolutions as layers that compute with the places of their windows alone.

Columns lie apart by the address: from one column of the kernel to the next the loader goes on by as many. Rows become
several layers, *parts*, each of which writes some rows of the map:

by taps     rows of the result that see the same rows of the kernel. The rows that one of them sees, so far apart as the
            dilation is, are read as one row, one piece of it after the other; no row of padding is computed with
by phases   rows of the result a dilation apart see rows a dilation apart: a dense convolution of every d-th row

By taps costs least, and reads a row as often as the kernel has rows. A channel tile of a depthwise layer, whose blocks
lie one after the other, cannot read so; nor does padding that is not 0 cost nothing where it is left out. These go by
phases, or keep the zeros between their rows where that is less.
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
"""Rows of a typical array, on which the costs of phases and of zeros are compared before the array is chosen."""


def dilated_layers(layer: Layer, dilation: tuple[int, int], source: Shape) -> Iterator[Layer]:
    """Yield the layers that compute ``layer``, a convolution of a map ``source``: itself if it is not dilated.

    ``layer`` has the weights of its places alone, ``dilation`` rows and columns apart.
    """
    if layer.reads_pixels:  # whose columns come several at a time
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
    """Return the layers of one whose rows are dilated; none if its zeros cost less, or if a row sees padding alone."""
    padded = bool(layer.padding.top or layer.padding.bottom)
    if not layer.depthwise and not (layer.around and padded):
        return _by_taps(layer, source, step)
    places = layer.kernel[0]
    phases = step * ceil_div(ceil_div(layer.out.height, step), TYPICAL_ROWS) * places
    zeros = ceil_div(layer.out.height, TYPICAL_ROWS) * ((places - 1) * step + 1)
    return _by_phases(layer, source, step) if phases < zeros else []


def _part(layer: Layer, reads: Rows, writes: Rows) -> Layer:
    """Return the layer restricted to these rows."""
    shape = replace(layer.out, height=writes.count)
    return replace(layer, part=Part(reads, writes, 0, 1, 1), out=shape, saved=shape)


def _by_taps(layer: Layer, source: Shape, step: int) -> list[Layer]:
    places, top = layer.kernel[0], layer.padding.top

    def taps(row: int) -> tuple[int, int]:
        """Return the rows of the kernel that lie in the map, as first and past-last."""
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
