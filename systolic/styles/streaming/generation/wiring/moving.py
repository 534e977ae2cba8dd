"""Blocks that move values and compute nothing: width converters, windows, pools, forks and what reorders a map."""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace

from boards.errors import ConflictError, shown
from cnn.ops import MaxPool
from scheduler.hardware.primitives import LEAST_FIFO_DEPTH
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from scheduler.streaming.blocks.packages import added_block, arguments_of
from scheduler.streaming.folded_block import FoldedBlock
from scheduler.streaming.model.converters import Converter, Edge, edge_of
from systolic.styles.streaming.generation.wiring.netlist import RAM, Call, Netlist, Site, carrier, map_wire

# --- between two blocks ----------------------------------------------------------------------------------------


def arriving(net: Netlist, index: int, port: int) -> str:
    """The stream before input ``port``: the writer's, or that of the last converter behind it."""
    edge = edge_of(net.graph, net.folding.folds, index, port)
    datatype = net.graph.type_of(edge.source).datatype
    stream, *converted = edge_wires(edge)
    for wire, converter in zip(converted, edge.converters, strict=True):
        net.wire(wire, carrier(datatype, converter.lanes_out))
        _convert(net, f"{converter.kind}_{wire}", converter, stream, wire)
        stream = wire
    _deepen(net, index, port, stream)
    return stream


def edge_wires(edge: Edge) -> list[str]:
    """The streams between two blocks, from the writer's on: one more than there are converters."""
    block = edge.graph.blocks[edge.reader]
    name = f"{block.name}_{edge.port}" if len(block.inputs) > 1 else block.name
    steps = (f"_{step}" if step else "" for step in range(len(edge.converters)))
    return [map_wire(edge.graph, edge.source), *(f"to_{name}{suffix}" for suffix in steps)]


def _deepen(net: Netlist, index: int, port: int, stream: str) -> None:
    """To what the search estimates before there is a trace: at joins, a path waits for the longer one."""
    estimated = {(block, place): depth for block, place, depth in net.folding.depths}
    if stream not in net.depths and (index, port) in estimated:
        net.wires[stream] = replace(net.wires[stream], depth=max(LEAST_FIFO_DEPTH, estimated[index, port]))


def _convert(net: Netlist, name: str, converter: Converter, read: str, written: str) -> None:
    if converter.kind == "pixels":
        words = PixelWords(
            converter.lanes_in // converter.m_in,
            converter.channels_in,
            converter.m_in,
            converter.m_out,
            converter.pixels,
        )
        convert_pixels(net, name, words, read, written)
        return
    sizes = (converter.lanes_in, converter.lanes_out)
    text = f"words of {sizes[0]} values into words of {sizes[1]}"
    call = Call("convert_width", "width.h", (*sizes, converter.words_in))
    if converter.kind == "channels":
        channels = (converter.channels_in, converter.channels_out)
        call = Call("convert_channels", "width.h", (*sizes, *channels, converter.pixels))
        text = f"{text}, {channels[0]} channels into {channels[1]}"
    net.add(name, call, [("in", read), ("out", written)], text)


@dataclass(frozen=True)
class PixelWords:
    """lanes: of a pixel. m_in, m_out: pixels of a word before and behind. pixels: of a frame."""

    lanes: int
    channels: int
    m_in: int
    m_out: int
    pixels: int


def convert_pixels(net: Netlist, name: str, words: PixelWords, read: str, written: str) -> None:
    """Words of some pixels into words of others, from stream ``read`` to stream ``written``."""
    text = f"words of {words.m_in} pixel(s) into words of {words.m_out}"
    net.add(name, Call("convert_pixels", "width.h", astuple(words)), [("in", read), ("out", written)], text)


# --- windows ---------------------------------------------------------------------------------------------------


def window(net: Netlist, site: Site, op: g.Window) -> None:
    """A tap a cycle, or all of them."""
    fold = site.fold
    around = (op.padding.top, op.padding.left, op.padding.bottom, op.padding.right)
    sizes = (fold.simd, *net.map_in(site), *op.kernel, op.stride, *around, op.dilation)
    held = (op.around,) * bool(op.around)
    if fold.style == "parallel":
        call = Call("window_parallel", "window.h", (fold.m, *sizes, RAM[fold.ram], *held))
        pace = f"all taps of {fold.simd} channels a cycle, {fold.m} position(s)"
    else:
        call = Call("window_default", "window.h", (*sizes, op.depthwise, RAM[fold.ram], *held))
        pace = f"{fold.simd} channels of a tap a cycle"
    reason = f"{op.kernel[0]}×{op.kernel[1]} window, stride {op.stride}: {pace}"
    net.add(site.block.name, call, site.ends, reason)


def max_pool(net: Netlist, site: Site, op: MaxPool) -> None:
    """Rows and columns at once."""
    fold = site.fold
    around = (op.padding.top, op.padding.left, op.padding.bottom, op.padding.right)
    sizes = (fold.m, fold.pe, *net.map_in(site), *op.window, op.stride, *around, RAM[fold.ram])
    reason = f"{op.window[0]}×{op.window[1]} max pool, stride {op.stride}"
    net.add(site.block.name, Call("max_pool", "max_pool.h", sizes), site.ends, reason)


# --- forks, joins, orders --------------------------------------------------------------------------------------


def duplicate(net: Netlist, site: Site) -> None:
    """One stream to several readers."""
    call = Call("duplicate", "duplicate.h", (_lanes(site), _words(net, site)))
    _several(net, site, call, "one stream to several readers")


def discard(net: Netlist, site: Site) -> None:
    """Words that nobody reads, dropped."""
    call = Call("discard", "discard.h", (_lanes(site), _words(net, site)))
    _several(net, site, call, "nobody reads these channels")


def concat(net: Netlist, site: Site) -> None:
    """Streams one after the other along the channels."""
    shape = site.block.outputs[0].shape
    parts = tuple(kind.shape.channels for kind in net.graph.inputs_of(site.block))
    call = Call("concat", "concat.h", (_lanes(site), shape.height * shape.width, *parts))
    ends = [("out", site.writes[0]), *((f"in{i}", name) for i, name in enumerate(site.reads))]
    net.add(site.block.name, call, ends, "channels of one map behind those of another")


def split(net: Netlist, site: Site, op: g.Split) -> None:
    """The channels cut into parts, a stream each."""
    shape = site.block.outputs[0].shape
    call = Call("split", "split.h", (_lanes(site), shape.height * shape.width, *op.parts))
    _several(net, site, call, "the channels of a map in parts")


def reorg(net: Netlist, site: Site, op: g.Reorg) -> None:
    """Space to depth, in darknet's order or block by block."""
    call = Call(f"reorg_{op.order}", "reorg.h", (_lanes(site), *net.map_in(site), op.stride, RAM[site.fold.ram]))
    _several(net, site, call, "space to depth")


def depth_to_space(net: Netlist, site: Site, op: g.DepthToSpace) -> None:
    """The channels of a pixel side by side and below each other."""
    sizes = (_lanes(site), *net.map_in(site), op.rows, op.columns, RAM[site.fold.ram])
    _several(net, site, Call("depth_to_space", "reorg.h", sizes), "depth to space")


def upsample(net: Netlist, site: Site, op: g.Upsample) -> None:
    """Every pixel repeated, in its row and row by row."""
    sizes, ram = (_lanes(site), *net.map_in(site)), RAM[site.fold.ram]
    call = Call("upsample", "upsample.h", (*sizes, op.rows, ram))
    if op.columns != op.rows:
        larger = site.block.outputs[0].shape
        call = Call("resize_nearest", "resize.h", (*sizes, larger.height, larger.width, ram))
    _several(net, site, call, "every pixel repeated")


def down_sample(net: Netlist, site: Site, op: g.DownSample) -> None:
    """Every so many pixels and rows, the others dropped."""
    call = Call("down_sample", "down_sample.h", (_lanes(site), *net.map_in(site), op.stride))
    _several(net, site, call, f"every {op.stride}th pixel and row")


def custom(net: Netlist, site: Site, op: g.Custom) -> None:
    """A package's function, with its header."""
    block = added_block(op)
    for name, text in block.files.items():
        if net.headers.setdefault(name, text) != text:
            raise ConflictError(
                (f"the header {shown(name)} of one package", "that of another package"),
                "a design has one folder for all headers",
                where=f"{site.block.source}: {site.block.name}",
                remedy="give one of them another name",
            )
    arguments = arguments_of(FoldedBlock(net.graph, net.folding.folds, site.index))
    _several(net, site, Call(block.function, block.header, arguments), f"{op.layer}, of a package")


def _lanes(site: Site) -> int:
    return lanes.in_lanes(site.block, site.fold)


def _words(net: Netlist, site: Site) -> int:
    values, height, width = net.map_in(site)
    return values * height * width // _lanes(site)


def _several(net: Netlist, site: Site, call: Call, reason: str) -> None:
    """A block whose inputs and outputs stand one after the other in its call."""
    ins = [("in" if len(site.reads) == 1 else f"in{i}", name) for i, name in enumerate(site.reads)]
    outs = [("out" if len(site.writes) == 1 else f"out{i}", name) for i, name in enumerate(site.writes)]
    net.add(site.block.name, call, [*ins, *outs], reason)
