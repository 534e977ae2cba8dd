"""Schedule → design: every file of the generated folder, in memory."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.board import Board
from boards.facts import Clock
from cnn.quantized_file import to_npz
from hls_templates.systolic.sources import (
    TOP,
    BufferPrimitive,
    Parameter,
    SystolicValues,
    systolic_simulation,
    systolic_sources,
)
from hls_templates.vendor.files import vendor_files
from hls_templates.vendor.hwh import hardware_description
from hls_templates.vendor.ports import Output, SystolicPorts
from hls_templates.vendor.values import Figure, VendorValues
from host.contract.manifest import manifest_text
from host.contract.parts import MANIFEST, Estimate, Image
from host.contract.systolic import (
    PassFields,
    SystolicArray,
    SystolicCheck,
    SystolicImages,
    SystolicInput,
    SystolicLayer,
    SystolicManifest,
    SystolicRegion,
)
from scheduler.hardware.ddr import BURST_WORDS, OUTSTANDING, ddr_timing
from scheduler.systolic.area.placement import place
from scheduler.systolic.area.resources import FIFOS, PRIMITIVES, Buffer, built, units
from scheduler.systolic.array import PIXEL_BYTES, Array
from scheduler.systolic.layers import MAX_STRIDE
from scheduler.systolic.model.cost import cost
from scheduler.systolic.program.emit import Program, emit
from scheduler.systolic.program.passes import PASS_FIELDS, PASS_WORDS
from scheduler.systolic.schedule import SystolicSchedule
from systolic.files import DesignFiles, design_files
from systolic.golden import golden_files
from systolic.manifest import heads
from systolic.styles.systolic.vector import make_vector

CHECK = {"maps": "data/maps.bin", "layers": "data/layers.bin"}
"""What the host compares a board with, layer by layer: the test bench's frame, and every layer's integers."""


def generate(
    schedule: SystolicSchedule,
    board: Board,
    clock: Clock,
    model: Mapping[str, bytes],
    picture: npt.NDArray[np.uint8],
    fit: str = "plain",
) -> DesignFiles:
    """The whole folder; the same arguments give the same bytes.

    model: files of the float network, kept for the float reference. picture: uint8 [channels, height, width], the
    frame of the vendor's test bench, in a batch shifted by a column a frame. fit: how pictures are brought to size.
    """
    program = emit(schedule)
    values = systolic_values(schedule, program, board, clock)
    files: dict[str, bytes] = {f"src/{name}": text.encode() for name, text in systolic_sources(values).items()}
    vector = make_vector(schedule, program, picture)
    vendor = vendor_values(schedule, program, board, clock, tuple(sorted(files)), vector.outputs)
    files |= {name: text.encode() for name, text in vendor_files(vendor).items()}
    files["systolic.hwh"] = hardware_description(vendor).encode()
    files |= vector.files
    files |= {f"simulation/{name}": text.encode() for name, text in systolic_simulation(values).items()}
    files |= images(program)
    files |= {f"golden/{name}": data for name, data in golden_files(schedule.network).items()}
    files["network.npz"] = to_npz(schedule.network)
    files |= model
    check = SystolicCheck(**{name: Image(path, zlib.crc32(files[path])) for name, path in CHECK.items()})
    files[MANIFEST] = manifest_text(manifest(schedule, program, board, clock, fit, check)).encode()
    return design_files(files)


def vendor_values(
    schedule: SystolicSchedule,
    program: Program,
    board: Board,
    clock: Clock,
    sources: tuple[str, ...],
    outputs: tuple[Output, ...],
) -> VendorValues:
    """What the Tcl scripts, the test bench, the README and the hardware description are made of."""
    array, priced = schedule.array, cost(schedule, ddr_timing(board, clock.mhz))
    use = place(array, board)[1]
    figures = (
        Figure("array", f"{array} (rows × columns × lanes)", "computed"),
        Figure("clock", f"{clock.mhz:g} MHz", "target"),
        *((Figure("batch", f"{schedule.batch} frames", "computed"),) if schedule.batch > 1 else ()),
        Figure("cycles a frame", f"{priced.cycles_per_frame:,}", "computed"),
        Figure("frames a second", f"{priced.frames_per_second:.1f}", "target"),
        Figure("DSP", f"{use.dsp} of {board.resources.dsp}", "estimate"),
        Figure("BRAM36", f"{use.bram36} of {board.resources.bram36}", "estimate"),
        Figure("URAM", f"{use.uram} of {board.resources.uram}", "estimate"),
        Figure("LUT", f"{use.lut:,} of {board.resources.lut:,}, {use.lutram:,} of them memory", "estimate"),
    )
    return VendorValues(
        title=f"{schedule.network.name} on a {array} systolic array",
        board=board,
        clock=clock,
        ports=SystolicPorts(array.map_ports, array.weight_ports, program.maps_words, outputs),
        sources=sources,
        figures=figures,
    )


def images(program: Program) -> dict[str, bytes]:
    """What the host uploads once: little-endian, as it lies in DDR."""
    weights = {f"data/weights_{port}.bin": image.tobytes() for port, image in enumerate(program.weights)}
    return {
        **weights,
        "data/requantisers.bin": program.requantisers.astype("<u4").tobytes(),
        "data/program.bin": program.words.astype("<u4").tobytes(),
    }


# --- engine ------------------------------------------------------------------------------------------------


def systolic_values(schedule: SystolicSchedule, program: Program, board: Board, clock: Clock) -> SystolicValues:
    array = schedule.array
    reasons = [f"{board.title}, array {array}, target clock {clock.mhz:g} MHz"]
    for scheduled in schedule.layers:
        reasons += scheduled.reasons()
    bounds = {
        "maps": program.maps_words,
        "weights": program.weights[0].shape[0],
        "requantisers": program.requantisers.shape[0],
        "program": program.words.size,
        "passes": len(program.pass_layer),
    }
    placement = place(array, board)[0]
    memories = tuple(_memory(buffer, placement[buffer.name], array, board) for buffer in built(array))
    reasons += [f"{buffer.name}: {memory.reason}" for buffer, memory in zip(built(array), memories, strict=True)]
    return SystolicValues(
        title=f"{schedule.network.name} on a {array} systolic array",
        parameters=_parameters(array),
        map_ports=array.map_ports,
        weight_ports=array.weight_ports,
        depths={fifo.name: fifo.depth(array) for fifo in FIFOS},
        bounds=bounds,
        burst_words=BURST_WORDS,
        outstanding=OUTSTANDING,
        memories=memories,
        map_depth=array.map_depth,
        reasons=reasons,
    )


def _memory(buffer: Buffer, impl: str, array: Array, board: Board) -> BufferPrimitive:
    """The primitive, and what the buffer takes of it."""
    count, bits, depth = int(buffer.count(array)), int(buffer.bits(array)), int(buffer.depth(array))
    taken = count * units(impl, bits, depth, board.family)
    size = f"{count} × {depth:,} words of {bits} bits"
    return BufferPrimitive(buffer.macro, impl, f"{size} in {taken:,} {PRIMITIVES[impl]}")


def _parameters(array: Array) -> tuple[Parameter, ...]:
    packing = array.packing
    return (
        Parameter("ROWS", array.rows, "M: output rows computed together"),
        Parameter("COLUMNS", array.columns, "N: output channels computed together"),
        Parameter("LANES", array.lanes, "L: input channels a PE multiplies in a cycle"),
        Parameter("PIXEL_BYTES", PIXEL_BYTES, "bytes of one input pixel"),
        Parameter("PIXEL_LANES", array.pixel_lanes, "lanes of one input pixel"),
        Parameter("VALUE_BITS", array.bits, "bits of an activation and of a weight"),
        Parameter("PACK_COLUMNS", packing.columns, f"columns that share a {array.dsp}"),
        Parameter("POSITIONS", packing.positions, f"positions that share a {array.dsp}"),
        Parameter("PACK_SHIFT", packing.shift, "bits of a product's field"),
        Parameter("PACK_CHAIN", array.pack_chain, "packed products summed before they are taken apart"),
        Parameter("SAVE_ROWS", array.save_rows, "rows of a position requantised a cycle"),
        Parameter("MAP_PORTS", array.map_ports, "AXI ports for maps"),
        Parameter("WEIGHT_PORTS", array.weight_ports, "AXI ports for weights"),
        Parameter("WEIGHT_WORDS", array.weight_words, "words of weights that such a port gives a cycle"),
        Parameter("ROW_DEPTH", array.row_depth, "words of a row-buffer bank"),
        Parameter("WEIGHT_DEPTH", array.weight_depth, "steps of the weight buffer"),
        Parameter("KEPT_DEPTH", array.kept_depth, "sums that may wait for the tile below"),
        Parameter("MAP_DEPTH", array.map_depth, "words of a bank of a map buffer, 0: no map stays on chip"),
        Parameter("CHUNK", array.chunk, "columns arranged before a row piece is written"),
        Parameter("CHANNEL_TILES", array.channel_tiles, "channel tiles whose requantisers are kept"),
        Parameter("OUTSTANDING", OUTSTANDING, "bursts on their way at a port"),
        Parameter("MAX_STRIDE", MAX_STRIDE, "largest stride of a convolution"),
    )


# --- manifest ----------------------------------------------------------------------------------------------


def manifest(
    schedule: SystolicSchedule, program: Program, board: Board, clock: Clock, fit: str, check: SystolicCheck
) -> SystolicManifest:
    """Everything that whoever opens the folder needs to know, and nothing to be looked up elsewhere.

    fit: how pictures are brought to size. check: the test frame's files.
    """
    network, array = schedule.network, schedule.array
    costs = cost(schedule, ddr_timing(board, clock.mhz)).layers
    return SystolicManifest(
        network=network.name,
        labels=tuple(network.labels),
        board=board.name,
        clock_mhz=clock.mhz,
        top=TOP,
        fit=fit,
        estimate=Estimate(**asdict(place(array, board)[1])),
        burst_words=BURST_WORDS,
        outstanding=OUTSTANDING,
        passes=len(program.pass_layer),
        batch=schedule.batch,
        input=SystolicInput(
            **manifest_region(schedule, program, 0),
            pixel_bytes=PIXEL_BYTES,
            row_bytes=program.maps[0].row_words * array.word_bytes,
        ),
        layers=tuple(_layer(schedule, program, index, layer.running) for index, layer in enumerate(costs)),
        heads=heads(network, {scheduled.layer.output: i for i, scheduled in enumerate(schedule.layers)}),
        array=SystolicArray(**asdict(array)),
        word_bytes=array.word_bytes,
        weight_word_bytes=array.word_bytes * array.weight_words,
        maps_bytes=program.maps_words * array.word_bytes,
        images=_described(images(program)),
        pass_words=PASS_WORDS,
        pass_fields=PassFields(**{name.name: PASS_FIELDS.index(name.name) for name in fields(PassFields)}),
        check=check,
    )


def _described(files: Mapping[str, bytes]) -> SystolicImages:
    *weights, requantisers, program = (Image(path, zlib.crc32(data)) for path, data in files.items())
    return SystolicImages(weights=tuple(weights), requantisers=requantisers, program=program)


def _layer(schedule: SystolicSchedule, program: Program, index: int, modelled_cycles: int) -> SystolicLayer:
    scheduled = schedule.layers[index]
    layer = scheduled.layer
    passes = [number for number, owner in enumerate(program.pass_layer) if owner == index]
    return SystolicLayer(
        name=layer.name,
        source=schedule.network.nodes[layer.node].source,
        node=layer.output,
        macs=layer.macs,
        modelled_cycles=modelled_cycles,
        output=SystolicRegion(**manifest_region(schedule, program, layer.output)),
        input_node=layer.input,
        first_pass=passes[0],
        last_pass=passes[-1],
        compute_cycles=scheduled.cycles,
    )


def manifest_region(schedule: SystolicSchedule, program: Program, node: int) -> dict[str, Any]:
    """The fields of a node's ``SystolicRegion``: of a batch the first frame's map, those of the others follow."""
    described, region, array = schedule.network.nodes[node], program.maps[node], schedule.array
    return {
        **asdict(described.shape),
        "datatype": described.type.datatype.name,
        "scale": described.type.scale,
        "value_bytes": np.dtype(described.type.datatype.carrier).itemsize,
        **({"map_buffer": region.buffer, "turn": region.turn} if region.buffer else {}),
        "offset": region.base * array.word_bytes,
        "bytes": region.frame_words * array.word_bytes,
        "blocks": region.blocks,
        "value_bits": region.value_bits,
    }
