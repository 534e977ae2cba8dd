"""Writes the sources of a streaming accelerator from a description of its pipeline.

The top function connects blocks by streams. The blocks are functions of fixed headers; only the constants and the
connections are generated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from boards.templates import comment, identifier
from hls_templates.headers import simulation_files, with_headers
from hls_templates.render import render

TOP = "streaming_top"
"""The name of the top function."""

_LINE, _SHORT_ROW = 110, 8
"""The most characters of a line of constants, and the number of values below which innermost rows share lines."""


@dataclass(frozen=True)
class Element:
    """The type of the word that a stream of the pipeline transfers in a cycle, or of a beat of the DMA.

    Attributes:
        bits: Bits of a lane, or of a whole beat's data.
        signed: Whether a lane is a signed integer.
        lanes: The number of integers in the word; 0 for a beat of the DMA.
    """

    bits: int
    signed: bool
    lanes: int

    @property
    def value(self) -> str:
        """The C++ type of one lane (integer) of the word."""
        return f"integer<{self.bits}, {'true' if self.signed else 'false'}>"

    @property
    def constant(self) -> str:
        """The C++ type of a constant array's element with the width and sign of one lane (word.h)."""
        return f"constant<{self.bits}, {'true' if self.signed else 'false'}>"

    @property
    def bits_wide(self) -> int:
        """Bits of the whole word. A beat of the DMA has one more bit, which marks the last beat of a packet."""
        return self.bits * self.lanes if self.lanes else self.bits + 1

    @property
    def text(self) -> str:
        """The C++ type of the whole word, or of the beat of the DMA."""
        return f"word<{self.value}, {self.lanes}>" if self.lanes else f"beat_t<{self.bits // 8}>"


@dataclass(frozen=True)
class Wire:
    """A stream of the pipeline between two blocks, with its FIFO.

    Attributes:
        name: The stream's C++ name.
        element: The word that it transfers.
        depth: Words that its FIFO holds.
        impl: The primitive of the FIFO, as an ``impl`` of BIND_STORAGE.
    """

    name: str
    element: Element
    depth: int
    impl: str = "srl"


@dataclass(frozen=True)
class Connection:
    """The connection of port ``name`` of a block's C++ function to the pipeline's stream ``stream``."""

    name: str
    stream: str


@dataclass(frozen=True)
class Tap:
    """A stream of the pipeline whose values a simulation records (tap.h), because they are the output of layer
    ``number``."""

    number: int
    stream: str


@dataclass(frozen=True)
class WeightPort:
    """An m_axi port for weights in DDR, with ``words`` elements of C++ type ``type``."""

    name: str
    type: str
    words: int


@dataclass(frozen=True)
class Instance:
    """One block of the pipeline, built by the call ``function<arguments>(frames, ports…, constants…, weight ports…)``.

    Attributes:
        name: The block's name. Its process is ``<name>_process``.
        function: The C++ function of the block.
        header: The header of the function.
        arguments: Template arguments.
        ports: Connections to streams, in the order of the function's parameters.
        reasons: Lines of the comment at the process, which say why the block is built in this way.
        constants: Names of the constants that the function gets.
        per_frame: Whether the process calls the function once per frame. Otherwise it calls the function once per
            start, so that the function can keep weights from frame to frame.
        storage: (constant, primitive) for each constant whose primitive the folding chose: lutram or bram.
        weight_ports: Ports for weights in DDR.
        taps: Streams that are recorded after the process.
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
    """A constant array or aggregate in the pipeline's C++ sources, such as a block's weights.

    Attributes:
        name: Its C++ name.
        type: Its C++ type; the type of an element if it is an array.
        fields: The values: one array, or one array per field of an aggregate.
        dims: Sizes of the array; empty for an aggregate.
        reason: A comment that says what the constant is.
    """

    name: str
    type: str
    fields: tuple[npt.NDArray[np.integer], ...]
    dims: tuple[int, ...]
    reason: str


@dataclass(frozen=True)
class Packet:
    """The size of one frame's packet on the DMA: ``bytes`` bytes, in beats of ``beat`` bytes."""

    bytes: int
    beat: int

    @property
    def beats(self) -> int:
        return -(-self.bytes // self.beat)


@dataclass(frozen=True, eq=False)
class StreamingValues:
    """The description of a streaming pipeline, from which its C++ sources are rendered.

    Attributes:
        title: The first line of the comment at the head of top.cpp.
        reasons: Further lines of this comment.
        instances: The blocks, in the order of their calls.
        wires: The streams between the blocks.
        constants: The constants of all blocks.
        packet_in: A frame at the input DMA.
        packet_out: A frame at the output DMA.
        burst_words: The most words in a burst of a weight port.
        outstanding: The most read requests that a weight port has in flight.
        headers: The headers of installed packages, by name: their texts.
    """

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
        """The AXI ports for all weights in DDR, in the order of the top function's arguments."""
        return tuple(port for instance in self.instances for port in instance.weight_ports)


def streaming_sources(values: StreamingValues) -> dict[str, str]:
    """Return the C++ sources of a streaming pipeline by file name: top.h, top.cpp, constants.h and the headers that
    they include."""
    fields = _fields(values)
    generated = {name: render(f"streaming/{name}.j2", fields) for name in ("top.h", "top.cpp", "constants.h")}
    return with_headers(generated, "streaming", values.headers)


def streaming_simulation(values: StreamingValues) -> dict[str, str]:
    """Return the files of a streaming design's simulation/ folder, as texts by file name.

    These are simulate.cpp, which calls the top function through a C interface, the cycle recorder, and the headers that
    they need.
    """
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
    """Return the fields by which the template writes a constant: name, type, sizes, comment and initialiser.

    The initialiser has braces only around the fields of an aggregate. C++ allows the braces inside an array to be left
    out.
    """
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
    """Return the source lines of an array's values. Each innermost row starts a new line, unless rows are short."""
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
