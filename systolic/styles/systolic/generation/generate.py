"""The generator of the systolic style: it makes every file of a design from a schedule, in memory."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from boards.board import Board
from cnn.stored.quantized_file import to_npz
from contract.geometry import HLS, PIXEL_BYTES, RTL, Geometry
from contract.program import names_of
from hls_templates.systolic.sources import (
    TOP,
    BufferPrimitive,
    Fifo,
    Parameter,
    SystolicValues,
    header_parameters,
    systolic_simulation,
    systolic_sources,
)
from hls_templates.vendor.files import rtl_vendor_files, vendor_files
from hls_templates.vendor.floorplan import Chain
from hls_templates.vendor.hwh import hardware_description
from hls_templates.vendor.ports import Output, SystolicPorts
from hls_templates.vendor.values import Figure, VendorValues
from host.contract.manifest import manifest_text
from host.contract.parts import MANIFEST, DataFile, DesignMemory, Estimate
from host.contract.systolic import (
    PassFields,
    SystolicCheck,
    SystolicImages,
    SystolicInput,
    SystolicLayer,
    SystolicManifest,
    SystolicRegion,
)
from rtl_templates.cells import argument_cells, chain_cells
from rtl_templates.sources import rtl_simulation, rtl_sources
from scheduler.hardware.ddr import BURST_WORDS, OUTSTANDING, PORT_LATENCY, REQUEST_STAGES
from scheduler.systolic.area.memories import PRIMITIVES, TABLES, Buffer, units
from scheduler.systolic.area.resources import PRODUCTS, built
from scheduler.systolic.array import Array
from scheduler.systolic.engines.hls.fifos import FIFOS
from scheduler.systolic.engines.table import ENGINE_NAMED
from scheduler.systolic.model.cost import LayerCost
from scheduler.systolic.network.layer import Layer
from scheduler.systolic.network.views import spans_of
from scheduler.systolic.program.emit import Program, emit
from scheduler.systolic.rules import why_in_ddr
from scheduler.systolic.schedule import SystolicSchedule
from systolic.files import DesignFiles, board_file, design_files
from systolic.golden import golden_files
from systolic.model import DesignInputs
from systolic.network_outputs import heads, outputs, tensors
from systolic.styles.systolic.generation.rtl import rtl_values
from systolic.styles.systolic.generation.vector import make_vector
from systolic.styles.systolic.mapping import SystolicMapping
from systolic.styles.systolic.options import check_engine

CHECK = {"maps": "data/maps.bin", "layers": "data/layers.bin"}
"""The data with which the host checks a board: the test bench's input, and the integers of every layer."""


def generate(mapping: SystolicMapping, inputs: DesignInputs) -> DesignFiles:
    """Return all files of a schedule's design, in C++ or SystemVerilog. Equal arguments give equal bytes.

    Args:
        mapping: The schedule on its board.
        inputs: The model's files and a picture. Frame f of the test bench's batch is the picture, shifted by f columns.
    """
    schedule = mapping.schedule
    program = emit(schedule)
    values = systolic_values(mapping, program)
    vector = make_vector(schedule, program, inputs.picture)
    files = _engine_files(mapping, values, vendor_values(mapping, program, (), vector.outputs))
    files |= vector.files
    uploads = images(program)
    files |= uploads
    files |= {f"golden/{name}": data for name, data in golden_files(schedule.network).items()}
    files["network.npz"] = to_npz(schedule.network)
    files |= inputs.files
    files |= board_file(mapping.board)
    check = SystolicCheck(**{name: DataFile(path, zlib.crc32(files[path])) for name, path in CHECK.items()})
    described = manifest(mapping, program, inputs.fit, uploads, check)
    files[MANIFEST] = manifest_text(described).encode()
    return design_files(files)


def _engine_files(mapping: SystolicMapping, values: SystolicValues, vendor: VendorValues) -> dict[str, bytes]:
    """Return the engine's sources, simulation, scripts for vendor tools and hardware description: {path: bytes}."""
    array = mapping.schedule.array
    check_engine(array.engine, array.dsp_clock)
    written = _WRITERS[array.engine](mapping, values, vendor)
    sources = tuple(sorted(f"src/{name}" for name in written.sources))
    described = replace(vendor, sources=sources, chains=written.chains, argument_cells=written.argument_cells)
    texts = {
        **{f"src/{name}": text for name, text in written.sources.items()},
        **written.vendor_files(described),
        "systolic.hwh": hardware_description(described),
        **{f"simulation/{name}": text for name, text in written.simulation.items()},
    }
    return {name: text.encode() for name, text in texts.items()}


@dataclass(frozen=True, eq=False)
class _Written:
    """The generated texts of an engine in C++ or SystemVerilog, by file name.

    Attributes:
        sources: The files of src/.
        simulation: The files of simulation/.
        vendor_files: Returns the files for the vendor's tools.
        chains: The DSP cascades, if their names are known.
        argument_cells: The registers of the arguments, if their names are known.
    """

    sources: Mapping[str, str]
    simulation: Mapping[str, str]
    vendor_files: Callable[[VendorValues], Mapping[str, str]]
    chains: tuple[Chain, ...] = ()
    argument_cells: tuple[str, ...] = ()


def _hls(mapping: SystolicMapping, values: SystolicValues, vendor: VendorValues) -> _Written:
    return _Written(systolic_sources(values), systolic_simulation(values), vendor_files)


def _rtl(mapping: SystolicMapping, values: SystolicValues, vendor: VendorValues) -> _Written:
    rtl = rtl_values(mapping, values, SystolicPorts(**vars(vendor.ports)))
    chains = tuple(Chain(*cell) for cell in chain_cells(rtl))
    return _Written(rtl_sources(rtl), rtl_simulation(rtl), rtl_vendor_files, chains, argument_cells(rtl))


_WRITERS: Mapping[str, Callable[[SystolicMapping, SystolicValues, VendorValues], _Written]] = {HLS: _hls, RTL: _rtl}
"""The function that writes each engine, by the engine's name."""


def vendor_values(
    mapping: SystolicMapping, program: Program, sources: tuple[str, ...], outputs: tuple[Output, ...]
) -> VendorValues:
    """Return the values that fill the templates of Tcl scripts, test bench, README and hardware description."""
    schedule, board, usage = mapping.schedule, mapping.board, mapping.usage
    array, resources = schedule.array, board.resources
    dsp_mhz = array.dsp_clock * mapping.clock.mhz
    figures = (
        Figure("array", f"{array} (rows × columns × lanes)", "computed"),
        Figure("clock", f"{mapping.clock.mhz:g} MHz", "target"),
        *((Figure("clock of the DSPs", f"{dsp_mhz:g} MHz", "target"),) if array.dsp_clock > 1 else ()),
        *((Figure("batch", f"{schedule.batch} frames", "computed"),) if schedule.batch > 1 else ()),
        Figure("cycles per frame", f"{mapping.cycles_per_frame:,}", "computed"),
        Figure("frames per second", f"{mapping.frames_per_second:.1f}", "target"),
        Figure("frames per second by DDR share", ", ".join(map(str, mapping.ddr_profiles)), "target"),
        Figure("DSP", f"{usage.dsp} of {resources.dsp}", "estimate"),
        Figure("BRAM36", f"{usage.bram36} of {resources.bram36}", "estimate"),
        Figure("URAM", f"{usage.uram} of {resources.uram}", "estimate"),
        Figure("LUT", f"{usage.lut:,} of {resources.lut:,}, {usage.lutram:,} of them memory", "estimate"),
    )
    return VendorValues(
        title=f"{schedule.network.name} on a {array} systolic array",
        board=board,
        clock=mapping.clock,
        ports=SystolicPorts(array.map_ports, array.weight_ports, program.maps_words, outputs, array.added_maps),
        sources=sources,
        figures=figures,
        dsp_clock=array.dsp_clock,
    )


def images(program: Program) -> dict[str, bytes]:
    """Return {path: bytes} of what the host uploads to DDR once: weights, requantisers and program, little-endian."""
    weights = {f"data/weights_{port}.bin": image.tobytes() for port, image in enumerate(program.weights)}
    return {
        **weights,
        "data/requantisers.bin": program.requantisers.astype("<u4").tobytes(),
        "data/program.bin": program.words.astype("<u4").tobytes(),
    }


# --- engine ------------------------------------------------------------------------------------------------


def systolic_values(mapping: SystolicMapping, program: Program) -> SystolicValues:
    """Return the values that fill the templates of the C++ array: parameters, top function and simulation."""
    schedule, board = mapping.schedule, mapping.board
    array = schedule.array
    doubled = f", its DSPs at {array.dsp_clock * mapping.clock.mhz:g} MHz" if array.dsp_clock > 1 else ""
    reasons = [f"{board.title}, array {array}, target clock {mapping.clock.mhz:g} MHz{doubled}"]
    for scheduled, reason in zip(schedule.layers, why_in_ddr(schedule), strict=True):
        reasons += [*scheduled.reasons(), *([f"its output is stored in DDR: {reason}"] if reason else [])]
    bounds = {
        "maps": program.maps_words,
        "weights": program.weights[0].shape[0],
        "requantisers": program.requantisers.shape[0],
        "program": program.words.size,
        "passes": len(program.pass_layer),
    }
    memories = tuple(_memory(buffer, mapping.placement[buffer.name], array, board) for buffer in built(array))
    reasons += [f"{buffer.name}: {memory.reason}" for buffer, memory in zip(built(array), memories, strict=True)]
    memories = (*memories, _memory(TABLES, TABLES.impls[0], array, board))
    return SystolicValues(
        title=f"{schedule.network.name} on a {array} systolic array",
        parameters=_parameters(array),
        map_ports=array.map_ports,
        weight_ports=array.weight_ports,
        fifos={fifo.name: Fifo(int(fifo.bits(array)), int(fifo.depth(array)), fifo.impls[0]) for fifo in FIFOS},
        bounds=bounds,
        burst_words=BURST_WORDS,
        outstanding=OUTSTANDING,
        latency=PORT_LATENCY,
        memories=memories,
        map_depth=array.map_depth,
        added_maps=array.added_maps,
        reasons=reasons,
    )


def _memory(buffer: Buffer, impl: str, array: Array, board: Board) -> BufferPrimitive:
    """Return the primitive of a buffer (bram, uram, lutram), with its size and count as a comment for parameters.h."""
    count, bits, depth = int(buffer.count(array)), int(buffer.bits(array)), int(buffer.depth(array))
    taken = count * units(impl, bits, depth, board.family)
    size = f"{count} × {bits} × {depth} bits" if buffer is PRODUCTS else f"{count} × {depth:,} words of {bits} bits"
    return BufferPrimitive(buffer.macro, impl, f"{size} in {taken:,} {PRIMITIVES[impl]}")


def _parameters(array: Array) -> tuple[Parameter, ...]:
    """Return the constants of the generated engine: the array's parameters, and constants derived from them."""
    packing = array.packing
    constants = (
        Parameter("PACK_COLUMNS", packing.columns, f"columns that share a {array.dsp}"),
        Parameter("POSITIONS", packing.positions, f"positions that share a {array.dsp}"),
        Parameter("PACK_SHIFT", packing.shift, "bits of a product's field"),
        Parameter("PACK_CHAIN", array.pack_chain, "packed products summed before they are separated"),
        Parameter("OUTSTANDING", OUTSTANDING, "outstanding bursts per port"),
        Parameter("REQUEST_STAGES", REQUEST_STAGES, "cycles of a request to a port"),
    )
    return header_parameters(array, constants)


# --- manifest ----------------------------------------------------------------------------------------------


def manifest(
    mapping: SystolicMapping, program: Program, fit: str, uploads: Mapping[str, bytes], check: SystolicCheck
) -> SystolicManifest:
    """Return the manifest: the description of network, array, memory layout and passes that the host reads.

    Args:
        mapping: The schedule on its board.
        program: The passes and their memory images.
        fit: The method that resizes pictures: plain, letterbox or smooth.
        uploads: The memory images that the host uploads, as ``images`` returns them.
        check: The files of the test frame.
    """
    schedule = mapping.schedule
    network, array = schedule.network, schedule.array
    names = names_of(array)
    written = dict.fromkeys(scheduled.layer.output for scheduled in schedule.layers)
    layer_of = {node: index for index, node in enumerate(written)}
    return SystolicManifest(
        network=network.name,
        labels=tuple(network.labels),
        board=mapping.board.name,
        clock_mhz=mapping.clock.mhz,
        ddr=DesignMemory(**asdict(mapping.cost.ddr.rate)),
        top=TOP,
        fit=fit,
        estimate=Estimate(**asdict(mapping.usage)),
        burst_words=BURST_WORDS,
        outstanding=OUTSTANDING,
        passes=len(program.pass_layer),
        batch=schedule.batch,
        input=SystolicInput(
            **manifest_region(schedule, program, 0),
            pixel_bytes=PIXEL_BYTES,
            row_bytes=program.maps[0].row_words * array.word_bytes,
        ),
        layers=tuple(_layer(mapping, program, node) for node in layer_of),
        heads=heads(network, layer_of),
        tensors=tensors(network, layer_of),
        outputs=outputs(network, layer_of),
        array=Geometry(**asdict(array)),
        word_bytes=array.word_bytes,
        weight_word_bytes=array.word_bytes * array.weight_words,
        maps_bytes=program.maps_words * array.word_bytes,
        images=_described(uploads),
        pass_words=program.words.shape[1],
        pass_fields=PassFields(**{f.name: names.index(f.name) for f in fields(PassFields) if f.name in names}),
        program_cycles=(
            sum(int(priced.cycles.program) for priced in mapping.cost.layers) if _fetches_alone(array) else 0
        ),
        check=check,
    )


def _described(files: Mapping[str, bytes]) -> SystolicImages:
    *weights, requantisers, program = (DataFile(path, zlib.crc32(data)) for path, data in files.items())
    return SystolicImages(weights=tuple(weights), requantisers=requantisers, program=program)


def _fetches_alone(array: Array) -> bool:
    return ENGINE_NAMED[array.engine].fetches_alone


def _cycles(cost: LayerCost, array: Array) -> int:
    """Return a layer's modelled cycles; they include fetching its passes unless the engine fetches them separately."""
    return cost.running if _fetches_alone(array) else cost.total


def _layer(mapping: SystolicMapping, program: Program, node: int) -> SystolicLayer:
    """Return the manifest's entry for the layers of the schedule that write the output map of ``node``.

    It combines the passes of all layers of the schedule that write this map, because each may write a part of it.
    """
    schedule = mapping.schedule
    numbers = [i for i, scheduled in enumerate(schedule.layers) if scheduled.layer.output == node]
    written, priced = [schedule.layers[i] for i in numbers], [mapping.cost.layers[i] for i in numbers]
    passes = [number for number, owner in enumerate(program.pass_layer) if owner in numbers]
    layer = written[0].layer
    together = sum((cost.cycles for cost in priced[1:]), priced[0].cycles)
    return SystolicLayer(
        name=layer.name if layer.part is None else schedule.network.nodes[layer.node].name,
        source=schedule.network.nodes[layer.node].source,
        node=node,
        macs=sum(scheduled.layer.macs for scheduled in written),
        modelled_cycles=sum(_cycles(cost, schedule.array) for cost in priced),
        output=SystolicRegion(**manifest_region(schedule, program, node)),
        input_node=layer.spans[0].node,
        last_input_node=layer.spans[-1].node if layer.spans[-1].node != layer.spans[0].node else None,
        added_node=_added_node(mapping, layer),
        first_pass=passes[0],
        last_pass=passes[-1],
        compute_cycles=sum(scheduled.cycles for scheduled in written),
        bound_by=together.bound_by(sum(cost.ddr_cycles for cost in priced)),
        overhead=together.overhead.part,
        overhead_cycles=together.overhead.cycles,
    )


def _added_node(mapping: SystolicMapping, layer: Layer) -> int | None:
    """Return the node in whose memory the other map of a residual add is stored; None without such an add."""
    return None if layer.added is None else spans_of(mapping.network, layer.added.other_node)[0].node


def manifest_region(schedule: SystolicSchedule, program: Program, node: int) -> dict[str, Any]:
    """Return the manifest's fields for a node's output map: shape, type, and its place in DDR or on the chip.

    They describe the map of the first frame of a batch. The maps of the other frames follow in memory.
    """
    described, region, array = schedule.network.nodes[node], program.maps[node], schedule.array
    return {
        **asdict(described.shape),
        "datatype": described.type.datatype.name,
        "scale": described.type.scale,
        "zero_point": described.type.zero_point,
        "value_bytes": np.dtype(described.type.datatype.carrier).itemsize,
        **({"map_buffer": region.buffer, "turn": region.bank_rotation} if region.buffer else {}),
        **({"place": region.place} if region.place else {}),
        **({"pitch": region.pitch * array.word_bytes} if region.pitch > region.row_words else {}),
        "offset": region.base * array.word_bytes,
        "bytes": region.frame_words * array.word_bytes,
        "blocks": region.blocks,
        "value_bits": region.value_bits,
    }
