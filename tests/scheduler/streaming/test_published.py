"""The estimated LUTs of units without DSPs and of FIFOs, compared with Vivado's counts for FINN's units.

Source of the units: Alam et al., On the RTL Implementation of FINN Matrix Vector Compute Unit, arXiv:2201.11409. The
figures are in Doc/results.ipynb of github.com/asadalam/FINN_MatrixVector_RTL, for an xczu3eg, out of context, with
16-bit outputs. The notebook does not name the sizes. The counts imply 8, 16, 32 and 64 rows and columns.

Source of the FIFOs: finn/util/resource_models.py of the wheel finn-plus 1.6.1, which Xilinx/finn fitted to 134 FIFOs.
Vivado 2026.1 synthesised them for an xczu7ev, and the summed error is 4.3 % (pull request 1658).
"""

from __future__ import annotations

from math import ceil, log2
from statistics import median

import pytest

from boards.board import load
from cnn.datatype import DataType
from scheduler.streaming import graph as g
from scheduler.streaming.area.memory import fifo
from scheduler.streaming.area.part import CONTROL
from scheduler.streaming.area.parts import parts
from scheduler.streaming.lower import lower
from tests.support.low_bit import Layers

ULTRA96 = load("ultra96-v2")  # its device is an xczu3eg
SIZES = (8, 16, 32, 64)
VIVADO = {
    ("INT4", "UINT4"): (1_851, 7_439, 29_198, 113_166),
    ("BIPOLAR", "UINT4"): (839, 2_438, 10_698, 43_876),
    ("BIPOLAR", "BIPOLAR"): (265, 761, 2_569, 11_762),
}


def estimated(kind: tuple[str, str], size: int) -> int:
    """Return the LUTs of products, adders and control of a unit with ``size`` rows and columns per cycle."""
    graph = lower(Layers(8, 2, 2, *kind).conv(size, 1).conv(size, 1).network())
    index = next(index for index, block in enumerate(graph.blocks) if block.name == "conv2")
    found = parts(graph, index, g.Fold(pe=size, simd=size, multiplier="lut"), ULTRA96)
    return CONTROL + sum(part.usage.lut for part in found if part.name in ("multipliers", "adders"))


def fitted(weight_bits: int, value_bits: int, size: int) -> float:
    """Return the LUTs of the same unit by the fit of FINN-R (Blott et al., ACM TRETS 11(3), 2018).

    The fit sums the products, the adder tree and the accumulator, and adds a constant of 300.
    """
    bits = weight_bits + value_bits
    products = size * (2 * ceil(bits / 6) - 1) * bits
    return 300 + 1.1 * size * (products + bits * (2 * size - 1) + bits + log2(size))


@pytest.mark.parametrize("kind", VIVADO, ids="-".join)
def test_estimated_luts_are_near_the_counts_of_vivado(kind: tuple[str, str]) -> None:
    for size, reported in zip(SIZES, VIVADO[kind], strict=True):
        assert 0.85 < estimated(kind, size) / reported < 1.25


@pytest.mark.parametrize("kind", VIVADO, ids="-".join)
def test_estimated_luts_are_nearer_than_the_fit_of_finn_r(kind: tuple[str, str]) -> None:
    weight_bits, value_bits = (DataType.parse(name).bits for name in kind)
    for size, reported in zip(SIZES, VIVADO[kind], strict=True):
        off = abs(estimated(kind, size) / reported - 1)
        assert off < 0.6 * abs(fitted(weight_bits, value_bits, size) / reported - 1)


FIFOS = {
    **{(4, 8): (22, 0), (8, 16): (31, 0), (16, 64): (65, 0), (32, 32): (60, 0), (128, 8): (146, 0), (256, 2): (264, 0)},
    **{(8, 4096): (60, 2), (32, 512): (57, 1), (32, 4096): (81, 8), (64, 2048): (69, 8), (256, 512): (60, 8)},
}
"""Maps bits and words of a FIFO to the LUTs and BRAM18s of FINN's fit: shift registers first, then BRAM."""


def test_estimated_fifos_are_near_the_fit_of_finn() -> None:
    errors = []
    for (bits, depth), (luts, blocks) in FIFOS.items():
        usage = fifo(bits, depth)
        assert usage.bram18 == blocks
        errors.append(abs(usage.lut / luts - 1))
    assert max(errors) < 0.15
    assert median(errors) < 0.05


def test_estimated_units_are_within_15_percent_in_the_median() -> None:
    units = [(kind, size, luts) for kind, row in VIVADO.items() for size, luts in zip(SIZES, row, strict=True)]
    assert median(abs(estimated(kind, size) / luts - 1) for kind, size, luts in units) < 0.15
