"""Blocks that move values and compute nothing: width converters, windows, pools, forks and what reorders a map."""

from __future__ import annotations

from dataclasses import replace

from cnn.network import MaxPool
from scheduler.hardware.primitives import LEAST_FIFO_DEPTH
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from scheduler.streaming.model.converters import Converter, edge_of
from systolic.styles.streaming.netlist import RAM, Netlist, Site, carrier, map_wire

# --- between two blocks ----------------------------------------------------------------------------------------


def arriving(net: Netlist, index: int, port: int) -> str:
    """The stream before input ``port``: the writer's, or that of the last converter behind it."""
    block = net.graph.blocks[index]
    source = block.inputs[port]
    stream = map_wire(net.graph, source)
    datatype = net.graph.type_of(source).datatype
    name = f"{block.name}_{port}" if len(block.inputs) > 1 else block.name
    for step, how in enumerate(edge_of(net.graph, net.folding.folds, index, port).converters):
        mark = f"_{step}" if step else ""
        to = net.wire(f"to_{name}{mark}", carrier(datatype, how.lanes_out))
        _convert(net, f"{how.kind}_to_{name}{mark}", stream, to, how)
        stream = to
    _deepen(net, index, port, stream)
    return stream


def _deepen(net: Netlist, index: int, port: int, stream: str) -> None:
    """To what the folder estimates before there is a trace: at joins, a path waits for the longer one."""
    estimated = {(block, at): depth for block, at, depth in net.folding.depths}
    if stream not in net.depths and (index, port) in estimated:
        net.wires[stream] = replace(net.wires[stream], depth=max(LEAST_FIFO_DEPTH, estimated[index, port]))


def _convert(net: Netlist, name: str, of: str, to: str, how: Converter) -> None:
    ends, widths = [("in", of), ("out", to)], (how.lanes_in, how.lanes_out)
    text = f"words of {how.lanes_in} values into words of {how.lanes_out}"
    if how.kind == "width":
        net.add(name, "convert_width", "width.h", (*widths, how.words_in), ends, text)
    elif how.kind == "channels":
        sizes = (*widths, how.channels_in, how.channels_out, how.pixels)
        more = f"{text}, {how.channels_in} channels into {how.channels_out}"
        net.add(name, "convert_channels", "width.h", sizes, ends, more)
    else:
        sizes = (how.lanes_in // how.m_in, how.channels_in, how.m_in, how.m_out, how.pixels)
        convert_pixels(net, name, sizes, of, to)


def convert_pixels(net: Netlist, name: str, sizes: tuple[int, int, int, int, int], of: str, to: str) -> None:
    """sizes: lanes of a pixel, channels, pixels a word before and behind, pixels a frame."""
    text = f"words of {sizes[2]} pixel(s) into words of {sizes[3]}"
    net.add(name, "convert_pixels", "width.h", sizes, [("in", of), ("out", to)], text)


# --- windows ---------------------------------------------------------------------------------------------------


def window(net: Netlist, at: Site) -> None:
    op, fold = at.block.op, at.fold
    assert isinstance(op, g.Window)
    around = (op.padding.top, op.padding.left, op.padding.bottom, op.padding.right)
    sizes = (fold.simd, *net.map_in(at), *op.kernel, op.stride, *around, op.dilation)
    text = f"{op.kernel[0]}×{op.kernel[1]} window, stride {op.stride}"
    if fold.style == "parallel":
        more = f"{text}: all taps of {fold.simd} channels a cycle, {fold.m} position(s)"
        net.add(at.block.name, "window_parallel", "window.h", (fold.m, *sizes, RAM[fold.ram]), at.ends, more)
    else:
        more = f"{text}: {fold.simd} channels of a tap a cycle"
        arguments = (*sizes, op.depthwise, RAM[fold.ram])
        net.add(at.block.name, "window_default", "window.h", arguments, at.ends, more)


def max_pool(net: Netlist, at: Site) -> None:
    op, fold = at.block.op, at.fold
    assert isinstance(op, MaxPool)
    around = (op.padding.top, op.padding.left, op.padding.bottom, op.padding.right)
    sizes = (fold.m, fold.pe, *net.map_in(at), op.size, op.stride, *around, RAM[fold.ram])
    text = f"{op.size}×{op.size} max pool, stride {op.stride}"
    net.add(at.block.name, "max_pool", "max_pool.h", sizes, at.ends, text)


# --- forks, joins, orders --------------------------------------------------------------------------------------


def duplicate(net: Netlist, at: Site) -> None:
    _several(net, at, "duplicate", (_lanes(at), _words(net, at)), "one stream to several readers")


def discard(net: Netlist, at: Site) -> None:
    _several(net, at, "discard", (_lanes(at), _words(net, at)), "nobody reads these channels")


def concat(net: Netlist, at: Site) -> None:
    shape = at.block.outputs[0].shape
    parts = tuple(kind.shape.channels for kind in net.graph.inputs_of(at.block))
    sizes = (_lanes(at), shape.height * shape.width, *parts)
    ports = [("out", at.given[0]), *((f"in{i}", name) for i, name in enumerate(at.taken))]
    net.add(at.block.name, "concat", "concat.h", sizes, ports, "channels of one map behind those of another")


def split(net: Netlist, at: Site) -> None:
    assert isinstance(at.block.op, g.Split)
    shape = at.block.outputs[0].shape
    sizes = (_lanes(at), shape.height * shape.width, *at.block.op.parts)
    _several(net, at, "split", sizes, "the channels of a map in parts")


def reorg(net: Netlist, at: Site) -> None:
    assert isinstance(at.block.op, g.Reorg)
    sizes = (_lanes(at), *net.map_in(at), at.block.op.stride, RAM[at.fold.ram])
    _several(net, at, f"reorg_{at.block.op.order}", sizes, "space to depth", header="reorg.h")


def upsample(net: Netlist, at: Site) -> None:
    assert isinstance(at.block.op, g.Upsample)
    sizes = (_lanes(at), *net.map_in(at), at.block.op.stride, RAM[at.fold.ram])
    _several(net, at, "upsample", sizes, "every pixel repeated")


def down_sample(net: Netlist, at: Site) -> None:
    assert isinstance(at.block.op, g.DownSample)
    sizes = (_lanes(at), *net.map_in(at), at.block.op.stride)
    _several(net, at, "down_sample", sizes, f"every {at.block.op.stride}th pixel and row")


def _lanes(at: Site) -> int:
    return lanes.in_lanes(at.block, at.fold)


def _words(net: Netlist, at: Site) -> int:
    values, height, width = net.map_in(at)
    return values * height * width // _lanes(at)


def _several(net: Netlist, at: Site, function: str, sizes: tuple[object, ...], reason: str, header: str = "") -> None:
    """A block whose inputs and outputs stand one after the other in its call."""
    ins = [("in" if len(at.taken) == 1 else f"in{i}", name) for i, name in enumerate(at.taken)]
    outs = [("out" if len(at.given) == 1 else f"out{i}", name) for i, name in enumerate(at.given)]
    net.add(at.block.name, function, header or f"{function}.h", sizes, [*ins, *outs], reason)
