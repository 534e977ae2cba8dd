"""Folding → the pipeline's functions and streams: a block is one function or a few, a stream has one writer and reader.

before                                       after
block                                        its function of hls_templates/streaming
block whose reader takes other words         … and a width converter
unit with decoupled or external weights      … and a weight streamer
source, sinks                                beats of the DMA unpacked and packed
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import GenerateError
from cnn.accumulator import magnitude
from cnn.datatype import DataType
from cnn.network import MaxPool
from cnn.quantized import IntArray, Requantising
from hls_templates.pipeline import Constant, Element, Instance, Memory, Packet, PortOf, Tap, Wire
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from scheduler.streaming.weight_image import weight_image
from systolic.streaming import constants as c

LEAST_DEPTH = 2
"""FIFO depth that lets both ends work in every cycle (docs/cycles.md)."""

LEAST_BEAT, WIDEST_BEAT = 8, 128
"""Bytes of a beat of AXI DMA: 32 to 1024 bits (PG021); 8 is what a high-performance port takes."""


IMAGE_BEAT = 16
"""Bytes of a beat of weights from DDR: what a high-performance port takes."""


@dataclass(frozen=True, eq=False)
class Wiring:
    """Everything of the pipeline's top function. layers: node of each tap. sinks: blocks whose maps leave, in order.

    images: what the m_axi ports of weights point to, in the order of those ports.
    """

    instances: tuple[Instance, ...]
    wires: tuple[Wire, ...]
    constants: tuple[Constant, ...]
    packet_in: Packet
    packet_out: Packet
    layers: tuple[int, ...]
    sinks: tuple[int, ...]
    images: tuple[npt.NDArray[np.uint8], ...]


def wire_up(folding: g.StreamingFolding, depths: Mapping[str, int], dsp: str) -> Wiring:
    """The pipeline of a folding.

    depths: of FIFOs by name, where they are not the least. dsp: DSP48E1 or DSP48E2.
    GenerateError where a block cannot be wired.
    """
    made = _Pipeline(folding, depths, dsp)
    for index in range(len(folding.graph.blocks)):
        made.block(index)
    made.leave()
    return Wiring(
        tuple(made.instances), tuple(made.wires.values()), tuple(made.constants), made.packet_in, made.packet_out,
        tuple(made.layers), tuple(made.sinks), tuple(made.images),
    )  # fmt: skip


def map_wire(graph: g.StreamGraph, port: g.Port) -> str:
    """The stream that carries output ``port``."""
    block = graph.blocks[port.block]
    return f"from_{block.name}" + (f"_{port.output}" if len(block.outputs) > 1 else "")


def carrier(datatype: DataType, lanes: int) -> Element:
    """How a value travels: BIPOLAR as one unsigned bit."""
    return Element(datatype.bits, datatype.signed and datatype.few != "BIPOLAR", lanes)


def beat_bytes(lanes: int) -> int:
    """The least beat that a word of so many bytes fits into."""
    beat = LEAST_BEAT
    while beat < lanes:
        beat *= 2
    if beat > WIDEST_BEAT:
        raise GenerateError(
            f"a word of {lanes} bytes at the DMA needs a beat of {beat}, AXI DMA has {WIDEST_BEAT} at most; "
            "fold the first or last layer more"
        )
    return beat


def value_bytes(datatype: DataType) -> int:
    """Of a value in a packet: 1, 2 or 4."""
    return next(width for width in (1, 2, 4) if datatype.bits <= 8 * width)


@dataclass
class _Pipeline:
    """Grows block by block, in the graph's order. sinks: block → the stream that it takes."""

    folding: g.StreamingFolding
    depths: Mapping[str, int]
    dsp: str
    instances: list[Instance] = field(default_factory=list)
    wires: dict[str, Wire] = field(default_factory=dict)
    constants: list[Constant] = field(default_factory=list)
    layers: list[int] = field(default_factory=list)
    sinks: dict[int, str] = field(default_factory=dict)
    images: list[npt.NDArray[np.uint8]] = field(default_factory=list)
    packet_in: Packet = field(default_factory=lambda: Packet(1, LEAST_BEAT))
    packet_out: Packet = field(default_factory=lambda: Packet(1, LEAST_BEAT))

    @property
    def graph(self) -> g.StreamGraph:
        return self.folding.graph

    def wire(self, name: str, element: Element) -> str:
        self.wires[name] = Wire(name, element, max(LEAST_DEPTH, self.depths.get(name, LEAST_DEPTH)))
        return name

    # --- a block, its inputs and outputs -------------------------------------------------------------------

    def block(self, index: int) -> None:
        block = self.graph.blocks[index]
        taken = [self._input(index, port) for port in range(len(block.inputs))]
        given = [self._output(index, output) for output in range(len(block.outputs))]
        makers: dict[type[Any], Callable[..., None]] = _MAKERS
        if type(block.op) not in makers:
            raise GenerateError(f"{block.source}: {block.name}: {type(block.op).__name__} has no streaming block")
        makers[type(block.op)](self, index, taken, given)
        if block.node is not None and block.node not in self.layers and not isinstance(block.op, (g.Source, g.Sink)):
            last = self.instances[-1]
            tap = Tap(len(self.layers), given[0])
            self.layers.append(block.node)
            self.instances[-1] = replace(last, taps=(tap,))

    def _output(self, index: int, output: int) -> str:
        block, fold = self.graph.blocks[index], self.folding.folds[index]
        element = carrier(block.outputs[output].datatype, lanes.out_lanes(block, fold, output))
        return self.wire(map_wire(self.graph, g.Port(index, output)), element)

    def _input(self, index: int, port: int) -> str:
        """The writer's stream, or that of the last converter behind it."""
        block = self.graph.blocks[index]
        source = block.inputs[port]
        stream = map_wire(self.graph, source)
        datatype = self.graph.type_of(source).datatype
        name = f"{block.name}_{port}" if len(block.inputs) > 1 else block.name
        for step, how in enumerate(lanes.converters(self.graph, self.folding.folds, index, port)):
            mark = f"_{step}" if step else ""
            to = self.wire(f"to_{name}{mark}", carrier(datatype, how.lanes_out))
            self._convert(f"{how.kind}_to_{name}{mark}", stream, to, how)
            stream = to
        self._deepen(index, port, stream)
        return stream

    def _deepen(self, index: int, port: int, stream: str) -> None:
        """To what the folder estimates before there is a trace: at joins, a path waits for the longer one."""
        estimated = {(block, at): depth for block, at, depth in self.folding.depths}
        if stream not in self.depths and (index, port) in estimated:
            self.wires[stream] = replace(self.wires[stream], depth=max(LEAST_DEPTH, estimated[index, port]))

    def _convert(self, name: str, of: str, to: str, how: lanes.Converter) -> None:
        ends, widths = [("in", of), ("out", to)], (how.lanes_in, how.lanes_out)
        text = f"words of {how.lanes_in} values into words of {how.lanes_out}"
        if how.kind == "width":
            self.add(name, "convert_width", "width.h", (*widths, how.words_in), ends, text)
        elif how.kind == "channels":
            sizes = (*widths, how.channels_in, how.channels_out, how.pixels)
            more = f"{text}, {how.channels_in} channels into {how.channels_out}"
            self.add(name, "convert_channels", "width.h", sizes, ends, more)
        else:
            pixels = (how.lanes_in // how.m_in, how.channels_in, how.m_in, how.m_out, how.pixels)
            more = f"words of {how.m_in} pixel(s) into words of {how.m_out}"
            self.add(name, "convert_pixels", "width.h", pixels, ends, more)

    def add(
        self,
        name: str,
        function: str,
        header: str,
        arguments: tuple[object, ...],
        ports: list[tuple[str, str]],
        *reasons: str,
        constants: tuple[str, ...] = (),
        memories: tuple[Memory, ...] = (),
        per_frame: bool = True,
        storage: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.instances.append(
            Instance(
                name=name,
                function=function,
                header=header,
                arguments=tuple(_argument(one) for one in arguments),
                ports=tuple(PortOf(*port) for port in ports),
                reasons=reasons,
                constants=constants,
                memories=memories,
                per_frame=per_frame,
                storage=storage,
            )
        )

    # --- ends ------------------------------------------------------------------------------------------------

    def source(self, index: int, taken: list[str], given: list[str]) -> None:
        block, fold = self.graph.blocks[index], self.folding.folds[index]
        shape = block.outputs[0].shape
        word = lanes.out_lanes(block, fold)
        self.packet_in = Packet(shape.values, beat_bytes(word))
        self.add(
            block.name, "unpack_beats", "dma.h",
            (self.packet_in.beat, word, shape.values // word, carrier(block.outputs[0].datatype, 1).value),
            [("in", "in"), ("out", given[0])],
            f"{shape} pixels from the DMA, {word} values a cycle",
        )  # fmt: skip

    def sink(self, index: int, taken: list[str], given: list[str]) -> None:
        """Only remembered: how wide a beat is, is known when all sinks are."""
        block = self.graph.blocks[index]
        if self.graph.type_of(block.inputs[0]).datatype.few == "BIPOLAR":
            raise GenerateError(
                f"{block.source}: {block.name}: a BIPOLAR map cannot leave the pipeline, a packet holds whole numbers; "
                "let the last layer give its sums or TERNARY values"
            )
        self.sinks[index] = taken[0]

    def leave(self) -> None:
        """The maps that leave, one after the other, in one packet."""
        widths = [self._sink_word(index) for index in self.sinks]
        beat = beat_bytes(max(word * size for word, size, _, _ in widths))
        streams: list[tuple[str, int]] = []
        total = 0
        for (index, stream), (word, size, words, element) in zip(self.sinks.items(), widths, strict=True):
            block = self.graph.blocks[index]
            last = len(self.sinks) == 1
            beats = -(-words * word * size // beat)
            out = "out" if last else self.wire(f"beats_{block.name}", Element(8 * beat, False, 0))
            self.add(
                block.name, "pack_beats", "dma.h", (beat, size, word, words, last, element.value),
                [("in", stream), ("out", out)],
                f"{block.name} to the DMA, {size} byte(s) a value",
            )  # fmt: skip
            streams.append((out, beats))
            total += beats * beat if not last else words * word * size
        self._append(streams, beat)
        self.packet_out = Packet(total, beat)

    def _append(self, streams: list[tuple[str, int]], beat: int) -> None:
        while len(streams) > 1:
            (first, a), (second, b), *rest = streams
            out = self.wire(f"joined_{len(rest)}", Element(8 * beat, False, 0)) if rest else "out"
            self.add(
                f"join_{len(rest)}", "append_beats", "dma.h", (beat, a, b, not rest),
                [("first", first), ("second", second), ("out", out)], "one packet of two",
            )  # fmt: skip
            streams = [(out, a + b), *rest]

    def _sink_word(self, index: int) -> tuple[int, int, int, Element]:
        """Lanes, bytes a value, words a frame, carrier."""
        block, fold = self.graph.blocks[index], self.folding.folds[index]
        kind = self.graph.type_of(block.inputs[0])
        word = lanes.in_lanes(block, fold)
        values = kind.shape.height * kind.shape.width * lanes.in_values(self.graph, index, fold)
        return word, value_bytes(kind.datatype), values // word, carrier(kind.datatype, 1)

    # --- blocks that move values -----------------------------------------------------------------------------

    def _map(self, index: int) -> tuple[int, int, int]:
        """Channels (padding included), height and width of the map that block ``index`` reads."""
        shape = lanes.in_shape(self.graph, index)
        return lanes.in_values(self.graph, index, self.folding.folds[index]), shape.height, shape.width

    def window(self, index: int, taken: list[str], given: list[str]) -> None:
        block, fold = self.graph.blocks[index], self.folding.folds[index]
        op = block.op
        assert isinstance(op, g.Window)
        around = (op.padding.top, op.padding.left, op.padding.bottom, op.padding.right)
        sizes = (fold.simd, *self._map(index), *op.kernel, op.stride, *around, op.dilation)
        ends = [("in", taken[0]), ("out", given[0])]
        text = f"{op.kernel[0]}×{op.kernel[1]} window, stride {op.stride}"
        if fold.style == "parallel":
            more = f"{text}: all taps of {fold.simd} channels a cycle, {fold.m} position(s)"
            self.add(block.name, "window_parallel", "window.h", (fold.m, *sizes, _RAM[fold.ram]), ends, more)
        else:
            more = f"{text}: {fold.simd} channels of a tap a cycle"
            self.add(
                block.name, "window_default", "window.h", (*sizes, op.depthwise, _RAM[fold.ram]), ends, more
            )  # fmt: skip

    def max_pool(self, index: int, taken: list[str], given: list[str]) -> None:
        block, fold = self.graph.blocks[index], self.folding.folds[index]
        op = block.op
        assert isinstance(op, MaxPool)
        around = (op.padding.top, op.padding.left, op.padding.bottom, op.padding.right)
        sizes = (fold.m, fold.pe, *self._map(index), op.size, op.stride, *around, _RAM[fold.ram])
        ends = [("in", taken[0]), ("out", given[0])]
        self.add(block.name, "max_pool", "max_pool.h", sizes, ends, f"{op.size}×{op.size} max pool, stride {op.stride}")

    def duplicate(self, index: int, taken: list[str], given: list[str]) -> None:
        sizes = (self._lanes(index), self._words(index))
        self._several(index, "duplicate", sizes, taken, given, "one stream to several readers")

    def discard(self, index: int, taken: list[str], given: list[str]) -> None:
        sizes = (self._lanes(index), self._words(index))
        self._several(index, "discard", sizes, taken, given, "nobody reads these channels")

    def concat(self, index: int, taken: list[str], given: list[str]) -> None:
        block = self.graph.blocks[index]
        shape = block.outputs[0].shape
        parts = tuple(kind.shape.channels for kind in self.graph.inputs_of(block))
        sizes = (self._lanes(index), shape.height * shape.width, *parts)
        self._several(index, "concat", sizes, taken, given, "channels of one map behind those of another")

    def split(self, index: int, taken: list[str], given: list[str]) -> None:
        block = self.graph.blocks[index]
        assert isinstance(block.op, g.Split)
        shape = block.outputs[0].shape
        sizes = (self._lanes(index), shape.height * shape.width, *block.op.parts)
        self._several(index, "split", sizes, taken, given, "the channels of a map in parts")

    def reorg(self, index: int, taken: list[str], given: list[str]) -> None:
        block, fold = self.graph.blocks[index], self.folding.folds[index]
        assert isinstance(block.op, g.Reorg)
        sizes = (self._lanes(index), *self._map(index), block.op.stride, _RAM[fold.ram])
        self._several(index, f"reorg_{block.op.order}", sizes, taken, given, "space to depth", header="reorg.h")

    def upsample(self, index: int, taken: list[str], given: list[str]) -> None:
        block, fold = self.graph.blocks[index], self.folding.folds[index]
        assert isinstance(block.op, g.Upsample)
        sizes = (self._lanes(index), *self._map(index), block.op.stride, _RAM[fold.ram])
        self._several(index, "upsample", sizes, taken, given, "every pixel repeated")

    def down_sample(self, index: int, taken: list[str], given: list[str]) -> None:
        block = self.graph.blocks[index]
        assert isinstance(block.op, g.DownSample)
        sizes = (self._lanes(index), *self._map(index), block.op.stride)
        self._several(index, "down_sample", sizes, taken, given, f"every {block.op.stride}th pixel and row")

    def _lanes(self, index: int) -> int:
        return lanes.in_lanes(self.graph.blocks[index], self.folding.folds[index])

    def _words(self, index: int) -> int:
        values, height, width = self._map(index)
        return values * height * width // self._lanes(index)

    def _several(
        self,
        index: int,
        function: str,
        sizes: tuple[object, ...],
        taken: list[str],
        given: list[str],
        reason: str,
        header: str = "",
    ) -> None:
        """A block whose inputs and outputs stand one after the other in its call."""
        ins = [("in" if len(taken) == 1 else f"in{i}", name) for i, name in enumerate(taken)]
        outs = [("out" if len(given) == 1 else f"out{i}", name) for i, name in enumerate(given)]
        block = self.graph.blocks[index]
        self.add(block.name, function, header or f"{function}.h", sizes, [*ins, *outs], reason)

    # --- units with weights ----------------------------------------------------------------------------------

    def matrix_vector(self, index: int, taken: list[str], given: list[str]) -> None:
        block, fold = self.graph.blocks[index], self.folding.folds[index]
        op = block.op
        assert isinstance(op, g.MatrixVector)
        height, width = lanes.matrix(self.graph, index, fold)
        spots = lanes.positions(block)
        sizes = (spots, width, height, fold.simd, fold.pe, fold.pixels)
        source, result = taken[0], given[0]
        gathers = fold.pixels > fold.m
        if gathers:
            values, out = self.graph.type_of(block.inputs[0]).datatype, block.outputs[0].datatype
            source = self.wire(f"gathered_{block.name}", carrier(values, fold.pixels * fold.simd))
            result = self.wire(f"scattered_{block.name}", carrier(out, fold.pixels * fold.pe))
            self._pixels(f"gather_{block.name}", (fold.simd, width, fold.m, fold.pixels, spots), taken[0], source)
        self._unit("matrix_vector", index, sizes, source, result, op.weights, op.weight_type, op.activation)
        if gathers:
            self._pixels(f"scatter_{block.name}", (fold.pe, height, fold.pixels, fold.m, spots), result, given[0])

    def _pixels(self, name: str, sizes: tuple[int, ...], of: str, to: str) -> None:
        text = f"words of {sizes[2]} pixel(s) into words of {sizes[3]}"
        self.add(name, "convert_pixels", "width.h", sizes, [("in", of), ("out", to)], text)

    def vector_vector(self, index: int, taken: list[str], given: list[str]) -> None:
        block, fold = self.graph.blocks[index], self.folding.folds[index]
        op = block.op
        assert isinstance(op, g.VectorVector)
        channels, taps = lanes.matrix(self.graph, index, fold)
        sizes = (lanes.positions(block), channels, taps, fold.simd, fold.pe, fold.pixels)
        self._unit("vector_vector", index, sizes, taken[0], given[0], op.weights, op.weight_type, op.activation)

    def _unit(
        self,
        function: str,
        index: int,
        sizes: tuple[int, ...],
        source: str,
        result: str,
        weights: IntArray,
        weight_type: DataType,
        requantising: Requantising | None,
    ) -> None:
        block, fold = self.graph.blocks[index], self.folding.folds[index]
        values, out = self.graph.type_of(block.inputs[0]).datatype, block.outputs[0].datatype
        tiles = lanes.weight_tiles(lanes.weight_matrix(self.graph, self.folding.folds, index), fold.pe, fold.simd)
        stored = c.carried(tiles, weight_type)
        known = self._activation(index, requantising, out, weights.shape[0] + fold.pad_out)
        kinds: tuple[object, ...] = (
            c.weight_type(weight_type), c.value_type(values), c.sum_bits(weights, values), self._multiplier(fold)
        )  # fmt: skip
        text = (
            f"{block.name}: {stored.size:,} weights, PE {fold.pe}, SIMD {fold.simd}, {fold.pixels} pixel(s) a weight, "
            f"multipliers: {fold.multiplier}, weights {fold.memory}"
        )
        ports = [("in", source), ("out", result)]
        beside: tuple[str, ...] = (known,)
        if fold.memory == "embedded":
            beside = (self._weights(block, stored, weight_type), known)
        else:
            groups = lanes.positions(block) // fold.pixels
            if lanes.resident(block, fold):
                function, groups, kinds = "matrix_vector_resident", 1, (*kinds, _RAM[fold.ram])
            else:
                function = f"{function}_streamed"
            ports.insert(1, ("weights", self._streamer(block, fold, stored, weight_type, groups)))
        header = f"{function.removesuffix('_streamed')}.h"
        embedded = fold.memory == "embedded" and fold.ram != "auto"
        storage = ((f"{block.name}_weights", fold.ram),) if embedded else ()
        self.add(block.name, function, header, (*sizes, *kinds), ports, text, constants=beside, storage=storage)

    def _multiplier(self, fold: g.Fold) -> str:
        return self.dsp if fold.multiplier == "dsp" else "LUT"

    def _weights(self, block: g.Block, stored: c.Integers, weight_type: DataType) -> str:
        name = f"{block.name}_weights"
        text = f"{block.name}: weights by PE, tile and SIMD lane"
        element = carrier(weight_type, 1)
        self.constants.append(Constant(name, element.constant, (stored,), stored.shape, text))
        return name

    def _activation(self, index: int, of: Requantising | None, out: DataType, channels: int) -> str:
        block, fold = self.graph.blocks[index], self.folding.folds[index]
        name = f"{block.name}_activation"
        functor = c.activation(of, out, fold.pe, channels)
        self.constants.append(functor.constant(name, f"{block.name}: what a sum becomes"))
        return name

    def _streamer(self, block: g.Block, fold: g.Fold, stored: c.Integers, weight_type: DataType, groups: int) -> str:
        """Weights beside the unit: on chip in a memory of their own, or fetched from DDR."""
        stream = self.wire(f"weights_of_{block.name}", carrier(weight_type, stored.shape[0] * stored.shape[2]))
        sizes = (groups, stored.shape[1], stored.shape[0], stored.shape[2], c.weight_type(weight_type))
        name, ends = f"stream_{block.name}", [("out", stream)]
        if fold.memory == "decoupled" and fold.ram != "uram":
            constant = self._weights(block, stored, weight_type)
            text = f"weights of {block.name} from {fold.ram} memory"
            self.add(
                name, "stream_weights", "weights.h", (*sizes, _RAM[fold.ram]), ends, text, constants=(constant,)
            )  # fmt: skip
            return stream
        image = weight_image(stored, weight_type.bits, IMAGE_BEAT)
        self.images.append(image)
        memory = Memory(f"weights_{block.name}", f"memory_beat_t<{IMAGE_BEAT}>", image.size // IMAGE_BEAT)
        loads = fold.memory == "decoupled"
        function, when = ("load_weights", "once a start") if loads else ("fetch_weights", "once a frame")
        text = f"weights of {block.name} from DDR, {when}"
        image_sizes = (*sizes, IMAGE_BEAT)
        self.add(name, function, "weights.h", image_sizes, ends, text, memories=(memory,), per_frame=not loads)
        return stream

    # --- blocks that compute without weights -----------------------------------------------------------------

    def activate(self, index: int, taken: list[str], given: list[str]) -> None:
        block, fold = self.graph.blocks[index], self.folding.folds[index]
        assert isinstance(block.op, g.Activate)
        channels, height, width = self._map(index)
        values = c.value_type(self.graph.type_of(block.inputs[0]).datatype)
        known = self._activation(index, block.op.activation, block.outputs[0].datatype, channels)
        sizes = (height * width, channels, fold.pe, fold.m, values)
        ends = [("in", taken[0]), ("out", given[0])]
        self.add(block.name, "activate", "activate.h", sizes, ends, "an activation alone", constants=(known,))

    def global_pool(self, index: int, taken: list[str], given: list[str]) -> None:
        block, fold = self.graph.blocks[index], self.folding.folds[index]
        assert isinstance(block.op, g.GlobalPool)
        channels, height, width = self._map(index)
        datatype = self.graph.type_of(block.inputs[0]).datatype
        bits = max(2, (height * width * magnitude(datatype)).bit_length() + 1)
        known = self._activation(index, block.op.activation, block.outputs[0].datatype, channels)
        sizes = (height * width, channels, fold.pe, fold.m, c.value_type(datatype), bits, _RAM[fold.ram])
        ends = [("in", taken[0]), ("out", given[0])]
        self.add(block.name, "global_pool", "global_pool.h", sizes, ends, "the sum over the map", constants=(known,))

    def join(self, index: int, taken: list[str], given: list[str]) -> None:
        block, fold = self.graph.blocks[index], self.folding.folds[index]
        assert isinstance(block.op, g.Add)
        channels, height, width = self._map(index)
        kinds = [kind.datatype for kind in self.graph.inputs_of(block)]
        terms = [
            f"term_t<{c.value_type(kind)}, {factor}>" for kind, factor in zip(kinds, block.op.multipliers, strict=True)
        ]
        most = sum(magnitude(kind) * factor for kind, factor in zip(kinds, block.op.multipliers, strict=True))
        known = self._activation(index, block.op.activation, block.outputs[0].datatype, channels)
        sizes = (height * width, channels, fold.pe, fold.m, max(2, most.bit_length() + 1), *terms)
        ends = [*((f"in{i}", name) for i, name in enumerate(taken)), ("out", given[0])]
        self.add(block.name, "add", "elementwise.h", sizes, ends, "maps added value by value", constants=(known,))


def _argument(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_RAM = {"auto": "RAM_AUTO", "lutram": "RAM_LUTRAM", "bram": "RAM_BRAM", "uram": "RAM_URAM"}

_MAKERS: dict[type[Any], Callable[..., None]] = {
    g.Source: _Pipeline.source,
    g.Sink: _Pipeline.sink,
    g.MatrixVector: _Pipeline.matrix_vector,
    g.VectorVector: _Pipeline.vector_vector,
    g.Window: _Pipeline.window,
    MaxPool: _Pipeline.max_pool,
    g.Duplicate: _Pipeline.duplicate,
    g.Discard: _Pipeline.discard,
    g.Concat: _Pipeline.concat,
    g.Split: _Pipeline.split,
    g.Reorg: _Pipeline.reorg,
    g.Upsample: _Pipeline.upsample,
    g.DownSample: _Pipeline.down_sample,
    g.Activate: _Pipeline.activate,
    g.GlobalPool: _Pipeline.global_pool,
    g.Add: _Pipeline.join,
}
