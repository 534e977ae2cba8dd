"""Baselines: other schedules, modelled on the same number of MACs and the same memory, to compare a schedule with.

They cannot be generated. Their cycles leave out costs that the engine's cycles include, such as hand-shakes.

``convor``        Convor's loop nest: all weights of a layer are read before it starts, and its input rows are reused
``scale-sim-os``  an output-stationary GEMM, as published with SCALE-Sim
``naive``         a reference point without any reuse: every input and every weight is read from DDR when it is used
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
    """The modelled cost of one layer under a baseline: a simpler published schedule to compare with.

    Attributes:
        name: The layer's name.
        cycles: Clock cycles of the layer.
        bytes: Bytes that DDR moves for the layer.
        on_chip: Bytes of weights that must be on chip at the same time.
    """

    name: str
    cycles: int
    bytes: int
    on_chip: int


@dataclass(frozen=True)
class Baseline:
    """The modelled cost of one frame under a baseline: a simpler published schedule to compare with.

    Attributes:
        name: The baseline's key in BASELINES.
        source: The baseline's origin, as reports show it.
        layers: The cost of each layer.
    """

    name: str
    source: str
    layers: tuple[BaselineLayer, ...]

    @property
    def cycles(self) -> int:
        """Clock cycles of one frame under the baseline."""
        return sum(layer.cycles for layer in self.layers)

    @property
    def bytes(self) -> int:
        """DDR bytes of one frame under the baseline."""
        return sum(layer.bytes for layer in self.layers)

    @property
    def on_chip(self) -> int:
        """The most bytes of weights of any layer that must be on chip at the same time under the baseline."""
        return max(layer.on_chip for layer in self.layers)


@dataclass(frozen=True)
class _Sizes:
    """The sizes of a layer in bytes and cycles from which the baselines compute their cost. Each byte counts once.

    Attributes:
        shape: The sizes of the layer on the array.
        array: The array whose MACs the baselines use.
        steps: Cycles of one output pixel, which all lanes compute together.
        weights: Bytes of the weights.
        maps_in: Bytes of the map that the layer reads.
        maps_out: Bytes of the map that the layer writes.
        before_pool: Bytes of the convolution's output, before a fused pool.
    """

    shape: LayerShape
    array: Array
    steps: int
    weights: int
    maps_in: int
    maps_out: int
    before_pool: int


def _sizes(shape: LayerShape, array: Array) -> _Sizes:
    word = array.word_bytes
    # The engine unrolls kernel columns over the lanes for the input picture. The baselines pad its channels instead.
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
    """Return the cycles in which the DDR moves ``moved_bytes``."""
    return ceil_div(moved_bytes * 1000, ddr.milli_bytes)


def _convor(sizes: _Sizes, ddr: DdrTiming) -> BaselineLayer:
    """Return a layer's cost under Convor's loop nest: all weights are read first, maps move during computation, a pool
    runs last."""
    shape, array = sizes.shape, sizes.array
    tiles = ceil_div(shape.out_height, array.rows) * ceil_div(shape.filters, array.columns)
    compute = tiles * ceil_div(shape.out_width, shape.positions) * sizes.steps
    pool = 2 * sizes.before_pool if shape.pool_size > 1 else 0  # a separate pass reads the map again
    maps = sizes.maps_in + sizes.before_pool
    cycles = _transfer_cycles(sizes.weights, ddr) + max(compute, _transfer_cycles(maps, ddr))
    cycles += _transfer_cycles(pool, ddr)
    return BaselineLayer(shape.name, cycles, sizes.weights + maps + pool, sizes.weights)


def _scale_sim(sizes: _Sizes, ddr: DdrTiming) -> BaselineLayer:
    """Return a layer's cost as an output-stationary GEMM by SCALE-Sim's formula, without memory stalls.

    τ = (2·Sr + Sc + T − 2) · ⌈outputs / Sr⌉ · ⌈filters / Sc⌉ with T = kernel · channels.

    Source: A. Samajdar et al., "A Systematic Methodology for Characterizing Scalability of DNN Accelerators using
    SCALE-Sim", ISPASS 2020, equations 3 and 4. The number of MACs equals the array's: Sc = columns, and Sr = rows ·
    lanes, times 2 if two positions share a DSP.
    """
    shape, array = sizes.shape, sizes.array
    height, width = array.rows * array.lanes * array.packing.positions, array.columns
    depth = shape.kernel_height * shape.kernel_width * (1 if shape.depthwise else shape.in_channels)
    folds = ceil_div(shape.out_height * shape.out_width, height) * ceil_div(shape.filters, width)
    moved_bytes = sizes.weights + sizes.maps_in + sizes.maps_out
    return BaselineLayer(shape.name, (2 * height + width + depth - 2) * folds, moved_bytes, sizes.weights)


def _naive(sizes: _Sizes, ddr: DdrTiming) -> BaselineLayer:
    """Return a layer's cost without any reuse: each cycle of the array reads its inputs and weights from DDR."""
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
"""The baselines by name: the origin as reports show it, and the function that returns the cost of a layer."""


def baselines(workload: Workload, array: Array, ddr: DdrTiming) -> tuple[Baseline, ...]:
    """Return the cost of one frame of ``workload`` under every baseline, with the MACs of ``array`` and the same
    DDR."""
    frame = workload if workload.batch == 1 else workload_of(workload.network, fused=workload.fused)
    sizes = [_sizes(shape_of(frame.network, layer, array), array) for layer in frame.layers]
    return tuple(
        Baseline(name, source, tuple(layer_cost(layer, ddr) for layer in sizes))
        for name, (source, layer_cost) in BASELINES.items()
    )
