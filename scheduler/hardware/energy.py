"""Energy of what a frame does, by kind of hardware: an estimate within sourced bounds, for comparing mappings.

No published measurement gives UltraScale+ primitives one by one. So each coefficient is a range: below it, what an ASIC
of the board's node needs at least; above it, what 45 nm in LUTs needs. What is told is the geometric mean, with the
bounds. Dynamic energy alone: clock trees, flip-flops, static power and the processor have no coefficient and are left
out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from scheduler.hardware.primitives import ULTRASCALE

HOROWITZ = "Horowitz, Computing's Energy Problem, ISSCC 2014, figure 1.1.9: 45 nm, 0.9 V"
KUON = "Kuon and Rose, Measuring the Gap Between FPGAs and ASICs, IEEE TCAD 26(2), 2007"
SUPPLY = "capacitance by feature size, voltage squared: VCCINT of DS925 (UltraScale+), DS187 (7 series)"

FPGA_RATIO = 14.0
"""Dynamic power of LUT logic against an ASIC of the same node (Kuon and Rose 2007); of hard blocks it is smaller."""

SCALES: Mapping[str, float] = {
    "UltraScale+": (16 / 45) * (0.85 / 0.9) ** 2,
    "7 series": (28 / 45) * (1.0 / 0.9) ** 2,
}
"""Energy of a node against 45 nm and 0.9 V, at best: C · V² with C in proportion to the feature size."""


@dataclass(frozen=True)
class Coefficient:
    """Picojoules for one ``per``: of an ASIC in 45 nm, or of a memory chip. ratio: of an FPGA to it, least and most.
    scaled: whether a newer node needs less."""

    per: str
    least: float
    most: float
    ratio: tuple[float, float]
    scaled: bool
    source: str
    year: int

    def bounds(self, family: str) -> tuple[float, float]:
        """Picojoules at least and at most, on a board of ``family``."""
        scale = SCALES["UltraScale+" if family == ULTRASCALE else "7 series"] if self.scaled else 1.0
        return self.least * scale * self.ratio[0], self.most * self.ratio[1]


MULTIPLY = 3.1 * (27 * 18) / (32 * 32) + 0.1 * 48 / 32

COEFFICIENTS: Mapping[str, Coefficient] = {
    "dsp": Coefficient(
        "multiplication of a DSP",
        MULTIPLY,
        MULTIPLY,
        (1.0, FPGA_RATIO),
        True,
        f"{HOROWITZ}: 32-bit product 3.1 pJ as 27 × 18 bits, 32-bit sum 0.1 pJ as 48 bits; {KUON}; {SUPPLY}",
        2014,
    ),
    "bram": Coefficient(
        "bit read or written in BRAM",
        10 / 64,
        10 / 64,
        (1.0, FPGA_RATIO),
        True,
        f"{HOROWITZ}: 64 bits of an 8 KB memory 10 pJ; {KUON}; {SUPPLY}",
        2014,
    ),
    "uram": Coefficient(
        "bit read or written in URAM",
        20 / 64,
        20 / 64,
        (1.0, FPGA_RATIO),
        True,
        f"{HOROWITZ}: 64 bits of a 32 KB memory 20 pJ; {KUON}; {SUPPLY}",
        2014,
    ),
    "lut": Coefficient(
        "LUT and cycle in which it works",
        0.1 / 32,
        0.1 / 32,
        (FPGA_RATIO, FPGA_RATIO),
        True,
        f"{HOROWITZ}: 32-bit addition 0.1 pJ, a LUT a bit; {KUON}; {SUPPLY}",
        2014,
    ),
    "ddr": Coefficient(
        "bit that crosses the DDR",
        1300 / 64,
        2600 / 64,
        (1.0, 1.0),
        False,
        f"{HOROWITZ}: 64 bits of DRAM 1.3 to 2.6 nJ",
        2014,
    ),
}
"""By kind of hardware. A LUT that is memory is counted as the LUT that it is."""

SOURCE = "estimate: dynamic energy alone, counted from the mapping, with bounds from ISSCC 2014 and TCAD 2007"


@dataclass(frozen=True)
class Activity:
    """What a layer, a block or a frame does: multiplications of DSPs, bits read and written in BRAM and in URAM, LUTs
    times cycles in which they work, bits that cross the DDR."""

    dsp: float = 0
    bram: float = 0
    uram: float = 0
    lut: float = 0
    ddr: float = 0

    def __add__(self, part: Activity) -> Activity:
        return Activity(*(getattr(self, field.name) + getattr(part, field.name) for field in fields(self)))

    def times(self, factor: float) -> Activity:
        """Of so many, or of a part."""
        return Activity(*(getattr(self, field.name) * factor for field in fields(self)))


@dataclass(frozen=True)
class Energy:
    """Microjoules by kind: the geometric means of the bounds; least and most of all kinds together."""

    kinds: Mapping[str, float]
    least: float
    most: float

    @property
    def total(self) -> float:
        """Microjoules of all kinds."""
        return sum(self.kinds.values())

    def values(self) -> dict[str, Any]:
        """{microjoules: {kind}, total, least, most}."""
        return {
            "microjoules": {kind: round(value, 3) for kind, value in self.kinds.items()},
            "total": round(self.total, 3),
            "least": round(self.least, 3),
            "most": round(self.most, 3),
        }

    def __str__(self) -> str:
        parts = ", ".join(f"{kind.upper()} {value / 1e3:,.2f}" for kind, value in self.kinds.items())
        return (
            f"energy: {self.total / 1e3:,.2f} mJ a frame ({parts}), an estimate between {self.least / 1e3:,.2f} and "
            f"{self.most / 1e3:,.2f}; dynamic alone"
        )


def energy(activity: Activity, family: str) -> Energy:
    """Of what is done on a board of ``family``, by the coefficients."""
    bounds = {kind: coefficient.bounds(family) for kind, coefficient in COEFFICIENTS.items()}
    counts = {kind: getattr(activity, kind) / 1e6 for kind in COEFFICIENTS}  # picojoules to microjoules
    means = {kind: counts[kind] * math.sqrt(bounds[kind][0] * bounds[kind][1]) for kind in COEFFICIENTS}
    least, most = (sum(counts[kind] * bounds[kind][end] for kind in COEFFICIENTS) for end in (0, 1))
    return Energy(means, least, most)
