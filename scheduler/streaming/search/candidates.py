"""Lists all legal folds of a block, from which a search chooses.

If channels may be padded, the least padding per number of folds is listed: PE = ⌈C / folds⌉, padding = folds · PE − C.
A larger PE with the same number of folds would take more resources and save no cycle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

from boards.board import Board
from cnn.ops import MaxPool, assert_never
from scheduler.hardware.arithmetic import ceil_div
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from scheduler.streaming.blocks.kinds import kind_of
from scheduler.streaming.rules import is_legal


@dataclass(frozen=True)
class Options:
    """The options that limit which folds a folding search may use.

    Attributes:
        max_padding: The maximum channels of padding per map.
        pad_ends: Whether the input image and the output maps may be padded too.
        max_pixels: The maximum of ``Fold.m`` and ``Fold.pixels``, which are powers of two.
        external: The names of the layers whose weights stay in DDR.
        uram_weights: Whether weights may be stored in URAM. They are then written at the start, because URAM has no
            initial contents (UG573).
    """

    max_padding: int = 0
    pad_ends: bool = False
    max_pixels: int = 2
    external: tuple[str, ...] = ()
    uram_weights: bool = True


@lru_cache(maxsize=4096)
def divisors(value: int) -> tuple[int, ...]:
    """Return the divisors of ``value`` in ascending order."""
    return tuple(divisor for divisor in range(1, value + 1) if value % divisor == 0)


@lru_cache(maxsize=4096)
def lanes_of(channels: int, max_padding: int) -> tuple[tuple[int, int], ...]:
    """Return the pairs (channels in parallel, channels of padding) with which a block can process ``channels``."""
    fewest = ((ceil_div(channels, folds), folds) for folds in range(1, channels + 1))
    pairs = {(count, folds * count - channels) for count, folds in fewest}
    return tuple(sorted((count, padding) for count, padding in pairs if padding <= max_padding))


@lru_cache(maxsize=4096)
def paddings(channels: int, max_padding: int) -> tuple[int, ...]:
    """Return the useful numbers of padding channels, 0 included: each allows another number of folds over the
    channels."""
    return tuple(sorted({padding for _, padding in lanes_of(channels, max_padding)}))


def candidates(graph: g.StreamGraph, index: int, board: Board, options: Options) -> list[g.Fold]:
    """Return all folds of block ``index`` that satisfy every constraint on a single block."""
    place = _Place(graph, index, board, options)
    return [fold for fold in _folds(place) if is_legal(graph, {index: fold}, index)]


@dataclass(frozen=True, eq=False)
class _Place:
    """A block whose folds are listed, with its graph, the board and the options of the search."""

    graph: g.StreamGraph
    index: int
    board: Board
    options: Options

    @property
    def block(self) -> g.Block:
        return self.graph.blocks[self.index]

    @property
    def channels(self) -> int:
        """The channels of the block's first input map."""
        return lanes.in_shape(self.graph, self.index).channels

    @property
    def read_padding(self) -> int:
        """The maximum padding channels of the block's input map. The input image has none unless ``pad_ends`` is
        set."""
        if self.options.pad_ends:
            return self.options.max_padding
        is_picture = any(_is_picture(self.graph, port) for port in self.block.inputs)
        return 0 if is_picture else self.options.max_padding

    @property
    def writes_output(self) -> bool:
        """Return whether a sink reads the block's output, which has no channel padding then unless ``pad_ends``."""
        sinks = (block for block in self.graph.blocks if isinstance(block.op, g.Sink))
        return not self.options.pad_ends and any(sink.inputs[0].block == self.index for sink in sinks)

    def pixel_counts(self, stride: int = 1) -> list[int]:
        """Return the possible pixels per stream word: 1, and the powers of two that divide the widths of all maps.

        They must also be multiples of ``stride``.
        """
        counts, m = [1], 2
        while m <= self.options.max_pixels:
            read = all(self.graph.type_of(port).shape.width % m == 0 for port in self.block.inputs)
            written = all(out.shape.width % max(1, m // stride) == 0 for out in self.block.outputs)
            if read and written and m % stride == 0:
                counts.append(m)
            m *= 2
        return counts

    @property
    def map_rams(self) -> list[str]:
        """The kinds of RAM that can store the map rows of a window."""
        return ["lutram", "bram"] + ["uram"] * (self.board.resources.uram > 0)

    @property
    def weight_memories(self) -> list[tuple[str, str]]:
        """The possible (memory, ram) of a unit's weights. For weights in DDR, ``ram`` stores the vectors that wait for
        them."""
        has_uram = self.board.resources.uram > 0
        if self.block.name in self.options.external:
            return [("external", "auto")] + [("external", "uram")] * has_uram
        on_chip = [("embedded", "lutram"), ("embedded", "bram"), ("decoupled", "bram")]
        return on_chip + [("decoupled", "uram")] * (has_uram and self.options.uram_weights)

    def multipliers(self, weight_bits: int) -> list[str]:
        """Return the possible kinds of multiplier of a unit, "dsp" and "lut". Operands of one bit need no DSP."""
        value_bits = self.graph.type_of(self.block.inputs[0]).datatype.bits
        return ["dsp", "lut"] if min(weight_bits, value_bits) > 1 else ["lut"]


def _is_picture(graph: g.StreamGraph, port: g.Port) -> bool:
    """Return whether the stream at ``port`` carries the input image, possibly windowed, duplicated or down-sampled."""
    block = graph.blocks[port.block]
    if isinstance(block.op, g.Source):
        return True
    return isinstance(block.op, (g.Window, g.Duplicate, g.DownSample)) and _is_picture(graph, block.inputs[0])


def _folds(place: _Place) -> Iterator[g.Fold]:
    """Yield the folds of a block to consider, including a few that violate constraints."""
    op = place.block.op
    match op:
        case g.Window():
            return _windows(place, op)
        case g.MatrixVector():
            return _matrix_vectors(place, op)
        case g.VectorVector():
            return _vector_vectors(place, op)
        case MaxPool():
            return _elementwise(place, op, op.stride)
        case g.Activate() | g.GlobalPool() | g.Add() | g.Multiply() | g.Duplicate():
            return _elementwise(place, op)
        case (
            g.Source()
            | g.Sink()
            | g.Discard()
            | g.Concat()
            | g.Split()
            | g.Reorg()
            | g.DepthToSpace()
            | g.Upsample()
            | g.DownSample()
            | g.LabelSelect()
            | g.Softmax()
            | g.Custom()
        ):
            return _movers(place, op)
        case _:
            assert_never(op)


def _windows(place: _Place, op: g.Window) -> Iterator[g.Fold]:
    pixels = place.pixel_counts(op.stride)
    for pad in paddings(place.channels, place.read_padding):
        for simd, ram in product(divisors(place.channels + pad), place.map_rams):
            yield g.Fold(simd=simd, ram=ram, pad_in=pad, pad_out=pad)
            for m in pixels:
                yield g.Fold(simd=simd, ram=ram, style="parallel", m=m, pad_in=pad, pad_out=pad)


def _matrix_vectors(place: _Place, op: g.MatrixVector) -> Iterator[g.Fold]:
    filters, channels = op.weights.shape[:2]
    bipolar = op.weight_type.few == "BIPOLAR"
    pads_in = (0,) if bipolar else paddings(channels, place.read_padding)
    rows = lanes_of(filters, 0 if place.writes_output else place.options.max_padding)
    kinds = list(product(_shared(place), place.weight_memories, place.multipliers(op.weight_type.bits)))
    for pad_in, (pe, pad_out) in product(pads_in, rows):
        columns = lanes.taps(place.block) * (channels + pad_in)
        for simd, ((m, pixels), (memory, ram), multiplier) in product(divisors(columns), kinds):
            yield g.Fold(pe, simd, pixels, "default", memory, ram, multiplier, m, pad_in, pad_out)


def _shared(place: _Place) -> Iterator[tuple[int, int]]:
    """Yield the pairs (``Fold.m``, ``Fold.pixels``): pixels per word and per read of the weights, of a matrix-vector
    unit."""
    block = place.block
    if lanes.in_shape(place.graph, place.index).width == block.outputs[0].shape.width:
        yield from ((m, m) for m in place.pixel_counts())
    else:
        yield 1, 1
    gathered = (pixels for pixels in (2, 4, 8, 16) if pixels <= place.options.max_pixels)
    yield from ((1, pixels) for pixels in gathered if lanes.positions(block) % pixels == 0)


def _vector_vectors(place: _Place, op: g.VectorVector) -> Iterator[g.Fold]:
    channels = place.block.outputs[0].shape.channels
    pads, taps = paddings(channels, place.read_padding), divisors(lanes.taps(place.block))
    kinds = list(product(("lutram", "bram"), place.multipliers(op.weight_type.bits)))
    for pad, simd, m in product(pads, taps, place.pixel_counts()):
        for pe, (ram, multiplier) in product(divisors(channels + pad), kinds):
            yield g.Fold(pe, simd, m, "default", "embedded", ram, multiplier, m, pad, pad)


def _elementwise(place: _Place, op: g.BlockOp, stride: int = 1) -> Iterator[g.Fold]:
    kind = kind_of(op)
    pixels = place.pixel_counts(stride) if kind.several_pixels else [1]
    pads = paddings(place.channels, 0 if place.writes_output else place.read_padding)
    for pad, m, ram in product(pads, pixels, kind.rams):
        for pe in divisors(place.channels + pad):
            yield g.Fold(pe=pe, m=m, ram=ram, pad_in=pad, pad_out=pad)


def _movers(place: _Place, op: g.BlockOp) -> Iterator[g.Fold]:
    """Yield the folds to consider of blocks that cannot have channel padding, among them the blocks of packages."""
    kind = kind_of(op)
    pixels = place.pixel_counts() if kind.several_pixels else [1]
    for m, count, ram in product(pixels, divisors(lanes.common_channels(place.graph, place.index)), kind.rams):
        yield replace(g.Fold(m=m, ram=ram), **{kind.reads: count, kind.writes: count})  # type: ignore[arg-type]
