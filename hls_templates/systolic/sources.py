"""The C++ sources of the systolic engine for one geometry.

The parameters and the top function, which connects the processes, are generated. All other sources are fixed headers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from boards.templates import comment, identifier
from contract.geometry import PIXEL_BYTES, Geometry, parameters
from hls_templates.headers import simulation_files, with_headers
from hls_templates.render import render

TOP = "systolic_top"

HEADER = (
    *("ROWS", "COLUMNS", "LANES", "PIXEL_BYTES", "PIXEL_LANES", "VALUE_BITS"),
    *("PACK_COLUMNS", "POSITIONS", "PACK_SHIFT", "PACK_CHAIN"),
    *("SAVE_ROWS", "MAP_PORTS", "WEIGHT_PORTS", "WEIGHT_WORDS", "ROW_DEPTH", "WEIGHT_DEPTH", "KEPT_DEPTH", "MAP_DEPTH"),
    *("UPSCALE", "WINDOWS", "LATE_OFFSETS", "MAP_PRODUCTS", "ADDED_MAPS", "MAP_STRIDE", "TABLE_DEPTH", "TABLE_SLOPES"),
    *("CHUNK", "CHANNEL_TILES", "OUTSTANDING", "REQUEST_STAGES"),
)
"""The order of the constants in parameters.h."""

HALVES_TO_EVEN = "2: requantisers may add an offset after their product, and may round ties to even"
"""The comment at LATE_OFFSETS in parameters.h if its value is 2."""


@dataclass(frozen=True)
class Parameter:
    """One compile-time constant of the systolic engine, written to parameters.h.

    Attributes:
        name: The name in parameters.h.
        value: The value.
        reason: The comment at the constant: its meaning or the reason for its value.
    """

    name: str
    value: int
    reason: str


@dataclass(frozen=True)
class BufferPrimitive:
    """The choice of the FPGA primitive for one buffer of the engine, or for the requantiser's multipliers.

    Attributes:
        name: The macro that the pragma BIND_STORAGE or BIND_OP uses as its ``impl``.
        impl: The macro's value: bram, uram or lutram for a buffer, dsp or fabric for multipliers.
        reason: The comment at the macro.
    """

    name: str
    impl: str
    reason: str


@dataclass(frozen=True)
class Fifo:
    """The width, depth and primitive of the FIFO of a stream, or of every stream of an array.

    Attributes:
        bits: Width of a word in bits.
        depth: Capacity in words.
        impl: The primitive, as ``impl`` of the pragma BIND_STORAGE.
    """

    bits: int
    depth: int
    impl: str


@dataclass(frozen=True)
class SystolicValues:
    """The values of one design from which the templates render the systolic engine's C++ sources.

    Attributes:
        title: The first comment of every generated file.
        parameters: The constants of parameters.h in their order.
        map_ports: Number of ports for maps.
        weight_ports: Number of ports for weights.
        fifos: The FIFO of every stream of the DATAFLOW region, by the stream's name.
        bounds: The words that co-simulation models at each m_axi port, and the largest number of passes, by name.
        burst_words: The largest burst of a port, in words.
        outstanding: The number of requests that a port may have open.
        latency: The ``latency`` option of the m_axi ports, in cycles.
        memories: The primitive of every buffer and of the requantiser's multipliers.
        map_depth: Words per bank of a map buffer; 0 without map buffers.
        reasons: Further comment lines at the top of top.cpp: why the schedule chose this geometry.
        added_maps: 1 if the Saver adds residual maps, which needs another port; otherwise 0.
    """

    title: str
    parameters: tuple[Parameter, ...]
    map_ports: int
    weight_ports: int
    fifos: Mapping[str, Fifo]
    bounds: Mapping[str, int]
    burst_words: int
    outstanding: int
    latency: int
    memories: tuple[BufferPrimitive, ...]
    map_depth: int
    reasons: Sequence[str]
    added_maps: int = 0


def header_parameters(geometry: Geometry, others: Sequence[Parameter]) -> tuple[Parameter, ...]:
    """Return the constants of parameters.h, in the order in which the file lists them.

    Args:
        geometry: The array's geometry, whose parameters become constants.
        others: Constants that are not part of the geometry.
    """
    constants = (
        *(Parameter(key.macro, int(getattr(geometry, key.name)), key.doc) for key in parameters() if key.macro),
        Parameter("PIXEL_BYTES", PIXEL_BYTES, "bytes of one input pixel"),
        Parameter("PIXEL_LANES", geometry.pixel_lanes, "lanes of one input pixel"),
        *others,
    )
    named = {constant.name: constant for constant in constants}
    if geometry.late_offsets > 1:
        named["LATE_OFFSETS"] = Parameter("LATE_OFFSETS", geometry.late_offsets, HALVES_TO_EVEN)
    return tuple(named[name] for name in HEADER)


def systolic_sources(values: SystolicValues) -> dict[str, str]:
    """Return the C++ sources of a systolic engine by file name: parameters.h, top.h, top.cpp and the headers that they
    include."""
    fields = {
        **vars(values),
        "rows": next(parameter.value for parameter in values.parameters if parameter.name == "ROWS"),
        "title": comment(values.title),
        "reasons": [comment(line) for line in values.reasons],
        "parameters": [Parameter(identifier(p.name), p.value, comment(p.reason)) for p in values.parameters],
        "memories": [
            BufferPrimitive(identifier(m.name), identifier(m.impl), comment(m.reason)) for m in values.memories
        ],
        "top": TOP,
    }
    generated = {name: render(f"systolic/{name}.j2", fields) for name in ("parameters.h", "top.h", "top.cpp")}
    return with_headers(generated, "systolic")


def systolic_simulation(values: SystolicValues) -> dict[str, str]:
    """Return the files of a systolic design's simulation/ folder, as texts by file name.

    These are simulate.cpp, which gives the top function a C interface, the cycle recorder, and the headers of both.
    """
    simulate = render("systolic/simulate.cpp.j2", {**vars(values), "title": comment(values.title), "top": TOP})
    return simulation_files(systolic_sources(values), simulate)
