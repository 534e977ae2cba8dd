"""What a board file says, one frozen dataclass a table; ``boards.board.Board`` holds them all.

Every number is a fact of a data sheet or of the vendor's board files; the file says which, table by table.
What only a vendor tool can tell (the clock a design closes at) is no board fact and is not here. The types of the
fields are what a file may say: a range catches a misspelt number, and is not a statement about boards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from boards.ranges import OneOf, Range


@dataclass(frozen=True)
class Resources:
    """What the programmable logic holds. bram36 are 36 Kib blocks, uram 288 Kib ones (72 × 4096)."""

    lut: Annotated[int, Range(1, 10_000_000)]
    lutram: Annotated[int, Range(0, 10_000_000)]  # of the LUTs, those that can be memory
    ff: Annotated[int, Range(1, 20_000_000)]
    bram36: Annotated[int, Range(1, 10_000)]
    uram: Annotated[int, Range(0, 10_000)]
    dsp: Annotated[int, Range(1, 50_000)]


@dataclass(frozen=True)
class Dsp:
    """The multiplier of a DSP slice: operand widths in bits, both signed."""

    kind: Annotated[str, OneOf(("DSP48E1", "DSP48E2"))]
    a_bits: Annotated[int, Range(8, 64)]
    b_bits: Annotated[int, Range(8, 64)]


@dataclass(frozen=True)
class Ddr:
    """The memory of the processing system.

    rated_mts: mega-transfers a second that the memory parts and the data sheet allow.
    preset_mts: what the vendor's board preset, and with it the boot image, programs.
    """

    kind: Annotated[str, OneOf(("DDR3", "DDR4", "LPDDR4"))]
    bits: Annotated[int, Range(8, 128)]
    rated_mts: Annotated[int, Range(100, 10_000)]
    preset_mts: Annotated[int, Range(100, 10_000)]
    mib: Annotated[int, Range(64, 1_048_576)]

    @property
    def peak_gbps(self) -> float:
        """GB/s (10⁹ bytes) when every transfer at the rated speed carries data."""
        return self.bits / 8 * self.rated_mts / 1000

    @property
    def preset_gbps(self) -> float:
        """GB/s at the speed that the board preset programs; never above ``peak_gbps``."""
        return self.bits / 8 * self.preset_mts / 1000


@dataclass(frozen=True)
class Port:
    """A slave port of the PS through which the accelerator reaches DDR.

    name: interface of the Vivado IP; clock: its clock pin; enable and width: the IP's CONFIG keys;
    controller_port: port of the DDR controller behind it. Ports with the same number share its bandwidth.
    """

    name: str
    clock: str
    enable: str
    width: str
    bits: Annotated[int, Range(32, 1024)]
    coherent: bool
    controller_port: Annotated[int, Range(0, 15)]


@dataclass(frozen=True)
class Control:
    """The master through which the PS reaches the accelerator's registers."""

    name: str
    clock: str
    enable: str
    base: Annotated[int, Range(0, 1 << 40)]
    bytes: Annotated[int, Range(4096, 1 << 40)]


@dataclass(frozen=True)
class Ps:
    """Names on the processing system's Vivado IP (``ip`` is "zynq_ultra_ps_e" or "processing_system7")."""

    ip: Annotated[str, OneOf(("zynq_ultra_ps_e", "processing_system7"))]
    vlnv: str
    clock: str  # pin of the first PL clock
    clock_mhz_key: str  # CONFIG key that asks for its frequency
    clock_source_key: str  # CONFIG key that chooses its PLL
    reset: str  # its active-low reset pin
    interrupt: str
    interrupt_key: str


@dataclass(frozen=True)
class Pll:
    """A PLL that can feed a PL clock: reference · multiplier / post_divider."""

    name: str
    reference_mhz: Annotated[float, Range(1, 200)]
    multiplier: Annotated[int, Range(1, 200)]
    post_divider: Annotated[int, Range(1, 63)]

    @property
    def mhz(self) -> float:
        return self.reference_mhz * self.multiplier / self.post_divider


@dataclass(frozen=True)
class Fmax:
    """Switching limits of the speed grade in MHz: no design on this part may be clocked above them."""

    dsp: Annotated[float, Range(1, 2000)]
    bram: Annotated[float, Range(1, 2000)]
    uram: Annotated[float, Range(0, 2000)]  # 0 where the part has none
    global_clock: Annotated[float, Range(1, 2000)]
    axi: Annotated[float, Range(1, 2000)]  # of the interfaces between PS and PL

    @property
    def slowest(self) -> str:
        """What limits the clock of a design that uses all of these, by name."""
        limits = self._limits
        return min(limits, key=lambda name: limits[name])

    @property
    def lowest(self) -> float:
        """The limit of ``slowest`` in MHz."""
        return self._limits[self.slowest]

    @property
    def _limits(self) -> dict[str, float]:
        limits = {"AXI": self.axi, "URAM": self.uram, "BRAM": self.bram, "DSP": self.dsp}
        limits["clock tree"] = self.global_clock
        return {name: mhz for name, mhz in limits.items() if mhz > 0}


@dataclass(frozen=True)
class Clock:
    """A PL clock that the PS really produces: PLL / (divisor0 · divisor1)."""

    mhz: float
    pll: str
    divisor0: int
    divisor1: int
