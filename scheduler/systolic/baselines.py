"""Schedules that others published, priced on the same array and memory, as rows to compare with. None of them is
generated: they say what a schedule is worth, not what runs.

``convor``       the seed design's loop nest: all weights of a layer on chip before it starts, rows reused
``scale-sim-os`` an output-stationary GEMM, as SCALE-Sim models it
``naive``        no reuse at all: every window and every weight crosses when it is used
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cnn.quantized import QuantizedNetwork
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import DdrTiming
from scheduler.systolic.array import PIXEL_BYTES, Array
from scheduler.systolic.layers import lower
from scheduler.systolic.work import Work, work_of


@dataclass(frozen=True)
class NamedLayer:
    """on_chip: bytes of weights that have to be there at once."""

    name: str
    cycles: int
    bytes: int
    on_chip: int


@dataclass(frozen=True)
class NamedCost:
    name: str
    source: str
    layers: tuple[NamedLayer, ...]

    @property
    def cycles(self) -> int:
        return sum(layer.cycles for layer in self.layers)

    @property
    def bytes(self) -> int:
        return sum(layer.bytes for layer in self.layers)

    @property
    def on_chip(self) -> int:
        return max(layer.on_chip for layer in self.layers)


@dataclass(frozen=True)
class _Sizes:
    """Bytes of a layer: its maps and weights, each once; position: MAC steps of one output on the array's lanes."""

    work: Work
    array: Array
    steps: int
    weights: int
    maps_in: int
    maps_out: int
    before_pool: int


def _sizes(work: Work, array: Array) -> _Sizes:
    word = array.word_bytes
    # The input picture is not unrolled over the kernel's columns: one padded block of channels.
    steps = work.steps if work.pixels == 1 else work.kernel_height * work.kernel_width
    tiles = ceil_div(work.filters, array.columns)
    blocks = ceil_div(work.filters, array.lanes)
    return _Sizes(
        work,
        array,
        steps,
        weights=tiles * steps * array.columns * word,
        maps_in=work.in_height * work.in_width * (work.blocks * word if work.pixels == 1 else PIXEL_BYTES),
        maps_out=work.saved_height * work.saved_width * blocks * work.value_words * word,
        before_pool=work.out_height * work.out_width * blocks * work.value_words * word,
    )


def _cycles_of(moved: int, ddr: DdrTiming) -> int:
    return ceil_div(moved * 1000, ddr.milli_bytes)


def _convor(sizes: _Sizes, ddr: DdrTiming) -> NamedLayer:
    work, array = sizes.work, sizes.array
    tiles = ceil_div(work.out_height, array.rows) * ceil_div(work.filters, array.columns)
    compute = tiles * ceil_div(work.out_width, work.positions) * sizes.steps
    pool = 2 * sizes.before_pool if work.pool_size > 1 else 0  # written, and read again by a pass of its own
    moved = sizes.maps_in + sizes.before_pool + pool
    cycles = _cycles_of(sizes.weights, ddr) + max(compute, _cycles_of(sizes.maps_in + sizes.before_pool, ddr))
    cycles += _cycles_of(pool, ddr)
    return NamedLayer(work.name, cycles, sizes.weights + moved, sizes.weights)


def _scale_sim(sizes: _Sizes, ddr: DdrTiming) -> NamedLayer:
    """τ = (2·Sr + Sc + T − 2) · ⌈outputs / Sr⌉ · ⌈filters / Sc⌉ with T = kernel · channels.

    A. Samajdar et al., "A Systematic Methodology for Characterizing Scalability of DNN Accelerators using
    SCALE-Sim", ISPASS 2020, equations 3 and 4: output-stationary, no stalls by memory. Sr = rows · lanes (twice that
    where two positions share a DSP) and Sc = columns: the same number of MACs.
    """
    work, array = sizes.work, sizes.array
    down, across = array.rows * array.lanes * array.packing.positions, array.columns
    depth = work.kernel_height * work.kernel_width * (1 if work.diagonal else work.in_channels)
    folds = ceil_div(work.out_height * work.out_width, down) * ceil_div(work.filters, across)
    moved = sizes.weights + sizes.maps_in + sizes.maps_out
    return NamedLayer(work.name, (2 * down + across + depth - 2) * folds, moved, sizes.weights)


def _naive(sizes: _Sizes, ddr: DdrTiming) -> NamedLayer:
    work, array = sizes.work, sizes.array
    word = array.word_bytes
    tiles = ceil_div(work.out_height, array.rows) * ceil_div(work.filters, array.columns)
    steps = tiles * ceil_div(work.out_width, work.positions) * sizes.steps
    moved = steps * (array.rows + array.columns) * word + sizes.before_pool
    return NamedLayer(work.name, max(steps, _cycles_of(moved, ddr)), moved, array.columns * word)


NAMED: dict[str, tuple[str, Callable[[_Sizes, DdrTiming], NamedLayer]]] = {
    "convor": ("Convor's loop nest", _convor),
    "scale-sim-os": ("Samajdar et al., ISPASS 2020, eq. 3-4", _scale_sim),
    "naive": ("no reuse", _naive),
}


def named_costs(network: QuantizedNetwork, array: Array, ddr: DdrTiming) -> tuple[NamedCost, ...]:
    """Every named schedule for ``network`` with the MACs of ``array`` behind ``ddr``."""
    sizes = [_sizes(work_of(network, job, array), array) for job in lower(network)]
    return tuple(
        NamedCost(name, source, tuple(price(one, ddr) for one in sizes)) for name, (source, price) in NAMED.items()
    )
