"""The facts of a board file, one frozen dataclass per table; ``boards.board.Board`` holds them all.

Every number is from a data sheet or from the vendor's board files; the board file names the source of each table.
Results of a vendor tool, such as the clock at which a design closes timing, are not facts of a board. The types of the
fields are the schema of a file: a range catches a misspelt number and says nothing about boards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from boards.errors import ChoiceError
from boards.ranges import OneOf, Range

REGION_DSPS = 24
"""DSPs of a column in a clock region of UltraScale and UltraScale+ (UG912, CLOCK_REGION)."""


@dataclass(frozen=True)
class Resources:
    """The resources of the programmable logic. A BRAM36 has 36 Kib, a URAM 288 Kib (72 × 4096)."""

    lut: Annotated[int, Range(1, 10_000_000)]
    lutram: Annotated[int, Range(0, 10_000_000)]  # LUTs that can be memory; they count in lut too
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


DDR_PROFILES = ("measured", "optimistic")
"""The names of the shares of the DDR's peak that a board states. The first one is the default."""


@dataclass(frozen=True)
class DspColumns:
    """Neighbouring columns of DSPs that extend over the same clock regions.

    Attributes:
        first_column: The X of the sites of the first column.
        columns: The number of columns.
        first_region: The lowest row of clock regions.
        regions: The number of rows of clock regions.
    """

    first_column: Annotated[int, Range(0, 1000)]
    columns: Annotated[int, Range(1, 1000)]
    first_region: Annotated[int, Range(0, 100)]
    regions: Annotated[int, Range(1, 100)]


@dataclass(frozen=True)
class Floorplan:
    """The places of the DSPs on the die.

    Attributes:
        cascade: The DSPs among which a cascade reaches the data sheet's clock: a region's 24, or 12 if it may not
            cross the region's centre.
        columns: The columns of DSPs.
    """

    cascade: int
    columns: tuple[DspColumns, ...]

    @property
    def region(self) -> int:
        """DSPs of a column in a clock region."""
        return REGION_DSPS

    @property
    def region_columns(self) -> tuple[tuple[int, int], ...]:
        """The column (X) and the row of clock regions of each run of ``region`` DSPs."""
        return tuple(
            (area.first_column + column, area.first_region + region)
            for area in self.columns
            for region in range(area.regions)
            for column in range(area.columns)
        )


@dataclass(frozen=True)
class Ddr:
    """The DDR memory of the processing system: bus width, transfer rates and size.

    A share of the peak carries data. Refresh, row misses and turns between reading and writing take the rest. The PS
    splits bursts into 16 beats. ``measured_share`` includes what this costs, because it was measured through PS ports.

    Attributes:
        bits: Width of the data bus.
        rated_mts: Megatransfers per second that the memory chips and the part's data sheet allow.
        preset_mts: Megatransfers per second that the vendor's board preset, and so the boot image, programs.
        mib: Size in MiB.
        measured_share: Share of the peak that reads and writes from the PL reached in a public measurement.
        optimistic_share: Share of the peak that long sequential bursts may reach; at least ``measured_share``.
    """

    kind: Annotated[str, OneOf(("DDR3", "DDR4", "LPDDR4"))]
    bits: Annotated[int, Range(8, 128)]
    rated_mts: Annotated[int, Range(100, 10_000)]
    preset_mts: Annotated[int, Range(100, 10_000)]
    mib: Annotated[int, Range(64, 1_048_576)]
    # the defaults are for board files from before these keys: the ZCU102's shares
    measured_share: Annotated[float, Range(0.01, 1)] = 0.75
    optimistic_share: Annotated[float, Range(0.01, 1)] = 0.85

    def share(self, profile: str = DDR_PROFILES[0]) -> float:
        """Return the share of the peak that carries data in one of DDR_PROFILES; ChoiceError for another name."""
        if profile not in DDR_PROFILES:
            raise ChoiceError("--ddr-profile", profile, DDR_PROFILES)
        return self.measured_share if profile == "measured" else self.optimistic_share

    @property
    def peak_gbps(self) -> float:
        """Bandwidth in GB/s (10⁹ bytes) if every transfer at the rated speed carries data."""
        return self.bits / 8 * self.rated_mts / 1000

    @property
    def preset_gbps(self) -> float:
        """Bandwidth in GB/s at the speed that the board preset programs; at most ``peak_gbps``."""
        return self.bits / 8 * self.preset_mts / 1000


@dataclass(frozen=True)
class Port:
    """A slave port of the PS through which the accelerator reaches DDR.

    Attributes:
        name: Interface of the Vivado IP.
        clock: Clock pin of that interface.
        enable: CONFIG key of the IP that enables the port.
        width: CONFIG key of the IP that sets the port's width.
        bits: Width of the port.
        coherent: Whether accesses are coherent with the processors' caches.
        controller_port: Port of the DDR controller that serves it. Ports with the same number share its bandwidth.
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
    """Names of pins and CONFIG keys of the processing system's Vivado IP."""

    ip: Annotated[str, OneOf(("zynq_ultra_ps_e", "processing_system7"))]
    vlnv: str
    clock: str  # pin of the first PL clock
    clock_mhz_key: str  # CONFIG key of that clock's frequency
    clock_source_key: str  # CONFIG key of that clock's PLL
    reset: str  # active-low reset pin of that clock
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
    uram: Annotated[float, Range(0, 2000)]  # 0 if the part has no URAM
    global_clock: Annotated[float, Range(1, 2000)]
    axi: Annotated[float, Range(1, 2000)]  # AXI interfaces between PS and PL

    @property
    def slowest(self) -> str:
        """The kind of block with the lowest limit, such as "BRAM": it limits the clock of a design that uses
        all kinds."""
        limits = self._limits
        return min(limits, key=lambda name: limits[name])

    @property
    def lowest(self) -> float:
        """The clock limit of the ``slowest`` kind of block, in MHz."""
        return self._limits[self.slowest]

    @property
    def _limits(self) -> dict[str, float]:
        limits = {"AXI": self.axi, "URAM": self.uram, "BRAM": self.bram, "DSP": self.dsp}
        limits["clock tree"] = self.global_clock
        return {name: mhz for name, mhz in limits.items() if mhz > 0}


@dataclass(frozen=True)
class Target:
    """The clock that public designs of the kind reach on the board. A user may name a higher one."""

    clock_mhz: Annotated[float, Range(1, 2000)]


@dataclass(frozen=True)
class Clock:
    """A PL clock that the PS can produce: PLL / (divisor0 · divisor1)."""

    mhz: float
    pll: str
    divisor0: int
    divisor1: int
