"""The golden model: computes the integer network with the arithmetic of cnn.requantise and of each operation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from boards.errors import ShapeError, SystolicError
from cnn.datatype import TensorType
from cnn.maps import FloatArray, Integers
from cnn.quantized import QNode, QuantizedNetwork, has_integers


def run_integer(network: QuantizedNetwork, picture: npt.NDArray[np.uint8]) -> list[Integers | None]:
    """Return every node's output: integers ``(channels, height, width)`` in the numpy type of the node's datatype.

    A node that the host computes has the entry None.

    Args:
        network: The quantised network.
        picture: uint8 ``(channels, height, width)``.

    Raises:
        ShapeError: The picture does not have the network's input shape, or is not uint8.
    """
    _check_picture(network, picture)
    outputs: list[Integers | None] = []
    for index, node in enumerate(network.nodes):
        computes = has_integers(network.nodes, index)
        outputs.append(run_node(node, network.nodes, outputs, picture) if computes else None)
    return outputs


def dequantise(array: Integers, type: TensorType) -> FloatArray:
    """Return (integer − zero point) × scale as float32, in the shape of ``array``."""
    return np.asarray((array.astype(np.int64) - type.zero_point) * np.float64(type.scale), dtype=np.float32)


def _check_picture(network: QuantizedNetwork, picture: npt.NDArray[np.uint8]) -> None:
    shape = network.input_shape
    if picture.dtype != np.uint8 or picture.shape != (shape.channels, shape.height, shape.width):
        sides = "×".join(str(side) for side in picture.shape)
        raise ShapeError(
            f"the picture for {network.name!r}",
            f"type {picture.dtype} and shape {sides}",
            f"type uint8 and shape {shape}",
            remedy="resize it and put the channels first",
        )


def run_node(node: QNode, nodes: Sequence[QNode], outputs: Sequence[Integers | None], picture: Integers) -> Integers:
    """Return the output of one node of the integer network for given integers of its inputs.

    Args:
        node: The node.
        nodes: The network's nodes; at least the nodes that precede ``node``.
        outputs: The outputs of ``nodes``.
        picture: uint8 ``(channels, height, width)``.
    """
    inputs = [output for i in node.inputs if (output := outputs[i]) is not None] or [picture]
    try:
        return node.op.run_integer(inputs, [nodes[i] for i in node.inputs], node)
    except SystolicError as error:
        raise error.at(node.place) from error
