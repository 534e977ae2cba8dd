"""Operations that move values, as ONNX has them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cnn.maps import Padding
from cnn.onnx.quantised.file_writer import FileWriter
from cnn.ops import DepthToSpace, MaxPool, Pad, Reorg, Slice, Upsample
from cnn.quantized import QNode


def pool(writer: FileWriter, op: MaxPool, inputs: Sequence[str]) -> str:
    """MaxPool."""
    sides = {"kernel_shape": list(op.window), "strides": [op.stride] * 2}
    return writer.put("MaxPool", inputs, pads=pads(op.padding), **sides)


def sliced(writer: FileWriter, op: Slice, inputs: Sequence[str]) -> str:
    """Slice along the channels."""
    ends = ([op.first], [op.first + op.channels], [1])
    return writer.put("Slice", [inputs[0], *(writer.constant(values, np.int64) for values in ends)])


def reorg(writer: FileWriter, node: QNode, op: Reorg, inputs: Sequence[str]) -> str:
    """SpaceToDepth, or what gives darknet's order of it."""
    if op.order == "block":
        return writer.put("SpaceToDepth", inputs, blocksize=op.stride)
    before, s = writer.network.nodes[node.inputs[0]].shape, op.stride
    return _moved(writer, node, inputs[0], (before.channels // s**2, before.height, s, before.width, s))


def padded(writer: FileWriter, op: Pad, inputs: Sequence[str]) -> str:
    """Return the name of the map with values of it repeated around."""
    top, left, bottom, right = pads(op.padding)
    sides = writer.constant([0, 0, top, left, 0, 0, bottom, right], np.int64)
    return writer.put("Pad", [*inputs, sides], mode=op.mode)


def depth_to_space(writer: FileWriter, node: QNode, op: DepthToSpace, inputs: Sequence[str]) -> str:
    """DepthToSpace, or what gives rows and columns that differ."""
    if op.rows == op.columns:
        return writer.put("DepthToSpace", inputs, blocksize=op.rows)
    before = writer.network.nodes[node.inputs[0]].shape
    parts = op.rows, op.columns, node.shape.channels, before.height, before.width
    return _moved(writer, node, inputs[0], parts, (2, 3, 0, 4, 1))


def _moved(
    writer: FileWriter, node: QNode, source: str, parts: Sequence[int], order: Sequence[int] = (2, 4, 0, 1, 3)
) -> str:
    """The values of a map as ``parts``, in another order, as the map of the node."""
    split = writer.put("Reshape", [source, writer.constant([1, *parts], np.int64)])
    turned = writer.put("Transpose", [split], perm=[0, *(1 + i for i in order)])
    sides = [1, node.shape.channels, node.shape.height, node.shape.width]
    return writer.put("Reshape", [turned, writer.constant(sides, np.int64)])


def upsample(writer: FileWriter, op: Upsample, inputs: Sequence[str]) -> str:
    """Resize to the nearest."""
    scales = writer.constant([1, 1, op.stride, op.columns])
    mode = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return writer.put("Resize", [inputs[0], "", scales], mode="nearest", **mode)


def pads(padding: Padding) -> list[int]:
    """As ONNX orders them: those above and to the left first."""
    return [padding.top, padding.left, padding.bottom, padding.right]
