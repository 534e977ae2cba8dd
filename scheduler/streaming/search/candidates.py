"""Every fold that a block may take: legal by construction, so that a search only has to choose.

Where channels may be padded, of all paddings that give the same number of folds the least is taken: PE = ⌈C / folds⌉,
padding = folds · PE − C. A larger PE for the same folds takes more and saves no cycle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from boards.board import Board
from cnn.network import MaxPool
from scheduler.hardware.arithmetic import ceil_div
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from scheduler.streaming.rules import WIDEST_WORD, Site


@dataclass(frozen=True)
class Options:
    """What a search may use.

    max_padding: channels that may be added to a map; pad_ends: also to what the network's first blocks read and its
    last ones give. max_pixels: M and PIXELS, powers of two. external: names of layers whose weights stay in DDR.
    uram_weights: URAM for weights, which have to be written at the start, because URAM has no initial contents (UG573).
    """

    max_padding: int = 0
    pad_ends: bool = False
    max_pixels: int = 2
    external: tuple[str, ...] = ()
    uram_weights: bool = True


@lru_cache(maxsize=4096)
def divisors(value: int) -> tuple[int, ...]:
    return tuple(d for d in range(1, value + 1) if value % d == 0)


@lru_cache(maxsize=4096)
def lanes_of(channels: int, max_padding: int) -> tuple[tuple[int, int], ...]:
    """(lanes, padding) that fold ``channels``."""
    found = {(d, 0) for d in divisors(channels)}
    for folds in range(1, channels + 1):
        taken = ceil_div(channels, folds)
        padding = folds * taken - channels
        if 0 < padding <= max_padding:
            found.add((taken, padding))
    return tuple(sorted(found))


@lru_cache(maxsize=4096)
def paddings(channels: int, max_padding: int) -> tuple[int, ...]:
    return tuple(sorted({padding for _, padding in lanes_of(channels, max_padding)}))


def candidates(graph: g.StreamGraph, index: int, board: Board, options: Options) -> list[g.Fold]:
    """Folds of block ``index`` that keep every row of the constraint table that looks at one block."""
    return [fold for fold in _folds(graph, index, board, options) if _narrow(graph, index, fold)]


def _narrow(graph: g.StreamGraph, index: int, fold: g.Fold) -> bool:
    """No word is wider than the table allows."""
    return Site(graph, {index: fold}, index).bits <= WIDEST_WORD


def _folds(graph: g.StreamGraph, index: int, board: Board, options: Options) -> Iterator[g.Fold]:
    op = graph.blocks[index].op
    if isinstance(op, g.Window):
        yield from _windows(graph, index, op, board, options)
    elif isinstance(op, g.MatrixVector):
        yield from _matrix_vectors(graph, index, op, board, options)
    elif isinstance(op, g.VectorVector):
        yield from _vector_vectors(graph, index, options)
    elif isinstance(op, (MaxPool, g.GlobalPool, g.Activate, g.Add, g.Duplicate)):
        yield from _elementwise(graph, index, op, options)
    else:
        yield from _movers(graph, index, op, options)


def _ms(graph: g.StreamGraph, index: int, options: Options, stride: int = 1) -> list[int]:
    """M that divide the widths of what comes and of what leaves."""
    block = graph.blocks[index]
    found, m = [1], 2
    while m <= options.max_pixels:
        comes = all(graph.type_of(port).shape.width % m == 0 for port in block.inputs)
        leaves = all(out.shape.width % max(1, m // stride) == 0 for out in block.outputs)
        if comes and leaves and m % stride == 0:
            found.append(m)
        m *= 2
    return found


def _pads(graph: g.StreamGraph, index: int, options: Options) -> int:
    """max_padding of what block ``index`` reads: none behind the source, unless the ends may be padded."""
    block = graph.blocks[index]
    if options.pad_ends:
        return options.max_padding
    return 0 if any(_from_source(graph, port) for port in block.inputs) else options.max_padding


def _from_source(graph: g.StreamGraph, port: g.Port) -> bool:
    """Whether the map is the picture, as it came or gathered."""
    block = graph.blocks[port.block]
    if isinstance(block.op, g.Source):
        return True
    return isinstance(block.op, (g.Window, g.Duplicate, g.DownSample)) and _from_source(graph, block.inputs[0])


def _to_sink(graph: g.StreamGraph, index: int) -> bool:
    return any(isinstance(b.op, g.Sink) and b.inputs[0].block == index for b in graph.blocks)


def _rams(board: Board, options: Options) -> list[tuple[str, str]]:
    """(memory, ram) of weights."""
    found = [("embedded", "lutram"), ("embedded", "bram"), ("decoupled", "bram")]
    return found + [("decoupled", "uram")] * (board.resources.uram > 0 and options.uram_weights)


def _far(board: Board) -> list[tuple[str, str]]:
    """(memory, ram) of weights in DDR: the RAM is that of the vectors which wait for them (resident)."""
    return [("external", "auto")] + [("external", "uram")] * (board.resources.uram > 0)


def _maps(board: Board) -> list[str]:
    """RAM of rows of maps."""
    return ["lutram", "bram"] + ["uram"] * (board.resources.uram > 0)


def _windows(graph: g.StreamGraph, index: int, op: g.Window, board: Board, options: Options) -> Iterator[g.Fold]:
    channels = lanes.in_shape(graph, index).channels
    ms = _ms(graph, index, options, op.stride)
    for pad in paddings(channels, _pads(graph, index, options)):
        for simd, ram in product(divisors(channels + pad), _maps(board)):
            yield g.Fold(simd=simd, ram=ram, pad_in=pad, pad_out=pad)
            for m in ms:
                yield g.Fold(simd=simd, ram=ram, style="parallel", m=m, pad_in=pad, pad_out=pad)


def _matrix_vectors(
    graph: g.StreamGraph, index: int, op: g.MatrixVector, board: Board, options: Options
) -> Iterator[g.Fold]:
    block = graph.blocks[index]
    filters, channels = op.weights.shape[:2]
    bipolar = op.weight_type.few == "BIPOLAR"
    pads_in = (0,) if bipolar else paddings(channels, _pads(graph, index, options))
    pads_out = 0 if _to_sink(graph, index) and not options.pad_ends else options.max_padding
    multipliers = (
        ["dsp", "lut"] if min(op.weight_type.bits, graph.type_of(block.inputs[0]).datatype.bits) > 1 else ["lut"]
    )
    rams = _far(board) if block.name in options.external else _rams(board, options)
    pixels = list(_pixels(graph, index, options))
    for pad_in, (pe, pad_out) in product(pads_in, lanes_of(filters, pads_out)):
        columns = lanes.taps(block) * (channels + pad_in)
        for simd, (m, share), (memory, ram), by in product(divisors(columns), pixels, rams, multipliers):
            yield g.Fold(pe, simd, share, "default", memory, ram, by, m, pad_in, pad_out)


def _pixels(graph: g.StreamGraph, index: int, options: Options) -> Iterator[tuple[int, int]]:
    """(m, pixels)."""
    block = graph.blocks[index]
    spots = lanes.positions(block)
    if lanes.in_shape(graph, index).width == block.outputs[0].shape.width:
        yield from ((m, m) for m in _ms(graph, index, options))
    else:
        yield 1, 1
    shares = (2**k for k in range(1, 5))
    yield from ((1, p) for p in shares if p <= options.max_pixels and spots % p == 0)


def _vector_vectors(graph: g.StreamGraph, index: int, options: Options) -> Iterator[g.Fold]:
    block = graph.blocks[index]
    assert isinstance(block.op, g.VectorVector)
    channels = block.outputs[0].shape.channels
    bits = block.op.weight_type.bits, graph.type_of(block.inputs[0]).datatype.bits
    multipliers = ["dsp", "lut"] if min(bits) > 1 else ["lut"]
    shapes = product(
        paddings(channels, _pads(graph, index, options)),
        divisors(lanes.taps(block)),
        _ms(graph, index, options),
    )
    for pad, simd, m in shapes:
        for pe, ram, by in product(divisors(channels + pad), ("lutram", "bram"), multipliers):
            yield g.Fold(pe, simd, m, "default", "embedded", ram, by, m, pad, pad)


def _elementwise(graph: g.StreamGraph, index: int, op: g.BlockOp, options: Options) -> Iterator[g.Fold]:
    channels = lanes.in_shape(graph, index).channels
    ms = (
        [1] if isinstance(op, g.GlobalPool) else _ms(graph, index, options, op.stride if isinstance(op, MaxPool) else 1)
    )
    rams = ("lutram", "bram") if isinstance(op, MaxPool) else ("auto",)
    most = 0 if _to_sink(graph, index) and not options.pad_ends else _pads(graph, index, options)
    for pad, m, ram in product(paddings(channels, most), ms, rams):
        for pe in divisors(channels + pad):
            yield g.Fold(pe=pe, m=m, ram=ram, pad_in=pad, pad_out=pad)


def _movers(graph: g.StreamGraph, index: int, op: g.BlockOp, options: Options) -> Iterator[g.Fold]:
    block = graph.blocks[index]
    whole = block.outputs[0].shape.channels if isinstance(op, g.Source) else lanes.in_shape(graph, index).channels
    sizes = _parts(graph, index, op) or (whole,)
    for simd in divisors(min(sizes)):
        if any(size % simd for size in sizes) or not _darknet(graph, index, op, simd):
            continue
        by_pe = isinstance(op, g.LabelSelect)
        for ram in ("lutram", "bram") if isinstance(op, (g.Reorg, g.Upsample)) else ("auto",):
            yield g.Fold(pe=simd if by_pe else 1, simd=1 if by_pe else simd, ram=ram)
    if isinstance(op, (g.Source, g.Sink)):
        yield from (g.Fold(simd=whole, m=m) for m in _ms(graph, index, options) if m > 1)


def _parts(graph: g.StreamGraph, index: int, op: g.BlockOp) -> tuple[int, ...]:
    if isinstance(op, g.Split):
        return op.parts
    if isinstance(op, g.Concat):
        return tuple(kind.shape.channels for kind in graph.inputs_of(graph.blocks[index]))
    return ()


def _darknet(graph: g.StreamGraph, index: int, op: g.BlockOp, simd: int) -> bool:
    if not isinstance(op, g.Reorg) or op.order != "darknet" or simd == 1:
        return True
    return lanes.in_shape(graph, index).height % op.stride**2 == 0
