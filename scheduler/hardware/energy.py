"""Estimated energy per frame by kind of hardware, with bounds from published sources, to compare mappings.

No published measurement gives the energy of single UltraScale+ primitives. Therefore each coefficient is a range. The
lower bound is the energy of an ASIC in the board's process node, or of the memory chips without the rest of the path.
The upper bound is the energy of LUT logic in 45 nm, or a vendor's power report of a whole chip. Reports give the
geometric mean of both bounds, and the bounds.

Only dynamic energy is counted. Clock trees, flip-flops, static power and the processor have no coefficient.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from scheduler.hardware.primitives import ULTRASCALE

HOROWITZ = "Horowitz, Computing's Energy Problem, ISSCC 2014, figure 1.1.9: 45 nm, 0.9 V"
KUON = "Kuon and Rose, Measuring the Gap Between FPGAs and ASICs, IEEE TCAD 26(2), 2007, abstract"
SUPPLY = "capacitance by feature size (assumed), voltage squared: VCCINT of DS925 (UltraScale+), XAPP555 (7 series)"
REPORT = "Vivado 2019.2 report of an Alveo U50 in github.com/cyansemi/csre-demo-v1, README: 180 MHz"
MICRON = "Micron, 4GB (x64, SR) 288-Pin DDR4 UDIMM, rev. B 8/16, table 13 at 2400: four chips of 16 bits"

FPGA_RATIO = 14.0
"""Ratio of the dynamic power of LUT logic to an ASIC of the same node (Kuon and Rose 2007). The ratio of hard blocks is
smaller."""

SCALES: Mapping[str, float] = {
    "UltraScale+": (16 / 45) * (0.85 / 0.9) ** 2,
    "7 series": (28 / 45) * (1.0 / 0.9) ** 2,
}
"""The least ratio of a node's energy to the energy at 45 nm and 0.9 V. It is C · V², where C is assumed to be
proportional to the feature size."""

ASSUMPTIONS = (
    "capacitance goes with the feature size",
    "a product takes what its bits are of 32 × 32",
    "all wires of the reported chip are its LUTs'",
    "LPDDR4 and DDR3 take what DDR4 does",
)
"""Assumptions of the bounds that no source states."""


@dataclass(frozen=True)
class Coefficient:
    """The lower and upper bound of the energy of one hardware operation, such as a DSP multiplication or a DDR bit.

    Attributes:
        per: The operation that is counted, for reports.
        least: Lower bound in picojoules.
        most: Upper bound in picojoules.
        scaled: Whether (the lower, the upper) bound is for 45 nm, and is multiplied by the ratio of the board's node.
        source: Where the bounds come from.
        year: The year of the newest source.
    """

    per: str
    least: float
    most: float
    scaled: tuple[bool, bool]
    source: str
    year: int

    def bounds(self, family: str) -> tuple[float, float]:
        """Return the lower and the upper bound of the operation's energy, in picojoules, on a board of FPGA
        ``family``."""
        scale = SCALES["UltraScale+" if family == ULTRASCALE else "7 series"]
        low, high = (scale if scaled else 1.0 for scaled in self.scaled)
        return self.least * low, self.most * high


MULTIPLY = 3.1 * (27 * 18) / (32 * 32) + 0.1 * 48 / 32
"""Picojoules of a multiplication of 27 × 18 bits and an addition of 48 bits, at 45 nm."""
REPORTED_LUT = (1.235 + 3.132) / 475_034 / 180e6 * 1e12
"""Picojoules per LUT and cycle: the watts of logic and of all signals of the chip, divided by its LUTs and by the clock
of most of them."""
CHIPS = (0.912 - 0.188) * 1.2 / (64 * 2400e6) * 1e12
"""Picojoules per bit in DDR4 chips with open rows: the power of writing minus the power of standby. Pins and PHY are
not included."""

COEFFICIENTS: Mapping[str, Coefficient] = {
    "dsp": Coefficient(
        "multiplication of a DSP",
        MULTIPLY,
        MULTIPLY * FPGA_RATIO,
        (True, False),
        f"{HOROWITZ}: 32-bit product 3.1 pJ as 27 × 18 bits, 32-bit sum 0.1 pJ as 48 bits; {KUON}; {SUPPLY}",
        2014,
    ),
    "bram": Coefficient(
        "bit read or written in BRAM",
        10 / 64,
        10 / 64 * FPGA_RATIO,
        (True, False),
        f"{HOROWITZ}: 64 bits of an 8 KB memory 10 pJ; {KUON}; {SUPPLY}",
        2014,
    ),
    "uram": Coefficient(
        "bit read or written in URAM",
        20 / 64,
        20 / 64 * FPGA_RATIO,
        (True, False),
        f"{HOROWITZ}: 64 bits of a 32 KB memory 20 pJ; {KUON}; {SUPPLY}",
        2014,
    ),
    "lut": Coefficient(
        "LUT and cycle in which it works",
        0.1 / 32 * FPGA_RATIO,
        REPORTED_LUT / SCALES["UltraScale+"],
        (True, True),
        f"{HOROWITZ}: 32-bit addition 0.1 pJ, a LUT a bit; {KUON}; at most {REPORT}, 1.235 W of logic and 3.132 W of "
        f"signals for 475,034 LUTs; {SUPPLY}",
        2020,
    ),
    "ddr": Coefficient(
        "bit that crosses the DDR",
        CHIPS,
        2600 / 64,
        (False, False),
        f"{MICRON}, IDD4W 912 mA less IDD3N 188 mA at 1.2 V, as TN-40-07 counts; {HOROWITZ}: 64 bits of DRAM 2.6 nJ",
        2016,
    ),
}
"""The coefficient of each kind of hardware. LUTs that are memory count as LUTs."""

SOURCE = (
    "estimate: dynamic energy alone, counted from the mapping, with bounds from ISSCC 2014, TCAD 2007, a Vivado report "
    "and a DDR4 data sheet; assumed: " + ", ".join(ASSUMPTIONS)
)


@dataclass(frozen=True)
class Activity:
    """The counts of energy-consuming operations of a layer, a block or a frame, per kind of hardware.

    Attributes:
        dsp: Multiplications in DSPs.
        bram: Bits read from and written to BRAM.
        uram: Bits read from and written to URAM.
        lut: LUTs times the cycles in which they work.
        ddr: Bits read from and written to DDR.
    """

    dsp: float = 0
    bram: float = 0
    uram: float = 0
    lut: float = 0
    ddr: float = 0

    def __add__(self, part: Activity) -> Activity:
        return Activity(*(getattr(self, field.name) + getattr(part, field.name) for field in fields(self)))

    def times(self, factor: float) -> Activity:
        """Return these operation counts multiplied by ``factor``, which may be below 1."""
        return Activity(*(getattr(self, field.name) * factor for field in fields(self)))


@dataclass(frozen=True)
class Energy:
    """Estimated dynamic energy per frame in microjoules, per kind of hardware and in total.

    Attributes:
        kinds: The geometric mean of both bounds, per kind of hardware.
        least: The sum of the lower bounds of all kinds.
        most: The sum of the upper bounds of all kinds.
    """

    kinds: Mapping[str, float]
    least: float
    most: float

    @property
    def total(self) -> float:
        """The sum over all kinds of hardware, in microjoules."""
        return sum(self.kinds.values())

    def values(self) -> dict[str, Any]:
        """Return the estimate as an object for JSON: "microjoules" per kind of hardware, "total", and the bounds
        "least" and "most"."""
        return {
            "microjoules": {kind: round(value, 3) for kind, value in self.kinds.items()},
            "total": round(self.total, 3),
            "least": round(self.least, 3),
            "most": round(self.most, 3),
        }

    def __str__(self) -> str:
        unit, size = ("mJ", 1e3) if self.total >= 1e3 else ("µJ", 1)
        parts = ", ".join(f"{kind.upper()} {value / size:,.2f}" for kind, value in self.kinds.items())
        return (
            f"energy: {self.total / size:,.2f} {unit} per frame ({parts}), estimated between {self.least / size:,.2f} "
            f"and {self.most / size:,.2f}; dynamic energy only"
        )


def energy(activity: Activity, family: str) -> Energy:
    """Return the estimated energy of the operations in ``activity`` on a board of FPGA ``family``."""
    bounds = {kind: coefficient.bounds(family) for kind, coefficient in COEFFICIENTS.items()}
    counts = {kind: getattr(activity, kind) / 1e6 for kind in COEFFICIENTS}  # picojoules to microjoules
    means = {kind: counts[kind] * math.sqrt(bounds[kind][0] * bounds[kind][1]) for kind in COEFFICIENTS}
    least, most = (sum(counts[kind] * bounds[kind][end] for kind in COEFFICIENTS) for end in (0, 1))
    return Energy(means, least, most)
