"""ConvTranspose is a convolution for each place of a block of outputs, and depth to space. With stride s, output
s · m + a reads input m − t by the weight s · t + a + p, p the padding before, for every t for which there is such a
weight. So the outputs of one a are a convolution of stride 1, whose window has a place for each t, and nothing is
multiplied by the zeros that a transposed convolution is often explained by.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from boards.errors import InvalidValueError, RangeError, ShapeError
from cnn.limits import MAX_KERNEL, MAX_SIDE
from cnn.maps import FloatArray, Padding, Shape
from cnn.onnx.arithmetic import floats
from cnn.onnx.graph import OnnxOperation, require
from cnn.onnx.layers import Layers
from cnn.onnx.quantised.mark import Mark
from cnn.onnx.sliding import Blocks, check_window, dilated, planar, side_by_side
from cnn.ops import Convolution, DepthToSpace


@dataclass(frozen=True)
class _Side:
    """Height or width. pads: before and behind. length: of the output."""

    input: int
    kernel: int
    stride: int
    pads: tuple[int, int]
    length: int

    @property
    def _reach(self) -> tuple[int, int]:
        """The least and the greatest t of any place."""
        first = [-(-(-a - self.pads[0]) // self.stride) for a in range(self.stride)]
        last = [(self.kernel - 1 - a - self.pads[0]) // self.stride for a in range(self.stride)]
        return min(0, *first), max(0, *last)

    @property
    def window(self) -> int:
        """Places of the window."""
        low, high = self._reach
        return high - low + 1

    @property
    def blocks(self) -> int:
        """Outputs of each convolution: as many as the output needs, and as there are with the padding before alone."""
        return max(-(-self.length // self.stride), self.input + self.pad_before - self.window + 1)

    @property
    def pad_before(self) -> int:
        """Padding of the convolutions."""
        return self._reach[1]

    @property
    def pad_behind(self) -> int:
        """Padding of the convolutions."""
        return self.blocks - 1 + self.window - self.pad_before - self.input

    def weights_at(self, a: int) -> list[tuple[int, int]]:
        """Place in the window and place in the kernel, of every weight that the outputs of a read."""
        low, high = self._reach
        places = ((high - t, self.stride * t + a + self.pads[0]) for t in range(low, high + 1))
        return [(place, weight) for place, weight in places if 0 <= weight < self.kernel]


def transposed_convolution(layers: Layers, operation: OnnxOperation) -> Layers:
    """ConvTranspose of one or two dimensions."""
    source, shape = layers.picture(operation)
    weights = floats(layers.constant(operation, 1))
    rank = len(source.shape)
    fits = rank == weights.ndim >= 3
    require(fits, ShapeError("weights", weights.shape, f"{max(3, rank)} sides, the number of the map's"))
    strides = operation.integers("strides", (1,) * (rank - 2))
    operation = planar(operation, source)
    if rank == 3:  # one row: its height is neither read several times nor spread
        strides, weights = (1, *strides), weights.reshape(*weights.shape[:2], 1, -1)
    groups = operation.integer("group", 1)
    channels, each = weights.shape[:2]
    fits = groups >= 1 and channels == shape.channels and channels % groups == 0 and min(weights.shape) >= 1
    required = f"{shape.channels} input channels of {groups} groups, and no side of 0"
    require(fits, ShapeError("weights", weights.shape, required))
    filters = each * groups
    check_window(operation, weights.shape[2:])
    weights = dilated(weights, operation.integers("dilations", (1, 1)))
    bias = floats(layers.constant(operation, 2)) if layers.optional(operation, 2) is not None else np.zeros(filters)
    require(bias.shape == (filters,), ShapeError("bias", bias.shape, (filters,)))
    sides = _sides(operation, shape, weights, strides)
    places = [(i, j) for i in range(sides[0].stride) for j in range(sides[1].stride)]
    # [inputs of a group, filters of a group] of each group → [filters, inputs of a group], as convolutions have it.
    turned = weights.reshape(groups, channels // groups, each, *weights.shape[2:]).swapaxes(1, 2)
    turned = turned.reshape(filters, channels // groups, *weights.shape[2:])
    layers = layers.worked_out(turned.nbytes * len(places))
    parts = [_convolution(turned, floats(bias), sides, place, groups) for place in places]
    if groups == 1:
        kernels, biases = (np.concatenate([getattr(part, key) for part in parts]) for key in ("weights", "bias"))
        parts = [Convolution(kernels, biases, None, 1, parts[0].padding, 1, "linear")]
    scale, (rows, columns) = layers.scales.get(operation.inputs[1]), sides
    spread = DepthToSpace(rows.stride, columns.stride)
    each = Shape(filters, rows.blocks, columns.blocks)
    blocks = Blocks(spread, each, rows.length, columns.length, Mark(scale=scale))
    return side_by_side(layers, operation, source.node, parts, blocks)


def _sides(
    operation: OnnxOperation, shape: Shape, weights: FloatArray, strides: tuple[int, ...]
) -> tuple[_Side, _Side]:
    """How both sides are read and written, by the formulas of the operator's page."""
    extra = operation.integers("output_padding", (0, 0))
    extra = (0, *extra) if len(extra) == 1 else extra
    fits = len(strides) == 2 and min(strides) >= 1 and max(strides) <= MAX_KERNEL
    require(fits, InvalidValueError("strides", tuple(strides), f"two numbers of 1 to {MAX_KERNEL}"))
    fits = len(extra) == 2 and min(extra) >= 0 and max(extra) < MAX_KERNEL
    require(fits, InvalidValueError("output_padding", tuple(extra), f"two numbers of 0 to {MAX_KERNEL - 1}"))
    pads, mode = operation.integers("pads", (0, 0, 0, 0)), operation.text("auto_pad", "NOTSET")
    fits = len(pads) == 4 and min(pads) >= 0 and max(pads) < MAX_KERNEL
    require(fits, InvalidValueError("pads", tuple(pads), f"four numbers of 0 to {MAX_KERNEL - 1}"))
    shape_given = operation.integers("output_shape", ())[-2:]
    rows, columns = shape.height * strides[0], shape.width * strides[1]
    lengths = (rows, *shape_given)[-2:] if shape_given else (rows, columns) if mode.startswith("SAME") else (None, None)
    sides = []
    for axis, length in enumerate((shape.height, shape.width)):
        kernel = weights.shape[2 + axis]
        front, back, full = pads[axis], pads[2 + axis], (length - 1) * strides[axis] + kernel + extra[axis]
        side_given = lengths[axis]
        if side_given is not None:  # what is beyond reads zeros alone
            full = max(full, side_given)
            front, back = _halves(full - side_given, mode)
        out = full - front - back
        require(1 <= out <= MAX_SIDE, RangeError("a side of its output", out, 1, MAX_SIDE))
        sides.append(_Side(length, kernel, strides[axis], (front, back), out))
    return sides[0], sides[1]


def _halves(total: int, mode: str) -> tuple[int, int]:
    """Padding before and behind."""
    front = total // 2 if mode == "SAME_UPPER" else total - total // 2
    return front, total - front


def _convolution(
    weights: FloatArray, bias: FloatArray, sides: tuple[_Side, _Side], place: tuple[int, int], groups: int
) -> Convolution:
    """Of the outputs at one place of every block."""
    rows, columns = sides
    kernel = np.zeros((*weights.shape[:2], rows.window, columns.window), np.float32)
    for y, row in rows.weights_at(place[0]):
        for x, column in columns.weights_at(place[1]):
            kernel[:, :, y, x] = weights[:, :, row, column]
    padding = Padding(rows.pad_before, columns.pad_before, rows.pad_behind, columns.pad_behind)
    return Convolution(kernel, bias, None, 1, padding, groups, "linear")
