"""The systolic engine's sources for one geometry: parameters and wiring; the rest are fixed headers."""

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

HALVES_TO_EVEN = "2: requantisers may add behind their product, and round halves to even"
"""The reason for a LATE_OFFSETS of 2."""


@dataclass(frozen=True)
class Parameter:
    """One compile-time constant of the engine and the reason for its value."""

    name: str
    value: int
    reason: str


@dataclass(frozen=True)
class BufferPrimitive:
    """The primitive of one buffer, or of the products. name: the macro in its BIND_STORAGE or BIND_OP; impl: its value,
    bram, uram, lutram, dsp or fabric."""

    name: str
    impl: str
    reason: str


@dataclass(frozen=True)
class Fifo:
    """The FIFO of a stream, or of each of an array: ``depth`` words of ``bits``, built of ``impl`` of BIND_STORAGE."""

    bits: int
    depth: int
    impl: str


@dataclass(frozen=True)
class SystolicValues:
    """What the engine's templates need.

    fifos: every stream of the DATAFLOW region, by name. bounds: words that co-simulation models behind each m_axi
    port, and the most passes. latency: the ports' m_axi option. memories: the primitive of every buffer. map_depth:
    words of a bank of a map buffer; 0 without map buffers. added_maps: 1 with a port for maps that the Saver adds.
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
    """Return the constants of parameters.h in their order.

    Args:
        geometry: The array's, whose parameters are constants.
        others: The constants that the geometry does not have.
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
    """File name → text: parameters.h, top.h, top.cpp and the fixed headers that they include."""
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
    """File name → text of the simulation/ folder: simulate.cpp (the top function behind a C interface), the cycle
    recorder, and the headers that they need."""
    simulate = render("systolic/simulate.cpp.j2", {**vars(values), "title": comment(values.title), "top": TOP})
    return simulation_files(systolic_sources(values), simulate)
