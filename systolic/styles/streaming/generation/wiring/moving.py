"""The functions of blocks that only move values: width converters, windows, max pools, forks and reordering."""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace

from boards.errors import ConflictError, shown
from cnn.ops import MaxPool
from scheduler.hardware.primitives import MIN_FIFO_DEPTH
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from scheduler.streaming.blocks.packages import added_block, arguments_of
from scheduler.streaming.folded_block import FoldedBlock
from scheduler.streaming.model.converters import Converter, Edge, edge_of
from systolic.styles.streaming.generation.wiring.netlist import RAM, Call, Netlist, Site, carrier, map_wire

# --- between two blocks ----------------------------------------------------------------------------------------


def input_stream(net: Netlist, index: int, port: int) -> str:
    """Add the width converters before input ``port`` of block ``index``; return the name of the stream it reads.

    Without converters this is the stream of the writing block.
    """
    edge = edge_of(net.graph, net.folding.folds, index, port)
    datatype = net.graph.type_of(edge.source).datatype
    stream, *converted = edge_wires(edge)
    for wire, converter in zip(converted, edge.converters, strict=True):
        net.wire(wire, carrier(datatype, converter.lanes_out))
        _convert(net, f"{converter.kind}_{wire}", converter, stream, wire)
        stream = wire
    _use_estimated_depth(net, index, port, stream)
    return stream


def edge_wires(edge: Edge) -> list[str]:
    """Return the names of the streams from one block to the next: the writer's, and one after each converter."""
    block = edge.graph.blocks[edge.reader]
    name = f"{block.name}_{edge.port}" if len(block.inputs) > 1 else block.name
    steps = (f"_{step}" if step else "" for step in range(len(edge.converters)))
    return [map_wire(edge.graph, edge.source), *(f"to_{name}{suffix}" for suffix in steps)]


def _use_estimated_depth(net: Netlist, index: int, port: int, stream: str) -> None:
    """Give a stream the FIFO depth that the folding estimates, unless ``net.depths`` has one from a trace.

    At a join, the FIFO of the shorter path must hold words until the longer path has written its first one.
    """
    estimated = {(block, place): depth for block, place, depth in net.folding.depths}
    if stream not in net.depths and (index, port) in estimated:
        net.wires[stream] = replace(net.wires[stream], depth=max(MIN_FIFO_DEPTH, estimated[index, port]))


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
    """The sizes of a C++ function ``convert_pixels``, which changes the pixels per stream word.

    Attributes:
        lanes: Channels per pixel of a word.
        channels: Channels of the map.
        m_in: Pixels per input word.
        m_out: Pixels per output word.
        pixels: Pixels per frame.
    """

    lanes: int
    channels: int
    m_in: int
    m_out: int
    pixels: int


def convert_pixels(net: Netlist, name: str, words: PixelWords, read: str, written: str) -> None:
    """Add to the pipeline a function that changes the pixels per word, from stream ``read`` to ``written``."""
    text = f"words of {words.m_in} pixel(s) into words of {words.m_out}"
    net.add(name, Call("convert_pixels", "width.h", astuple(words)), [("in", read), ("out", written)], text)


# --- windows ---------------------------------------------------------------------------------------------------


def window(net: Netlist, site: Site, op: g.Window) -> None:
    """Add to the pipeline a sliding window (line buffer), which writes one tap or all taps per cycle."""
    fold = site.fold
    around = (op.padding.top, op.padding.left, op.padding.bottom, op.padding.right)
    sizes = (fold.simd, *net.map_in(site), *op.kernel, op.stride, *around, op.dilation)
    held = (op.around,) * bool(op.around)
    if fold.style == "parallel":
        call = Call("window_parallel", "window.h", (fold.m, *sizes, RAM[fold.ram], *held))
        pace = f"all taps of {fold.simd} channels per cycle, {fold.m} position(s)"
    else:
        call = Call("window_default", "window.h", (*sizes, op.depthwise, RAM[fold.ram], *held))
        pace = f"{fold.simd} channels of a tap per cycle"
    reason = f"{op.kernel[0]}×{op.kernel[1]} window, stride {op.stride}: {pace}"
    net.add(site.block.name, call, site.ends, reason)


def max_pool(net: Netlist, site: Site, op: MaxPool) -> None:
    """Add to the pipeline the function of a max pool over rows and columns."""
    fold = site.fold
    around = (op.padding.top, op.padding.left, op.padding.bottom, op.padding.right)
    sizes = (fold.m, fold.pe, *net.map_in(site), *op.window, op.stride, *around, RAM[fold.ram])
    reason = f"{op.window[0]}×{op.window[1]} max pool, stride {op.stride}"
    net.add(site.block.name, Call("max_pool", "max_pool.h", sizes), site.ends, reason)


# --- forks, joins, orders --------------------------------------------------------------------------------------


def duplicate(net: Netlist, site: Site) -> None:
    """Add to the pipeline a function that copies one stream to several readers."""
    call = Call("duplicate", "duplicate.h", (_lanes(site), _words(net, site)))
    _add_in_order(net, site, call, "one stream to several readers")


def discard(net: Netlist, site: Site) -> None:
    """Add to the pipeline a function that reads and drops a stream that no block reads."""
    call = Call("discard", "discard.h", (_lanes(site), _words(net, site)))
    _add_in_order(net, site, call, "drops channels that no block reads")


def concat(net: Netlist, site: Site) -> None:
    """Add to the pipeline a function that concatenates the channels of several maps."""
    shape = site.block.outputs[0].shape
    parts = tuple(kind.shape.channels for kind in net.graph.inputs_of(site.block))
    call = Call("concat", "concat.h", (_lanes(site), shape.height * shape.width, *parts))
    ends = [("out", site.writes[0]), *((f"in{i}", name) for i, name in enumerate(site.reads))]
    net.add(site.block.name, call, ends, "concatenates the channels of several maps")


def split(net: Netlist, site: Site, op: g.Split) -> None:
    """Add to the pipeline a function that splits the channels of a map into parts, one stream per part."""
    shape = site.block.outputs[0].shape
    call = Call("split", "split.h", (_lanes(site), shape.height * shape.width, *op.parts))
    _add_in_order(net, site, call, "splits the channels of a map")


def reorg(net: Netlist, site: Site, op: g.Reorg) -> None:
    """Add to the pipeline a space-to-depth function, in darknet's order of channels or block by block."""
    call = Call(f"reorg_{op.order}", "reorg.h", (_lanes(site), *net.map_in(site), op.stride, RAM[site.fold.ram]))
    _add_in_order(net, site, call, "space to depth")


def depth_to_space(net: Netlist, site: Site, op: g.DepthToSpace) -> None:
    """Add to the pipeline a depth-to-space function, which turns a pixel's channels into a block of pixels."""
    sizes = (_lanes(site), *net.map_in(site), op.rows, op.columns, RAM[site.fold.ram])
    _add_in_order(net, site, Call("depth_to_space", "reorg.h", sizes), "depth to space")


def upsample(net: Netlist, site: Site, op: g.Upsample) -> None:
    """Add to the pipeline a nearest-neighbour upsampling, which repeats every pixel in rows and columns."""
    sizes, ram = (_lanes(site), *net.map_in(site)), RAM[site.fold.ram]
    call = Call("upsample", "upsample.h", (*sizes, op.rows, ram))
    if op.columns != op.rows:
        larger = site.block.outputs[0].shape
        call = Call("resize_nearest", "resize.h", (*sizes, larger.height, larger.width, ram))
    _add_in_order(net, site, call, "every pixel repeated")


def down_sample(net: Netlist, site: Site, op: g.DownSample) -> None:
    """Add to the pipeline a function that keeps every n-th pixel of every n-th row, where n is the stride."""
    call = Call("down_sample", "down_sample.h", (_lanes(site), *net.map_in(site), op.stride))
    _add_in_order(net, site, call, f"every {op.stride}th pixel and row")


def custom(net: Netlist, site: Site, op: g.Custom) -> None:
    """Add to the pipeline the function of a layer that another package defines, and that package's headers.

    Raises:
        ConflictError: Two packages have different headers of one name.
    """
    block = added_block(op)
    for name, text in block.files.items():
        if net.headers.setdefault(name, text) != text:
            raise ConflictError(
                (f"the header {shown(name)} of one package", "the header of the same name of another package"),
                "a design has one folder for all headers",
                where=f"{site.block.source}: {site.block.name}",
                remedy="give one of them another name",
            )
    arguments = arguments_of(FoldedBlock(net.graph, net.folding.folds, site.index))
    _add_in_order(net, site, Call(block.function, block.header, arguments), f"layer {op.layer} of a package")


def _lanes(site: Site) -> int:
    return lanes.in_lanes(site.block, site.fold)


def _words(net: Netlist, site: Site) -> int:
    values, height, width = net.map_in(site)
    return values * height * width // _lanes(site)


def _add_in_order(net: Netlist, site: Site, call: Call, reason: str) -> None:
    """Add a block whose C++ call has the ports in or in0, in1, …, then out or out0, out1, …"""
    ins = [("in" if len(site.reads) == 1 else f"in{i}", name) for i, name in enumerate(site.reads)]
    outs = [("out" if len(site.writes) == 1 else f"out{i}", name) for i, name in enumerate(site.writes)]
    net.add(site.block.name, call, [*ins, *outs], reason)
