"""The arguments of each style's top function. They determine the registers, bundles and streams of its IP."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from boards.errors import ChoiceError, InvalidValueError, MissingValueError, RangeError
from boards.templates import comment, identifier
from hls_templates.reserved import hardware_name
from hls_templates.streaming import sources as streaming
from hls_templates.streaming.sources import Packet, WeightPort
from hls_templates.systolic import sources as systolic
from hls_templates.vendor.registers import Argument

VENDOR, LIBRARY, VERSION = "systolic", "cnn", "1.0"
"""The identification of the exported IP, together with the top function's name."""

INTERRUPTS, DMA = "axi_intc_0", "axi_dma_0"
"""The cells of the interrupt controller and of the DMA, in the block design and in the hardware description."""

CLOCKS = "clocks_0"
"""The cell of the block design that generates the second clock of an IP that has one."""

LENGTH_BITS = 26
"""Bits of the DMA's length register: the maximum (PG021, C_SG_LENGTH_WIDTH)."""

BURST_BYTES, BURST_BEATS = 4096, 64
"""The limits of the DMA's bursts, in bytes and in beats. AXI allows 4 KiB; more than 64 beats make no difference."""

BEATS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Widths of the DMA's streams in bytes (PG021)."""

_PORTS = (1, 2, 4)  # the possible numbers of ports for maps and for weights


@dataclass(frozen=True)
class Output:
    """An output of the network in the map arena (the feature maps in DDR), which the test bench compares with
    data/expected.bin.

    Attributes:
        name: The name of the output.
        base: The first word in the map arena. A word has LANES bytes.
        words: The number of words.
    """

    name: str
    base: int
    words: int


RENAMED = frozenset({"program", "in", "out"})
"""Arguments whose names are reserved words. Vitis HLS appends _r, and the driver and build_vivado.tcl accept both."""


@dataclass(frozen=True)
class DmaPackets:
    """The packets of an AXI DMA next to the accelerator: each input frame and each output frame is one packet."""

    packet_in: Packet
    packet_out: Packet


class _TopFunction(ABC):
    """The arguments of a style's top function, and the interfaces of its IP that follow from them."""

    top: ClassVar[str]
    """The name of the top function."""

    light: ClassVar[tuple[str, ...]]
    """The bundles with little traffic, a few kilobytes per layer."""

    second_slave: ClassVar[tuple[str, str]]
    """The other cell with registers, and its slave interface."""

    @property
    @abstractmethod
    def arguments(self) -> tuple[Argument, ...]:
        """The arguments of the top function, in the order of the C++ signature."""

    @property
    @abstractmethod
    def dma(self) -> DmaPackets | None:
        """The packets of the DMA if it streams the frames; None if frames are in DDR and an interrupt signals the
        end."""

    @abstractmethod
    def template_fields(self) -> dict[str, object]:
        """Return the values of the fields that only the templates of this style use."""

    def check_names(self) -> None:
        """Raise InvalidValueError if a name in the hardware is a reserved word that no tool renames."""
        hardware_name(self.top, "the top function")
        hardware_name(self.cell, "the accelerator's cell")
        for argument in self.arguments:
            if argument.name not in RENAMED:
                hardware_name(identifier(argument.name), f"argument {argument.name!r} of the top function")

    @property
    def vlnv(self) -> str:
        """The identification "vendor:library:name:version" of the exported IP. The host binds its driver to this
        text."""
        return f"{VENDOR}:{LIBRARY}:{self.top}:{VERSION}"

    @property
    def cell(self) -> str:
        """The name of the accelerator's cell in the block design and in the hardware description."""
        return f"{self.top}_0"


@dataclass(frozen=True)
class SystolicPorts(_TopFunction):
    """The arguments of the systolic style's top function, which reads feature maps and weights from DDR.

    Attributes:
        map_ports: The number of ports for maps.
        weight_ports: The number of ports for weights.
        maps_words: Words in the map arena.
        outputs: The regions of the map arena that the test bench compares, in the order of data/expected.bin.
        added_maps: 1 if the Saver computes residual adds, for which it has a further port for maps; else 0.
    """

    map_ports: int
    weight_ports: int
    maps_words: int
    outputs: tuple[Output, ...]
    added_maps: int = 0

    top = systolic.TOP
    light = ("program", "layers")
    second_slave = (INTERRUPTS, "s_axi")

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The arguments of the top function, in the order of templates/systolic/top.h.j2. A test compares them."""
        maps = [
            Argument(f"maps_{way}_{port}", "pointer", f"maps_{port}")
            for port in range(self.map_ports + self.added_maps)
            for way in ("read", "write")
        ]
        weights = [Argument(f"weights_{port}", "pointer", f"weights_{port}") for port in range(self.weight_ports)]
        return (
            *maps,
            *weights,
            Argument("requantisers", "pointer", "program"),
            Argument("program", "pointer", "layers"),
            Argument("first", "scalar"),
            Argument("count", "scalar"),
            Argument("current", "output"),
        )

    @property
    def dma(self) -> None:
        return None

    def template_fields(self) -> dict[str, object]:
        """Return the values of the fields of templates/systolic/test_bench.cpp.j2."""
        return {
            "map_ports": self.map_ports,
            "added_maps": self.added_maps,
            "weight_ports": self.weight_ports,
            "maps_words": self.maps_words,
            "outputs": [Output(comment(out.name), out.base, out.words) for out in self.outputs],
        }

    def check(self) -> None:
        """Raise an error if a number of ports is not 1, 2 or 4, or if an output is not a region of the map arena."""
        for name, count in (("map_ports", self.map_ports), ("weight_ports", self.weight_ports)):
            if count not in _PORTS:
                raise ChoiceError(name, count, _PORTS)  # the register map has a pointer for each
        if not self.outputs:
            raise MissingValueError("an output", "the test bench compares at least one")
        for out in self.outputs:
            if out.base < 0 or out.words < 1 or out.base + out.words > self.maps_words:
                raise InvalidValueError(
                    f"output {comment(out.name)!r}",
                    f"{out.words} words from {out.base}",
                    f"at least 1 word within the {self.maps_words} words of the map arena",
                )


@dataclass(frozen=True)
class StreamingPorts(_TopFunction):
    """The arguments of the streaming style's top function, which gets frames as packets of an AXI DMA.

    Attributes:
        packet_in: The packet of an input frame.
        packet_out: The packet of an output frame.
        external: A port for each layer with weights in DDR. The weights are in data/<name>.bin.
    """

    packet_in: Packet
    packet_out: Packet
    external: tuple[WeightPort, ...] = ()

    top = streaming.TOP
    light = ()
    second_slave = (DMA, "S_AXI_LITE")

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The arguments of the top function, in the order of templates/streaming/top.h.j2. A test compares them."""
        return (
            Argument("in", "stream"),
            Argument("out", "stream"),
            *(Argument(memory.name, "pointer", memory.name) for memory in self.external),
            Argument("frames", "scalar"),
        )

    @property
    def dma(self) -> DmaPackets:
        return DmaPackets(self.packet_in, self.packet_out)

    def template_fields(self) -> dict[str, object]:
        """Return the values of the fields of templates/streaming/test_bench.cpp.j2."""
        return {"packet_in": self.packet_in, "packet_out": self.packet_out, "external": self.external}

    def check(self) -> None:
        """Raise ChoiceError or RangeError if the AXI DMA cannot carry the packets: a beat's width, or a packet's
        bytes."""
        for way, packet in (("in", self.packet_in), ("out", self.packet_out)):
            if packet.beat not in BEATS:
                raise ChoiceError(f"the number of bytes in a beat of packet_{way}", packet.beat, BEATS)
            if not 0 < packet.beats * packet.beat < 1 << LENGTH_BITS:
                raise RangeError(
                    f"the bytes of packet_{way}, whose number the DMA's register of {LENGTH_BITS} bits holds,",
                    packet.beats * packet.beat,
                    1,
                    (1 << LENGTH_BITS) - 1,
                    remedy="take a smaller picture, or outputs of fewer bits",
                )


Ports = SystolicPorts | StreamingPorts
