"""The generator of the streaming style: it makes every file of a design from a folding, in memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.board import Board
from boards.facts import Clock
from cnn.integer_model import run_integer
from cnn.maps import Shape
from cnn.quantized import QuantizedNetwork
from cnn.stored.quantized_file import to_npz
from hls_templates.streaming.sources import TOP, StreamingValues, streaming_simulation, streaming_sources
from hls_templates.vendor.files import vendor_files
from hls_templates.vendor.hwh import hardware_description
from hls_templates.vendor.ports import StreamingPorts
from hls_templates.vendor.values import Figure, VendorValues
from host.contract.manifest import manifest_text
from host.contract.parts import MANIFEST, DataFile, DesignMemory, Estimate, TensorMap
from host.contract.streaming import (
    ExternalDataFile,
    Packet,
    StreamingBlock,
    StreamingCheck,
    StreamingFifo,
    StreamingLayer,
    StreamingManifest,
    StreamingOutput,
)
from scheduler.hardware.ddr import BURST_WORDS, OUTSTANDING, WEIGHT_BEAT_BYTES, DdrRate, ddr_rate
from scheduler.hardware.fifos import fifo_kind
from scheduler.hardware.primitives import MIN_FIFO_DEPTH
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from scheduler.streaming.model.cycles import block_cycles, bottleneck
from systolic.files import DesignFiles, board_file, design_files
from systolic.golden import golden_files
from systolic.model import DesignInputs
from systolic.network_outputs import heads, tensors
from systolic.styles.streaming.fold_words import fold_text
from systolic.styles.streaming.generation.parameters import can_be_written, parameter_files
from systolic.styles.streaming.generation.wiring.ends import value_bytes
from systolic.styles.streaming.generation.wiring.wire_up import Wiring, wire_up

CHECK = {"packet_in": "data/in.bin", "packet_out": "data/expected.bin"}
"""The packets of the test bench's frame. The host sends one to a board and compares the answer with the other."""

FRAMES_PER_START = 1
"""One frame, because with AUTO_RESTART each process begins the next frame as soon as it has finished its own.

No process needs input from a later frame to write its last rows.
"""


@dataclass(frozen=True, eq=False)
class FoldedNetwork:
    """The input of the generator: a quantised network with its folding, board and clock.

    Attributes:
        network: The quantised network.
        folding: The blocks of the network with their folds.
        board: The board.
        clock: The target clock.
        ddr: The rate of the memory; None for the board's.
    """

    network: QuantizedNetwork
    folding: g.StreamingFolding
    board: Board
    clock: Clock
    ddr: DdrRate | None = None


@dataclass(frozen=True, eq=False)
class StreamingParts:
    """A generated pipeline without its FIFO depths and resources, which a trace of the pipeline finds later.

    Attributes:
        source: The input of the generator.
        wiring: The functions and streams of the pipeline. The FIFOs have the depths that the folding estimates.
        fit: The method that resizes pictures: plain, letterbox or smooth.
        constant: The files that do not depend on FIFO depths or resources.
    """

    source: FoldedNetwork
    wiring: Wiring
    fit: str
    constant: Mapping[str, bytes]

    def files(self, estimate: Mapping[str, int], depths: Mapping[str, int] | None = None) -> DesignFiles:
        """Return all files of the design with these FIFO depths and estimated resources.

        Args:
            estimate: The estimated resources, by their names in the manifest.
            depths: FIFO depths in words, by the name of the stream. Other FIFOs have the estimated depth.
        """
        wiring = with_depths(self.wiring, depths or {})
        values = streaming_values(self.source, wiring)
        files = {f"src/{name}": text.encode() for name, text in streaming_sources(values).items()}
        files |= {f"simulation/{name}": text.encode() for name, text in streaming_simulation(values).items()}
        vendor = vendor_values(self.source, values, estimate)
        files |= {name: text.encode() for name, text in vendor_files(vendor).items()}
        files["systolic.hwh"] = hardware_description(vendor).encode()
        files |= self.constant
        check = StreamingCheck(**{packet: DataFile(path, zlib.crc32(files[path])) for packet, path in CHECK.items()})
        files[MANIFEST] = manifest_text(self._manifest(wiring, estimate, check)).encode()
        return design_files(files)

    def _manifest(self, wiring: Wiring, estimate: Mapping[str, int], check: StreamingCheck) -> StreamingManifest:
        return manifest(self.source, wiring, self.fit, estimate, check)


def parts(source: FoldedNetwork, inputs: DesignInputs) -> StreamingParts:
    """Generate the files of a pipeline that do not depend on FIFO depths. Raises the errors of ``wire_up``."""
    wiring = wire_up(source.folding, {}, source.board.dsp.kind)
    files = {f"golden/{name}": data for name, data in golden_files(source.network).items()}
    files["network.npz"] = to_npz(source.network)
    files |= inputs.files
    files |= board_file(source.board)
    if can_be_written(source.folding):
        headers = parameter_files(source.network, source.folding)
        files |= {f"parameters/{name}": text.encode() for name, text in headers.items()}
    files |= _frame(source, wiring, inputs.picture)
    files |= dict(_images(wiring).values())
    return StreamingParts(source, wiring, inputs.fit, files)


def generate(
    source: FoldedNetwork,
    inputs: DesignInputs,
    estimate: Mapping[str, int],
    depths: Mapping[str, int] | None = None,
) -> DesignFiles:
    """Return all files of a folding's design with these FIFO depths. Equal arguments give equal bytes."""
    return parts(source, inputs).files(estimate, depths)


def with_depths(wiring: Wiring, depths: Mapping[str, int]) -> Wiring:
    """Return the pipeline ``wiring`` with these FIFO depths in words, by the name of the stream.

    A depth below MIN_FIFO_DEPTH is raised to it, because writer and reader could not both work in every cycle.
    """
    wires = (
        replace(wire, depth=max(MIN_FIFO_DEPTH, depths[wire.name])) if wire.name in depths else wire
        for wire in wiring.wires
    )
    return replace(wiring, wires=tuple(wires))


def vendor_values(source: FoldedNetwork, values: StreamingValues, estimate: Mapping[str, int]) -> VendorValues:
    """Return the values that fill the templates of Tcl scripts, test bench, README and hardware description."""
    name, slowest = bottleneck(source.folding.graph, source.folding.folds)
    resources = source.board.resources
    figures = (
        Figure("clock", f"{source.clock.mhz:g} MHz", "target"),
        Figure("cycles per frame", f"{slowest:,} (slowest block: {name})", "computed"),
        Figure("frames per second", f"{source.clock.mhz * 1e6 / slowest:.1f}", "target"),
        *(
            Figure(kind.upper(), f"{estimate[kind]:,} of {getattr(resources, kind):,}", "estimate")
            for kind in ("lut", "dsp", "bram36", "uram")
            if kind in estimate
        ),
    )
    return VendorValues(
        title=values.title,
        board=source.board,
        clock=source.clock,
        ports=StreamingPorts(values.packet_in, values.packet_out, values.external),
        sources=tuple(f"src/{name}" for name in sorted(streaming_sources(values))),
        figures=figures,
    )


def _images(wiring: Wiring) -> dict[str, tuple[str, bytes]]:
    """Return {port: (path, bytes)} of the weight files that the m_axi ports of external weights read from DDR."""
    ports = [memory.name for one in wiring.instances for memory in one.weight_ports]
    return {port: (f"data/{port}.bin", image.tobytes()) for port, image in zip(ports, wiring.images, strict=True)}


def streaming_values(source: FoldedNetwork, wiring: Wiring) -> StreamingValues:
    """Return the values that fill the templates of the pipeline's C++ top function and its simulation."""
    graph = source.folding.graph
    name, slowest = bottleneck(graph, source.folding.folds)
    return StreamingValues(
        title=f"{graph.name} as a streaming pipeline",
        reasons=(
            f"{source.board.title}, target clock {source.clock.mhz:g} MHz",
            f"at best a frame every {slowest:,} cycles; the slowest block is {name} (closed formula)",
            *(
                f"{block.name}: {fold_text(fold)}, {block_cycles(graph, index, fold):,} cycles per frame"
                for index, (block, fold) in enumerate(zip(graph.blocks, source.folding.folds, strict=True))
            ),
        ),
        instances=wiring.instances,
        wires=tuple(replace(wire, impl=fifo_kind(wire.element.bits_wide, wire.depth)) for wire in wiring.wires),
        constants=wiring.constants,
        headers=wiring.headers,
        packet_in=wiring.packet_in,
        packet_out=wiring.packet_out,
        burst_words=BURST_WORDS,
        outstanding=OUTSTANDING,
    )


def _frame(source: FoldedNetwork, wiring: Wiring, picture: npt.NDArray[np.uint8]) -> dict[str, bytes]:
    """Return {path: bytes} of one test frame: input packet, expected output packet and every layer's integers.

    in.bin is the input packet and expected.bin the output packet, for the test bench. layers.bin has the integers of
    every layer, with which the host compares a board.
    """
    golden = run_integer(source.network, picture)
    sent = np.ascontiguousarray(picture.transpose(1, 2, 0)).tobytes()
    expected = bytearray(wiring.packet_out.bytes)
    for index, out in zip(wiring.sinks, _outputs(source, wiring), strict=True):
        block = source.folding.graph.blocks[index]
        assert block.node is not None
        values = golden[block.node]
        assert values is not None
        filled = np.zeros((out.height, out.width, out.stream_channels), np.int64)
        filled[:, :, : out.channels] = values.transpose(1, 2, 0)
        expected[out.offset : out.offset + out.bytes] = filled.astype(f"<i{out.value_bytes}").tobytes()
    layers = b"".join(np.ascontiguousarray(golden[node]).tobytes() for node in wiring.layers)
    return {"data/in.bin": sent, "data/expected.bin": bytes(expected), "data/layers.bin": layers}


# --- manifest ----------------------------------------------------------------------------------------------


def manifest(
    source: FoldedNetwork, wiring: Wiring, fit: str, estimate: Mapping[str, int], check: StreamingCheck
) -> StreamingManifest:
    """Return the manifest: the description of network, packets, layers and FIFOs that the host reads.

    Args:
        source: The input of the generator.
        wiring: The functions and streams of the pipeline.
        fit: The method that resizes pictures: plain, letterbox or smooth.
        estimate: The estimated resources, by their names in the manifest.
        check: The packets of the test frame.
    """
    network, layer_of = source.network, {node: i for i, node in enumerate(wiring.layers)}
    return StreamingManifest(
        network=network.name,
        labels=tuple(network.labels),
        board=source.board.name,
        clock_mhz=source.clock.mhz,
        ddr=DesignMemory(**asdict(source.ddr or ddr_rate(source.board))),
        top=TOP,
        fit=fit,
        estimate=Estimate(**estimate),
        burst_words=BURST_WORDS,
        outstanding=OUTSTANDING,
        input=TensorMap(**_shape(network, 0)),
        layers=tuple(_layers(source, wiring)),
        heads=heads(network, layer_of),
        tensors=tensors(network, layer_of),
        packet_in=Packet(**asdict(wiring.packet_in)),
        packet_out=Packet(**asdict(wiring.packet_out)),
        outputs=tuple(_outputs(source, wiring)),
        images=tuple(
            ExternalDataFile(path, zlib.crc32(data), word_bytes=WEIGHT_BEAT_BYTES, port=port)
            for port, (path, data) in _images(wiring).items()
        ),
        frames_per_start=FRAMES_PER_START,
        blocks=tuple(_blocks(source)),
        fifos=tuple(StreamingFifo(name=w.name, depth=w.depth, bits=w.element.bits_wide) for w in wiring.wires),
        check=check,
    )


def _shape(network: QuantizedNetwork, index: int) -> dict[str, Any]:
    node = network.nodes[index]
    form = node.type
    scaled = {"datatype": form.datatype.name, "scale": form.scale, "zero_point": form.zero_point}
    return {**_sides(node.shape), **scaled}


def _sides(shape: Shape) -> dict[str, int]:
    return {"channels": shape.channels, "height": shape.height, "width": shape.width}


def _outputs(source: FoldedNetwork, wiring: Wiring) -> Iterator[StreamingOutput]:
    """Return the pipeline's output maps in the order of the output packet. Each of several begins at a whole beat."""
    graph, offset = source.folding.graph, 0
    for index in wiring.sinks:
        block, fold = graph.blocks[index], source.folding.folds[index]
        assert block.node is not None
        tensor = graph.type_of(block.inputs[0])
        size, channels = value_bytes(tensor.datatype), lanes.in_values(graph, index, fold)
        count = tensor.shape.height * tensor.shape.width * channels * size
        yield StreamingOutput(
            **_shape(source.network, block.node),
            layer=wiring.layers.index(block.node),
            signed=tensor.datatype.signed,
            value_bytes=size,
            stream_channels=channels,
            offset=offset,
            bytes=count,
        )
        offset += -(-count // wiring.packet_out.beat) * wiring.packet_out.beat


def _layers(source: FoldedNetwork, wiring: Wiring) -> Iterator[StreamingLayer]:
    graph, folds = source.folding.graph, source.folding.folds
    backwards = reversed(list(enumerate(graph.blocks)))
    block_of = {node: i for i, block in backwards for node in (block.node, block.second) if node is not None}
    for node in wiring.layers:
        index = block_of[node]
        block, fold = graph.blocks[index], folds[index]
        yield StreamingLayer(
            name=source.network.nodes[node].name,
            source=block.source,
            node=node,
            macs=macs(graph, index),
            modelled_cycles=block_cycles(graph, index, fold),
            output=TensorMap(**_shape(source.network, node)),
            pixels=lanes.out_pixels(block, fold),
            lanes=lanes.out_lanes(block, fold),
            stream_channels=lanes.out_values(graph, index, fold),
        )


def macs(graph: g.StreamGraph, index: int) -> int:
    """Return the multiply-accumulates of block ``index`` per frame; 0 for a block without weights."""
    block = graph.blocks[index]
    if not isinstance(block.op, g.Unit):
        return 0
    return int(block.op.weights.size) * lanes.positions(block)


def _blocks(source: FoldedNetwork) -> Iterator[StreamingBlock]:
    graph = source.folding.graph
    for index, (block, fold) in enumerate(zip(graph.blocks, source.folding.folds, strict=True)):
        yield StreamingBlock(
            name=block.name,
            kind=g.kind_name(block.op),
            folding=fold_text(fold),
            macs=macs(graph, index),
            macs_per_cycle=fold.pe * fold.simd * fold.pixels if macs(graph, index) else 0,
            modelled_cycles=block_cycles(graph, index, fold),
        )
