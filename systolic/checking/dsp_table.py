"""The DSPs of a design: the number derived from the multiplications in its C++, next to the generator's estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hls_schedule.multipliers import BuiltMultiplier
from scheduler.hardware.primitives import product_dsps

ALL = "in all"


@dataclass(frozen=True)
class Product:
    """A group of equal multipliers of signed factors at one source line, with their widths, their count and their DSPs.

    Attributes:
        source: The position in the generated code, file:line.
        wide_bits: The width of the wider factor.
        narrow_bits: The width of the narrower factor.
        count: The number of multipliers.
        dsps: The number of DSPs per multiplier.
        chained: Whether the tool must add the products in the order of the code.
    """

    source: str
    wide_bits: int
    narrow_bits: int
    count: int
    dsps: int
    chained: bool


@dataclass(frozen=True)
class DspRow:
    """A row of the DSP table: the estimated and the derived DSPs of one process, or of the whole design.

    Attributes:
        process: The name of the process, or ``ALL``.
        estimated: The number of DSPs in the estimate.
        derived: The number of DSPs derived from the sources.
        products: The multiplications of the process. Empty for ``ALL``.
        cascaded: Whether the estimate assumes DSP cascades, which add the products without adders in the fabric.
    """

    process: str
    estimated: int
    derived: int
    products: tuple[Product, ...]
    cascaded: bool = False

    @property
    def holds(self) -> bool:
        """Return whether the estimate covers the derived DSPs, and no products need adders that it does not count."""
        return self.derived <= self.estimated and not self.balanced

    @property
    def balanced(self) -> tuple[str, ...]:
        """The source lines of products that a tool may add in a tree, although the estimate assumes a cascade."""
        return tuple(product.source for product in self.products if self.cascaded and not product.chained)

    @property
    def note(self) -> str:
        """The reason why the derived DSPs are more or fewer than estimated, or "" if they are equal."""
        if self.balanced:
            return f"sums at {', '.join(self.balanced)} may become trees: EXPRESSION_BALANCE off is missing"
        if not self.holds:
            return "more than estimated"
        return "fewer: narrower than estimated" if self.derived < self.estimated else ""

    @property
    def text(self) -> str:
        """The multipliers of the process in words: count, widths in bits and source line of each group."""
        return ", ".join(f"{p.count:,} × {p.wide_bits} × {p.narrow_bits} bits at {p.source}" for p in self.products)


def dsp_rows(
    multipliers: Sequence[BuiltMultiplier],
    estimates: Mapping[str, int],
    total: int,
    dsp: str,
    cascaded: frozenset[str] = frozenset(),
) -> tuple[DspRow, ...]:
    """Return the rows of the DSP table: one per process with DSPs, and a last one for the whole design.

    Args:
        multipliers: The multipliers derived from the sources.
        estimates: The estimated number of DSPs by process.
        total: The estimated number of DSPs of the whole design.
        dsp: The kind of the board's DSPs.
        cascaded: The processes whose DSPs are estimated as cascades.
    """
    products: dict[str, list[Product]] = {process: [] for process in estimates}
    for built in multipliers:
        if built.primitive != "fabric":
            each = product_dsps(built.wide_bits, built.narrow_bits, dsp)
            product = Product(built.source, built.wide_bits, built.narrow_bits, built.count, each, built.chained)
            products.setdefault(built.process, []).append(product)
    rows = [
        DspRow(process, estimates.get(process, 0), _dsps(multiplied), tuple(multiplied), process in cascaded)
        for process, multiplied in products.items()
    ]
    return (*rows, DspRow(ALL, total, sum(row.derived for row in rows), ()))


def _dsps(products: Sequence[Product]) -> int:
    return sum(product.count * product.dsps for product in products)
