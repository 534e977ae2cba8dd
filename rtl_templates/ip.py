"""The pins of the wrapper that Vivado packages as an IP: the top module's ports in plain Verilog, with interfaces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SLAVE = "s_axi_control"

_AXI, _CLOCK, _RESET, _INTERRUPT = (
    f"xilinx.com:{kind}:1.0" for kind in ("interface:aximm", "signal:clock", "signal:reset", "signal:interrupt")
)
_LITE = "PROTOCOL AXI4LITE, DATA_WIDTH 32, ADDR_WIDTH {bits}"
_MASTER = (
    "PROTOCOL AXI4, DATA_WIDTH {bits}, ADDR_WIDTH 64, ID_WIDTH 0, READ_WRITE_MODE {mode}, SUPPORTS_NARROW_BURST 0, "
    "MAX_BURST_LENGTH {burst}, NUM_READ_OUTSTANDING {outstanding}, NUM_WRITE_OUTSTANDING {outstanding}"
)


@dataclass(frozen=True)
class Master:
    """An AXI master port ``m_axi_<name>`` of the engine's top module, with ``bits`` bits per beat."""

    name: str
    bits: int
    writes: bool


@dataclass(frozen=True)
class Pin:
    """One port of the Verilog wrapper that Vivado packages as an IP.

    Attributes:
        way: ``input`` or ``output``.
        bits: Its width in bits.
        name: Its name.
        info: The text of X_INTERFACE_INFO.
        parameter: The text of X_INTERFACE_PARAMETER, for the first port of an interface; "" for the others.
    """

    way: str
    bits: int
    name: str
    info: str
    parameter: str = ""

    @property
    def declaration(self) -> str:
        """The port's declaration in Verilog-2001."""
        span = f"[{self.bits - 1}:0] " if self.bits > 1 else ""
        return f"{self.way} wire {span}{self.name}"


@dataclass(frozen=True)
class _Side:
    """One side (slave or master) of an AXI interface, with the directions of its signals.

    Attributes:
        name: The name of the interface.
        sends: ``input`` or ``output``, for signals that this side drives.
        receives: ``input`` or ``output``, for signals that the other side drives.
    """

    name: str
    sends: str
    receives: str

    def channel(self, prefix: str, payload: Sequence[tuple[str, int]], *, answers: bool) -> Iterator[Pin]:
        """Yield the ports of an AXI channel: VALID, READY and the payload. ``answers`` says that the other side drives
        the channel."""
        forward, backward = (self.receives, self.sends) if answers else (self.sends, self.receives)
        yield self._pin(forward, 1, f"{prefix}VALID")
        yield self._pin(backward, 1, f"{prefix}READY")
        for signal, bits in payload:
            yield self._pin(forward, bits, prefix + signal)

    def _pin(self, way: str, bits: int, signal: str) -> Pin:
        return Pin(way, bits, f"{self.name}_{signal}", f"{_AXI} {self.name} {signal}")


def wrapper_pins(
    address_bits: int, masters: Sequence[Master], bursts: tuple[int, int], dsp_clock: int = 1
) -> tuple[Pin, ...]:
    """Return the ports of the Verilog wrapper, in the order of the top module's ports.

    Args:
        address_bits: Bits of an address of the slave.
        masters: The AXI ports.
        bursts: Beats of the longest burst, and bursts in flight per port.
        dsp_clock: 2 if the DSPs have a clock of twice the rate, ``ap_clk_2x``.
    """
    double = [Pin("input", 1, "ap_clk_2x", f"{_CLOCK} ap_clk_2x CLK")] if dsp_clock > 1 else []
    level = "XIL_INTERFACENAME interrupt, SENSITIVITY LEVEL_HIGH"
    return (
        Pin("input", 1, "ap_clk", f"{_CLOCK} ap_clk CLK"),
        *double,
        Pin("input", 1, "ap_rst_n", f"{_RESET} ap_rst_n RST", "XIL_INTERFACENAME ap_rst_n, POLARITY ACTIVE_LOW"),
        Pin("output", 1, "interrupt", f"{_INTERRUPT} interrupt INTERRUPT", level),
        *_described(SLAVE, _slave(address_bits), _LITE.format(bits=address_bits)),
        *(pin for master in masters for pin in _master_pins(master, *bursts)),
    )


def _slave(address_bits: int) -> Iterator[Pin]:
    side = _Side(SLAVE, "input", "output")
    yield from side.channel("AW", [("ADDR", address_bits)], answers=False)
    yield from side.channel("W", [("DATA", 32), ("STRB", 4)], answers=False)
    yield from side.channel("B", [("RESP", 2)], answers=True)
    yield from side.channel("AR", [("ADDR", address_bits)], answers=False)
    yield from side.channel("R", [("DATA", 32), ("RESP", 2)], answers=True)


def _master_pins(master: Master, burst: int, outstanding: int) -> Iterator[Pin]:
    name = f"m_axi_{master.name}"
    side = _Side(name, "output", "input")
    request = [("ADDR", 64), ("LEN", 8), ("SIZE", 3), ("BURST", 2)]
    pins = [
        *side.channel("AR", request, answers=False),
        *side.channel("R", [("DATA", master.bits), ("RESP", 2), ("LAST", 1)], answers=True),
    ]
    if master.writes:
        pins += side.channel("AW", request, answers=False)
        pins += side.channel("W", [("DATA", master.bits), ("STRB", master.bits // 8), ("LAST", 1)], answers=False)
        pins += side.channel("B", [("RESP", 2)], answers=True)
    mode = "READ_WRITE" if master.writes else "READ_ONLY"
    return _described(
        name, iter(pins), _MASTER.format(bits=master.bits, mode=mode, burst=burst, outstanding=outstanding)
    )


def _described(name: str, pins: Iterator[Pin], parameter: str) -> Iterator[Pin]:
    """Yield the ports of an interface; the first one gets the interface's X_INTERFACE_PARAMETER."""
    first = next(pins)
    yield Pin(first.way, first.bits, first.name, first.info, f"XIL_INTERFACENAME {name}, {parameter}")
    yield from pins
