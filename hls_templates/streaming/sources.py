"""The streaming accelerator's sources: one function a block, streams between them; the blocks are fixed headers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from boards.templates import comment, identifier
from hls_templates.headers import simulation_files, with_headers
from hls_templates.render import render

TOP = "streaming_top"

_LINE, _SHORT_ROW = 110, 8


@dataclass(frozen=True)
class Element:
    """What a stream carries in a cycle: ``lanes`` integers of ``bits`` bits; with 0 lanes, a beat of the DMA."""

    bits: int
    signed: bool
    lanes: int

    @property
    def value(self) -> str:
        """The C++ type of one lane."""
        return f"integer<{self.bits}, {'true' if self.signed else 'false'}>"

    @property
    def constant(self) -> str:
        """The type of a constant array (word.h)."""
        return f"constant<{self.bits}, {'true' if self.signed else 'false'}>"

    @property
    def bits_wide(self) -> int:
        """Width of a whole word; a beat has a bit more, which says whether it is a packet's last."""
        return self.bits * self.lanes if self.lanes else self.bits + 1

    @property
    def text(self) -> str:
        """The C++ type of the whole word or beat."""
        return f"word<{self.value}, {self.lanes}>" if self.lanes else f"beat_t<{self.bits // 8}>"


@dataclass(frozen=True)
class Wire:
    """A stream of the pipeline. depth: of its FIFO, in words; impl: what it is built of, as BIND_STORAGE says it."""

    name: str
    element: Element
    depth: int
    impl: str = "srl"


@dataclass(frozen=True)
class Connection:
    """Port ``name`` of a block's function is connected to ``stream`` of the pipeline."""

    name: str
    stream: str


@dataclass(frozen=True)
class Tap:
    """``stream`` carries the integers of layer ``number``, for who compares them in a simulation."""

    number: int
    stream: str


@dataclass(frozen=True)
class WeightPort:
    """An m_axi port of weights: ``words`` elements of C++ type ``type``."""

    name: str
    type: str
    words: int


@dataclass(frozen=True)
class Instance:
    """One block: ``function``<arguments>(frames, ports…, constants…, weight ports…).

    per_frame: its process calls it once for each frame; otherwise once for each start, so that it can keep weights from
    frame to frame. storage: (constant, primitive) for constants whose primitive the folding chose: lutram or bram.
    """

    name: str
    function: str
    header: str
    arguments: tuple[str, ...]
    ports: tuple[Connection, ...]
    reasons: tuple[str, ...]
    constants: tuple[str, ...] = ()
    per_frame: bool = True
    storage: tuple[tuple[str, str], ...] = ()
    weight_ports: tuple[WeightPort, ...] = ()
    taps: tuple[Tap, ...] = ()


@dataclass(frozen=True, eq=False)
class Constant:
    """A constant of C++ type ``type``: an array of ``dims`` with one field, or an aggregate of array fields."""

    name: str
    type: str
    fields: tuple[npt.NDArray[np.integer], ...]
    dims: tuple[int, ...]
    reason: str


@dataclass(frozen=True)
class Packet:
    """One frame on the DMA: ``bytes`` bytes, in beats of ``beat`` bytes."""

    bytes: int
    beat: int

    @property
    def beats(self) -> int:
        return -(-self.bytes // self.beat)


@dataclass(frozen=True, eq=False)
class StreamingValues:
    """What the pipeline's templates need. burst_words, outstanding: of the m_axi ports of weights. headers: name → text
    of those that packages have."""

    title: str
    reasons: Sequence[str]
    instances: Sequence[Instance]
    wires: Sequence[Wire]
    constants: Sequence[Constant]
    packet_in: Packet
    packet_out: Packet
    burst_words: int
    outstanding: int
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def external(self) -> tuple[WeightPort, ...]:
        """The ports of all weights that stay in DDR, in the order of the top function's arguments."""
        return tuple(port for instance in self.instances for port in instance.weight_ports)


def streaming_sources(values: StreamingValues) -> dict[str, str]:
    """File name → text: top.h, top.cpp, constants.h and the headers that they include."""
    fields = _fields(values)
    generated = {name: render(f"streaming/{name}.j2", fields) for name in ("top.h", "top.cpp", "constants.h")}
    return with_headers(generated, "streaming", values.headers)


def streaming_simulation(values: StreamingValues) -> dict[str, str]:
    """File name → text of the simulation/ folder: simulate.cpp (the top function behind a C interface), the cycle
    recorder, and the headers that they need."""
    simulate = render("streaming/simulate.cpp.j2", _fields(values))
    return simulation_files(streaming_sources(values), simulate)


def _fields(values: StreamingValues) -> Mapping[str, object]:
    types = {identifier(wire.name): wire.element.text for wire in values.wires}
    ends = {"in": f"beat_t<{values.packet_in.beat}>", "out": f"beat_t<{values.packet_out.beat}>"}
    return {
        "title": comment(values.title),
        "reasons": [comment(line) for line in values.reasons],
        "top": TOP,
        "includes": sorted({"tap.h", *(instance.header for instance in values.instances)}),
        "instances": [_checked(instance) for instance in values.instances],
        "types": {**types, **ends},
        "streams": values.wires,
        "constants": [_text(constant) for constant in values.constants],
        "external": values.external,
        "packet_in": values.packet_in,
        "packet_out": values.packet_out,
        "burst_words": values.burst_words,
        "outstanding": values.outstanding,
    }


def _checked(instance: Instance) -> Mapping[str, object]:
    identifier(instance.name)
    return {**vars(instance), "reasons": [comment(line) for line in instance.reasons]}


def _text(constant: Constant) -> Mapping[str, object]:
    """Braces within an array may be left out in an initialiser; those between the fields of an aggregate may not."""
    parts = ["\n".join(_wrapped(field.reshape(-1, field.shape[-1]).tolist())) for field in constant.fields]
    text = parts[0] if constant.dims else ",\n".join(f"    {{\n{part}\n    }}" for part in parts)
    return {
        "name": identifier(constant.name),
        "type": constant.type,
        "dims": constant.dims,
        "reason": comment(constant.reason),
        "text": text,
    }


def _wrapped(rows: Sequence[Sequence[int]]) -> list[str]:
    """Every innermost row on lines of its own; short ones, one behind the other."""
    if rows and len(rows[0]) < _SHORT_ROW:
        rows = [[value for row in rows for value in row]]
    lines = []
    for row in rows:
        line = "    "
        for value in row:
            piece = f"{value}, "
            if len(line) + len(piece) > _LINE:
                lines.append(line.rstrip())
                line = "    "
            line += piece
        lines.append(line.rstrip())
    return lines
