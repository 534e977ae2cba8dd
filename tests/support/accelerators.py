"""Small integer networks, and accelerators of several geometries to run them on."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from math import log2, prod, sqrt
from pathlib import Path

import numpy as np
import numpy.typing as npt

from boards.board import load
from cnn.datatype import INT8, UINT8, DataType, TensorType
from cnn.maps import Padding, Shape
from cnn.ops import Concat, MaxPool, QAveragePool, QConvolution, QDense, QInput, QOp
from cnn.quantized import QNode, QuantizedNetwork
from cnn.requantise import Requantiser
from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.array import Array
from systolic.execution.build import Variant, build
from systolic.files import DesignFiles, write
from systolic.model import DesignInputs
from systolic.styles.systolic.generation.generate import generate
from systolic.styles.systolic.mapping import price
from systolic.styles.systolic.simulate import SystolicDesign
from tests.support.schedules import first_fit, staying, with_on_chip
from tests.support.shared_builds import locked
from tests.support.traced import load_into

HOSTILE = "a\"b' ${evil} [exec x]; */ int trap;\n#error trap\n// ?\\"
"""A name that ends a string, a comment, a line and a Tcl word if it is not escaped."""

GEOMETRIES = {
    "odd rows": Array(5, 8, 8, row_depth=512, weight_depth=256, kept_depth=256, chunk=8, channel_tiles=16),
    "one port": Array(
        4,
        16,
        8,
        save_rows=4,
        map_ports=1,
        weight_ports=1,
        row_depth=256,
        weight_depth=400,
        kept_depth=128,
        chunk=4,
        channel_tiles=16,
    ),
    "two rows": Array(
        2,
        8,
        8,
        save_rows=1,
        weight_ports=4,
        row_depth=100,
        weight_depth=400,
        kept_depth=512,
        chunk=5,
        channel_tiles=16,
    ),
    "four ports": Array(13, 16, 16, map_ports=4, row_depth=512, weight_depth=256, kept_depth=128, channel_tiles=16),
    "narrow": Array(
        7,
        16,
        4,
        weight_ports=1,
        row_depth=512,
        weight_depth=512,
        kept_depth=128,
        chunk=3,
        channel_tiles=16,
        dsp="DSP48E1",
    ),
}


# ------------------------------------------------------------------------------------------- networks


@dataclass
class Chain:
    """Layers with random integers, whose scales spread the values over int8 in every layer."""

    random: np.random.Generator
    shape: Shape
    nodes: list[QNode] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.nodes.append(QNode("input", QInput(), (), self.shape, TensorType(UINT8, 1 / 255), "net.cfg:1"))

    @property
    def last(self) -> Shape:
        return self.nodes[-1].shape

    def _put(self, kind: str, op: QOp, shape: Shape, out: TensorType, source: int | None) -> Chain:
        number = len(self.nodes)
        inputs = (number - 1 if source is None else source,)
        self.nodes.append(QNode(f"{kind}{number}", op, inputs, shape, out, f"net.cfg:{10 * number}"))
        return self

    def _requantiser(self, channels: int, fan: int, slope: float, spread: float) -> Requantiser:
        multiplier = self.random.integers(20000, 65536, channels)
        # Weights and values of ±127 have a deviation of 73; 42767 is the middle of the multipliers.
        shift = max(1, round(log2(sqrt(fan) * 73 * 73 * 42767 / spread)))
        bias = self.random.integers(-2000, 2001, channels)
        return Requantiser(bias, multiplier, (multiplier * slope).astype(np.int64), np.full(channels, shift))

    def convolution(
        self,
        filters: int,
        kernel: int = 3,
        stride: int = 1,
        padding: Padding | None = None,
        *,
        slope: float = 0.1,
        bits: int = 8,
        depthwise: bool = False,
        source: int | None = None,
    ) -> Chain:
        before = self.nodes[len(self.nodes) - 1 if source is None else source].shape
        around = Padding(*4 * (kernel // 2,)) if padding is None else padding
        height = (before.height + around.top + around.bottom - kernel) // stride + 1
        width = (before.width + around.left + around.right - kernel) // stride + 1
        size = (filters, 1 if depthwise else before.channels, kernel, kernel)
        weights = self.random.integers(-127, 128, size).astype(np.int8)
        out = DataType(bits, True)
        requantiser = self._requantiser(filters, prod(size[1:]), slope, 55 * 2.0 ** (bits - 8))
        op = QConvolution(weights, INT8, requantiser, stride, around, filters if depthwise else 1)
        return self._put("conv", op, Shape(filters, height, width), TensorType(out, 0.1), source)

    def pool(self, stride: int = 2, *, padded: bool = True, source: int | None = None) -> Chain:
        """Append a 2×2 max pool.

        With ``padded``, it has the right column and the bottom row that darknet adds. Otherwise, sizes are rounded
        down.
        """
        at = self.nodes[len(self.nodes) - 1 if source is None else source]
        before, extra = at.shape, int(padded)
        height, width = ((side + extra - 2) // stride + 1 for side in (before.height, before.width))
        op = MaxPool(2, stride, Padding(bottom=extra, right=extra))
        return self._put("pool", op, Shape(before.channels, height, width), at.type, source)

    def route(self, source: int) -> Chain:
        at = self.nodes[source]
        return self._put("route", Concat(), at.shape, at.type, source)

    def average(self) -> Chain:
        before = self.last
        requantiser = self._requantiser(before.channels, before.height * before.width, 1.0, 73 * 12)
        shape = Shape(before.channels, 1, 1)
        return self._put("average", QAveragePool(requantiser), shape, TensorType(INT8, 0.1), None)

    def dense(self, outputs: int, slope: float = 1.0) -> Chain:
        before = self.last
        inputs = before.channels * before.height * before.width
        weights = self.random.integers(-127, 128, (outputs, inputs)).astype(np.int8)
        op = QDense(weights, INT8, self._requantiser(outputs, inputs, slope, 55))
        return self._put("dense", op, Shape(outputs, 1, 1), TensorType(INT8, 0.1), None)

    def network(self, name: str = "small", labels: tuple[str, ...] = ()) -> QuantizedNetwork:
        return QuantizedNetwork(name, tuple(self.nodes), labels)


def start(channels: int, height: int, width: int, seed: int = 0) -> Chain:
    return Chain(np.random.default_rng(seed), Shape(channels, height, width))


def networks() -> dict[str, QuantizedNetwork]:
    """Return networks with every kind of layer of the array, at odd sizes. All GEOMETRIES can run them."""
    return {
        "pools": start(3, 23, 17)
        .convolution(12)
        .pool()
        .convolution(20)
        .pool(1)
        .convolution(9, 1)
        .convolution(16, 3, 2)
        .pool()
        .convolution(7, 1, slope=1.0, bits=16)
        .network(),
        "kernels": start(3, 30, 31)
        .convolution(8, 5, 2)
        .convolution(16)
        .convolution(8, 7)
        .convolution(24, 1, 2)
        .network(),
        "separate pools": start(1, 29, 40)
        .convolution(8, 7, 2)
        .pool()
        .pool(1)
        .pool(padded=False)
        .convolution(10, 3, padding=Padding())
        .network(),
        "depthwise": start(4, 15, 14)
        .convolution(24, 3, slope=0.0)
        .convolution(24, 3, 2, depthwise=True)
        .convolution(11, 1)
        .network(),
        "classifier": start(3, 12, 12).convolution(12).pool().average().dense(30).network(),
        "connected": start(2, 7, 8).convolution(16, padding=Padding()).dense(30, 0.1).network(),
        "connected to pixels": start(3, 5, 7).dense(21).network(),
        "planes": start(9, 9, 21).convolution(12).convolution(8, 3, 2, source=0).network(),
        "one position": start(4, 1, 1).convolution(3, 1).convolution(33, 1).network(),
        "lopsided": start(3, 14, 13)
        .convolution(8, 3, padding=Padding(2, 0, 1, 3))
        .convolution(8, 5, 3, Padding(0, 4, 2, 1))
        .network(),
        "skip": start(3, 16, 16)
        .convolution(8)
        .convolution(16, source=1)
        .pool()
        .route(1)
        .pool()
        .convolution(9, 3, 2)
        .convolution(6, 1, source=2)
        .network(),
        "streamed": start(3, 14, 10).convolution(32).convolution(80).convolution(20).network(),
        "both streamed": start(3, 10, 10).convolution(24).convolution(128).pool(1).convolution(8, 1).network(),
        "deep": start(3, 9, 9).convolution(48).convolution(8, 5).network(),
        "wide": start(3, 6, 90).convolution(16).convolution(16, 3, 2).convolution(120, 1).network(),
    }


def picture_for(network: QuantizedNetwork, seed: int = 0) -> npt.NDArray[np.uint8]:
    shape = network.input_shape
    size = (shape.channels, shape.height, shape.width)
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8, endpoint=False)


# --------------------------------------------------------------------------------------- accelerators


def design_of(network: QuantizedNetwork, array: Array, batch: int = 1, *, stay: bool = False) -> DesignFiles:
    """Return the design of a network on an array. With ``stay``, every possible map stays on chip."""
    schedule = first_fit(network, array, batch)
    if stay:
        schedule = with_on_chip(schedule, staying(network, [scheduled.layer for scheduled in schedule.layers], array))
    board = load("pynq-z2" if array.dsp == "DSP48E1" else "zcu104")
    shape = network.input_shape
    picture = np.random.default_rng(5).integers(0, 256, (shape.channels, shape.height, shape.width), dtype=np.uint8)
    ddr = ddr_timing(board, board.clocks()[-1].mhz)
    return generate(price(schedule, board, ddr), DesignInputs({}, picture))


@dataclass(frozen=True)
class Accelerator:
    """A compiled design whose program and weights can be replaced: one bitstream runs every network that fits."""

    path: Path
    array: Array

    def load(self, network: QuantizedNetwork, batch: int = 1) -> SystolicDesign:
        """Return the folder with the data of another network.

        Raises:
            DoesNotFitError: The array cannot run the network.
        """
        return load_into(self.path, design_of(network, self.array, batch))

    def copy(self, to: Path) -> Accelerator:
        shutil.copytree(self.path, to)
        return Accelerator(to, self.array)


def compiled(array: Array, folder: Path, *variants: Variant) -> Accelerator:
    """Return the design in ``folder``. The first worker that needs it generates and compiles it."""
    with locked(folder.with_suffix(".lock")):
        if not folder.exists():
            write(design_of(start(3, 8, 8).convolution(8).network(HOSTILE), array), folder)
        for variant in variants:
            build(folder, variant)
    return Accelerator(folder, array)
