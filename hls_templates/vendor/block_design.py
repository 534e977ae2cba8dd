"""The block design that build_vivado.tcl builds: ports of the PS with their masters, and settings of PS and DMA."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from boards.errors import UnsupportedError
from hls_templates.vendor.board_facts import PortFacts
from hls_templates.vendor.ports import BURST_BEATS, BURST_BYTES, DMA, LENGTH_BITS, DmaPackets, Ports
from hls_templates.vendor.registers import bundles
from hls_templates.vendor.values import VendorValues, megahertz

BLOCK_DESIGN = "system"
"""The name of the block design. The top module is ``system_wrapper``.

The name must not be a reserved word of Verilog or VHDL, such as ``design``.
"""

# CONFIG keys that enable the PS's masters. The vendor's board preset enables several of them, and a block design in
# which a master has no clock does not validate. All are therefore disabled, and one is enabled again.
_MASTERS = {
    "zynq_ultra_ps_e": ("PSU__USE__M_AXI_GP0", "PSU__USE__M_AXI_GP1", "PSU__USE__M_AXI_GP2"),
    "processing_system7": ("PCW_USE_M_AXI_GP0", "PCW_USE_M_AXI_GP1"),
}
_FABRIC_INTERRUPT = "PCW_IRQ_F2P_INTR"
_ALWAYS = {
    "zynq_ultra_ps_e": {"PSU__FPGA_PL0_ENABLE": "1", "PSU__USE__FABRIC__RST": "1"},
    "processing_system7": {"PCW_EN_CLK0_PORT": "1", "PCW_EN_RST0_PORT": "1", _FABRIC_INTERRUPT: "1"},
}
# The rule of Vivado's automation that applies the board preset, and its options.
PRESETS = {
    "zynq_ultra_ps_e": ("xilinx.com:bd_rule:zynq_ultra_ps_e", (("apply_board_preset", "1"),)),
    "processing_system7": (
        "xilinx.com:bd_rule:processing_system7",
        (
            ("make_external", "FIXED_IO, DDR"),
            ("apply_board_preset", "1"),
            ("Master", "Disable"),
            ("Slave", "Disable"),
        ),
    ),
}


@dataclass(frozen=True)
class Master:
    """An AXI master that reads or writes DDR: interface ``pin`` of ``cell``."""

    cell: str
    pin: str

    def __str__(self) -> str:
        return f"{self.cell}/{self.pin}"


@dataclass(frozen=True)
class PortUse:
    """A slave port of the processing system (PS), and the AXI masters that share it."""

    port: PortFacts
    masters: tuple[Master, ...]


def port_plan(values: VendorValues) -> tuple[PortUse, ...]:
    """Return the slave ports of the PS in use, with the AXI masters of the design that each serves.

    The masters for maps and weights share the non-coherent ports evenly, in order. If there are fewer masters than
    ports, the plan prefers PS ports that lead to different ports of the DDR controller. The masters with little traffic
    share a coherent port. On a board without one, each of them joins the port with the fewest masters.

    Raises:
        UnsupportedError: The board has no non-coherent port.
    """
    noncoherent = [port for port in values.board.ports if not port.coherent]
    if not noncoherent:
        raise UnsupportedError(
            f"the board {values.board.title}", "it has no high-performance port through which maps could be read"
        )
    heavy, light = _masters(values.ports)
    chosen = _apart(noncoherent, len(heavy))
    shared: dict[str, list[Master]] = {port.name: heavy[i :: len(chosen)] for i, port in enumerate(chosen)}
    for_light = [port for port in values.board.ports if port.coherent][:1] or noncoherent
    for master in light:
        emptiest = min(for_light, key=lambda port: len(shared.get(port.name, ())))
        shared.setdefault(emptiest.name, []).append(master)
    return tuple(PortUse(port, tuple(shared[port.name])) for port in values.board.ports if port.name in shared)


def _masters(ports: Ports) -> tuple[list[Master], list[Master]]:
    """Return the design's AXI masters in two lists: for feature maps and weights, and with little traffic."""
    heavy = [Master(DMA, pin) for pin in ("M_AXI_MM2S", "M_AXI_S2MM")] if ports.dma else []
    light: list[Master] = []
    for bundle in bundles(ports.arguments):
        (light if bundle in ports.light else heavy).append(Master(ports.cell, f"m_axi_{bundle}"))
    return heavy, light


def _apart(ports: Sequence[PortFacts], count: int) -> list[PortFacts]:
    """Return at most ``count`` of the PS ports, in their order. Each port of the DDR controller is used once before any
    is reused."""
    rounds: Counter[int] = Counter()
    ranked: list[tuple[int, int]] = []  # (earlier ports on the same controller port, index)
    for index, port in enumerate(ports):
        ranked.append((rounds[port.controller_port], index))
        rounds[port.controller_port] += 1
    return [ports[index] for index in sorted(index for _, index in sorted(ranked)[:count])]


def dma_config(packets: DmaPackets) -> dict[str, int]:
    """Return Vivado's settings (CONFIG) of the AXI DMA: direct register mode, the accelerator's beats, addresses above
    4 GB.

    There is no realignment engine, because buffers start at pages. A packet may end within a beat without it (PG021).
    """
    beats = {"mm2s": packets.packet_in.beat, "s2mm": packets.packet_out.beat}
    config = {"c_include_sg": 0, "c_sg_include_stscntrl_strm": 0, "c_micro_dma": 0}
    config |= {"c_sg_length_width": LENGTH_BITS, "c_addr_width": 64}
    for channel, beat in beats.items():
        config[f"c_include_{channel}"] = 1
        config[f"c_include_{channel}_dre"] = 0
        config[f"c_m_axi_{channel}_data_width"] = max(32, 8 * beat)
        config[f"c_{channel}_burst_size"] = min(BURST_BEATS, BURST_BYTES // beat)
    # Vivado derives the width of the S2MM stream from its connection.
    return {**config, "c_m_axis_mm2s_tdata_width": 8 * beats["mm2s"]}


def ps_config(values: VendorValues, plan: Sequence[PortUse]) -> dict[str, str]:
    """Return Vivado's settings (CONFIG) of the PS: one master, the used ports with their widths, the clock and the
    interrupt."""
    ps, control = values.board.ps, values.board.control
    ports_in_use = {use.port.name for use in plan}
    interrupt = values.ports.dma is None
    config = {key: value for key, value in _ALWAYS[ps.ip].items() if interrupt or key != _FABRIC_INTERRUPT}
    config |= dict.fromkeys(_MASTERS[ps.ip], "0")
    config[control.enable] = "1"
    for port in values.board.ports:
        config[port.enable] = str(int(port.name in ports_in_use))
        if port.name in ports_in_use:
            config[port.width] = str(port.bits)
    config[ps.clock_source_key] = values.clock.pll
    config[ps.clock_mhz_key] = megahertz(values.clock.mhz)
    config[ps.interrupt_key] = str(int(interrupt))
    return config
