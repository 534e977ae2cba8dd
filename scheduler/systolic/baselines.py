"""Baselines: schedules that others published, priced on the same array and memory, as rows to compare with. None of
them is generated: they say what a schedule is worth, not what runs.

``convor``       the seed design's loop nest: all weights of a layer on chip before it starts, rows reused
``scale-sim-os`` an output-stationary GEMM, as SCALE-Sim models it
``naive``        no reuse at all: every window and every weight crosses when it is used
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from contract.geometry import PIXEL_BYTES
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import DdrTiming
from scheduler.systolic.array import Array
from scheduler.systolic.shape import LayerShape, shape_of
from scheduler.systolic.workload import Workload, workload_of


@dataclass(frozen=True)
class BaselineLayer:
    """cycles and DDR bytes of one layer. on_chip: bytes of weights that have to be on chip at once."""

    name: str
    cycles: int
    bytes: int
    on_chip: int


@dataclass(frozen=True)
class Baseline:
    """One frame by one of the published schedules. source: where it is published."""

    name: str
    source: str
    layers: tuple[BaselineLayer, ...]

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
    """Bytes of a layer's weights and maps, each once. steps: cycles of one position on the array's lanes."""

    shape: LayerShape
    array: Array
    steps: int
    weights: int
    maps_in: int
    maps_out: int
    before_pool: int


def _sizes(shape: LayerShape, array: Array) -> _Sizes:
    word = array.word_bytes
    # The input picture is not unrolled over the kernel's columns: padded planes of its channels.
    steps = shape.steps if shape.pixels == 1 else shape.kernel_height * shape.kernel_width * shape.blocks
    tiles = ceil_div(shape.filters, array.columns)
    blocks = ceil_div(shape.filters, array.lanes)
    return _Sizes(
        shape,
        array,
        steps,
        weights=tiles * steps * array.columns * word,
        maps_in=shape.in_height * shape.in_width * (shape.blocks * (word if shape.pixels == 1 else PIXEL_BYTES)),
        maps_out=shape.saved_height * shape.saved_width * blocks * shape.value_words * word,
        before_pool=shape.out_height * shape.out_width * blocks * shape.value_words * word,
    )


def _transfer_cycles(moved_bytes: int, ddr: DdrTiming) -> int:
    return ceil_div(moved_bytes * 1000, ddr.milli_bytes)


def _convor(sizes: _Sizes, ddr: DdrTiming) -> BaselineLayer:
    shape, array = sizes.shape, sizes.array
    tiles = ceil_div(shape.out_height, array.rows) * ceil_div(shape.filters, array.columns)
    compute = tiles * ceil_div(shape.out_width, shape.positions) * sizes.steps
    pool = 2 * sizes.before_pool if shape.pool_size > 1 else 0  # written, and read again by a pass of its own
    maps = sizes.maps_in + sizes.before_pool
    cycles = _transfer_cycles(sizes.weights, ddr) + max(compute, _transfer_cycles(maps, ddr))
    cycles += _transfer_cycles(pool, ddr)
    return BaselineLayer(shape.name, cycles, sizes.weights + maps + pool, sizes.weights)


def _scale_sim(sizes: _Sizes, ddr: DdrTiming) -> BaselineLayer:
    """τ = (2·Sr + Sc + T − 2) · ⌈outputs / Sr⌉ · ⌈filters / Sc⌉ with T = kernel · channels.

    A. Samajdar et al., "A Systematic Methodology for Characterizing Scalability of DNN Accelerators using
    SCALE-Sim", ISPASS 2020, equations 3 and 4: output-stationary, no stalls by memory. Sr = rows · lanes (twice that
    where two positions share a DSP) and Sc = columns: the same number of MACs.
    """
    shape, array = sizes.shape, sizes.array
    height, width = array.rows * array.lanes * array.packing.positions, array.columns
    depth = shape.kernel_height * shape.kernel_width * (1 if shape.depthwise else shape.in_channels)
    folds = ceil_div(shape.out_height * shape.out_width, height) * ceil_div(shape.filters, width)
    moved_bytes = sizes.weights + sizes.maps_in + sizes.maps_out
    return BaselineLayer(shape.name, (2 * height + width + depth - 2) * folds, moved_bytes, sizes.weights)


def _naive(sizes: _Sizes, ddr: DdrTiming) -> BaselineLayer:
    shape, array = sizes.shape, sizes.array
    word = array.word_bytes
    tiles = ceil_div(shape.out_height, array.rows) * ceil_div(shape.filters, array.columns)
    steps = tiles * ceil_div(shape.out_width, shape.positions) * sizes.steps
    moved_bytes = steps * (array.rows + array.columns) * word + sizes.before_pool
    cycles = max(steps, _transfer_cycles(moved_bytes, ddr))
    return BaselineLayer(shape.name, cycles, moved_bytes, array.columns * word)


BASELINES: dict[str, tuple[str, Callable[[_Sizes, DdrTiming], BaselineLayer]]] = {
    "convor": ("Convor's loop nest", _convor),
    "scale-sim-os": ("Samajdar et al., ISPASS 2020, eq. 3-4", _scale_sim),
    "naive": ("no reuse", _naive),
}
"""name → where it is published, and what a layer costs by it."""


def baselines(workload: Workload, array: Array, ddr: DdrTiming) -> tuple[Baseline, ...]:
    """One frame of ``workload`` by every baseline, with the MACs of ``array`` and the memory ``ddr``."""
    frame = workload if workload.batch == 1 else workload_of(workload.network, fused=workload.fused)
    sizes = [_sizes(shape_of(frame.network, layer, array), array) for layer in frame.layers]
    return tuple(
        Baseline(name, source, tuple(layer_cost(layer, ddr) for layer in sizes))
        for name, (source, layer_cost) in BASELINES.items()
    )
