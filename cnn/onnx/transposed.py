"""Read ConvTranspose, as several convolutions followed by depth to space.

Along one side, let the stride be s and the padding before the map p. Output s · m + a reads input m − t with the weight
s · t + a + p, for every t with such a weight. The outputs of one a are therefore a convolution of stride 1 with one
weight per t. Unlike in the definition with zeros between the inputs, nothing is multiplied by zeros.
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
from cnn.onnx.sliding import Blocks, append_interleaved, check_window, dilated, planar
from cnn.ops import Convolution, DepthToSpace


@dataclass(frozen=True)
class _Side:
    """One side, height or width, of an ONNX ConvTranspose, which is computed by one convolution per output phase a.

    Attributes:
        input: Pixels of the input.
        kernel: Weights of the kernel.
        stride: The stride.
        pads: Padding before and after the output, which the operator removes from it.
        length: Pixels of the output.
    """

    input: int
    kernel: int
    stride: int
    pads: tuple[int, int]
    length: int

    @property
    def _reach(self) -> tuple[int, int]:
        """The least and the greatest offset t of an input pixel (m − t) that any output (s · m + a) reads."""
        first = [-(-(-a - self.pads[0]) // self.stride) for a in range(self.stride)]
        last = [(self.kernel - 1 - a - self.pads[0]) // self.stride for a in range(self.stride)]
        return min(0, *first), max(0, *last)

    @property
    def window(self) -> int:
        """The kernel length of each phase's convolution."""
        low, high = self._reach
        return high - low + 1

    @property
    def blocks(self) -> int:
        """The number of outputs that each phase's convolution computes, some of which may be cut off.

        There are enough for the output, and not fewer than the convolution has with the padding before the map alone.
        """
        return max(-(-self.length // self.stride), self.input + self.pad_before - self.window + 1)

    @property
    def pad_before(self) -> int:
        """The padding of the phases' convolutions before the map."""
        return self._reach[1]

    @property
    def pad_behind(self) -> int:
        """The padding of the phases' convolutions after the map."""
        return self.blocks - 1 + self.window - self.pad_before - self.input

    def weights_at(self, a: int) -> list[tuple[int, int]]:
        """Return, for phase ``a``, each tap's index in the phase's kernel and in the ConvTranspose's kernel."""
        low, high = self._reach
        places = ((high - t, self.stride * t + a + self.pads[0]) for t in range(low, high + 1))
        return [(place, weight) for place, weight in places if 0 <= weight < self.kernel]


def transposed_convolution(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX ConvTranspose of one or two dimensions: append convolutions and depth to space."""
    source, shape = layers.picture(operation)
    weights = floats(layers.constant(operation, 1))
    rank = len(source.shape)
    fits = rank == weights.ndim >= 3
    require(fits, ShapeError("weights", weights.shape, f"{max(3, rank)} sides, the same number as its input"))
    strides = operation.integers("strides", (1,) * (rank - 2))
    operation = planar(operation, source)
    if rank == 3:  # a signal is a map of one row, so its height has stride 1
        strides, weights = (1, *strides), weights.reshape(*weights.shape[:2], 1, -1)
    groups = operation.integer("group", 1)
    channels, each = weights.shape[:2]
    fits = groups >= 1 and channels == shape.channels and channels % groups == 0 and min(weights.shape) >= 1
    required = f"{shape.channels} input channels in {groups} groups, and no side of 0"
    require(fits, ShapeError("weights", weights.shape, required))
    filters = each * groups
    check_window(operation, weights.shape[2:])
    weights = dilated(weights, operation.integers("dilations", (1, 1)))
    bias = floats(layers.constant(operation, 2)) if layers.optional(operation, 2) is not None else np.zeros(filters)
    require(bias.shape == (filters,), ShapeError("bias", bias.shape, (filters,)))
    sides = _sides(operation, shape, weights, strides)
    places = [(i, j) for i in range(sides[0].stride) for j in range(sides[1].stride)]
    # (groups, inputs of a group, filters of a group) → (filters, inputs of a group), the order in convolutions.
    turned = weights.reshape(groups, channels // groups, each, *weights.shape[2:]).swapaxes(1, 2)
    turned = turned.reshape(filters, channels // groups, *weights.shape[2:])
    layers = layers.with_bytes_spent(turned.nbytes * len(places))
    parts = [_convolution(turned, floats(bias), sides, place, groups) for place in places]
    if groups == 1:
        kernels, biases = (np.concatenate([getattr(part, key) for part in parts]) for key in ("weights", "bias"))
        parts = [Convolution(kernels, biases, None, 1, parts[0].padding, 1, "linear")]
    scale, (rows, columns) = layers.scales.get(operation.inputs[1]), sides
    spread = DepthToSpace(rows.stride, columns.stride)
    each = Shape(filters, rows.blocks, columns.blocks)
    blocks = Blocks(spread, each, rows.length, columns.length, Mark(scale=scale))
    return append_interleaved(layers, operation, source.node, parts, blocks)


def _sides(
    operation: OnnxOperation, shape: Shape, weights: FloatArray, strides: tuple[int, ...]
) -> tuple[_Side, _Side]:
    """Return the height and width of a ConvTranspose, computed by the formulas of ONNX's specification."""
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
        if side_given is not None:  # outputs beyond ``full`` only read zeros
            full = max(full, side_given)
            front, back = _halves(full - side_given, mode)
        out = full - front - back
        require(1 <= out <= MAX_SIDE, RangeError("a side of its output", out, 1, MAX_SIDE))
        sides.append(_Side(length, kernel, strides[axis], (front, back), out))
    return sides[0], sides[1]


def _halves(total: int, mode: str) -> tuple[int, int]:
    """Return the padding before and after the map that SAME_UPPER or SAME_LOWER makes of ``total``."""
    front = total // 2 if mode == "SAME_UPPER" else total - total // 2
    return front, total - front


def _convolution(
    weights: FloatArray, bias: FloatArray, sides: tuple[_Side, _Side], place: tuple[int, int], groups: int
) -> Convolution:
    """Return the convolution that computes the outputs of one phase: one position of every block of outputs."""
    rows, columns = sides
    kernel = np.zeros((*weights.shape[:2], rows.window, columns.window), np.float32)
    for y, row in rows.weights_at(place[0]):
        for x, column in columns.weights_at(place[1]):
            kernel[:, :, y, x] = weights[:, :, row, column]
    padding = Padding(rows.pad_before, columns.pad_before, rows.pad_behind, columns.pad_behind)
    return Convolution(kernel, bias, None, 1, padding, groups, "linear")
