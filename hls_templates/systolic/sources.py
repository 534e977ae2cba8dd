"""The systolic engine's sources for one geometry: parameters and wiring; the rest are fixed headers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from boards.templates import comment, identifier
from hls_templates.headers import simulation_files, with_headers
from hls_templates.render import render

TOP = "systolic_top"


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
