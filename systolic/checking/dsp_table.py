"""DSPs of a design: what its products are built of, beside what its generation estimated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hls_schedule.multipliers import BuiltMultiplier
from scheduler.hardware.primitives import product_dsps

ALL = "in all"


@dataclass(frozen=True)
class Product:
    """``count`` multipliers of signed factors at ``source`` (file:line), each of ``dsps`` DSPs. chained: whether their
    sums stay in their order."""

    source: str
    wide_bits: int
    narrow_bits: int
    count: int
    dsps: int
    chained: bool


@dataclass(frozen=True)
class DspRow:
    """estimated, derived: DSPs of a process, or of all of them. products: what they multiply; none ``in all``.
    cascaded: whether the estimate has no adders for their sums, because the DSPs pass them on."""

    process: str
    estimated: int
    derived: int
    products: tuple[Product, ...]
    cascaded: bool = False

    @property
    def holds(self) -> bool:
        """Whether no more are needed than estimated, and no adders besides."""
        return self.derived <= self.estimated and not self.balanced

    @property
    def balanced(self) -> tuple[str, ...]:
        """Sources of products whose sums a tool may make a tree of, though a cascade was estimated."""
        return tuple(product.source for product in self.products if self.cascaded and not product.chained)

    @property
    def note(self) -> str:
        """Why the two differ; "" where they do not."""
        if self.balanced:
            return f"sums at {', '.join(self.balanced)} may become trees: EXPRESSION_BALANCE off is missing"
        if not self.holds:
            return "more than estimated"
        return "less: narrower than estimated" if self.derived < self.estimated else ""

    @property
    def text(self) -> str:
        """The products in words."""
        return ", ".join(f"{p.count:,} × {p.wide_bits} × {p.narrow_bits} bits at {p.source}" for p in self.products)


def dsp_rows(
    multipliers: Sequence[BuiltMultiplier],
    estimates: Mapping[str, int],
    total: int,
    dsp: str,
    cascaded: frozenset[str] = frozenset(),
) -> tuple[DspRow, ...]:
    """A row a process that has DSPs, and one of all.

    estimates: DSPs by process; total: of the whole design, as it was generated. dsp: kind of the board's.
    cascaded: processes whose sums the DSPs pass on.
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
