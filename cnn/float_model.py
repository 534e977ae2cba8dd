"""The float reference: computes a network in float32, as darknet does."""

from __future__ import annotations

import numpy as np

from boards.errors import ShapeError
from cnn.maps import FloatArray
from cnn.network import Network


def run_float(network: Network, picture: FloatArray) -> list[FloatArray]:
    """Return the output of every node of a float network, float32 ``(channels, height, width)``, in node order.

    The output of a detection head is its input; the host decodes boxes (host.vision.detection).

    Args:
        network: The float network.
        picture: float32 ``(channels, height, width)`` in the range 0…1.

    Raises:
        ShapeError: The picture does not have the network's input shape, or is not float32.
    """
    _check_picture(network, picture)
    outputs: list[FloatArray] = []
    for node in network.nodes:
        inputs = [outputs[i] for i in node.inputs] or [picture]
        outputs.append(node.op.run(inputs, node.shape))
    return outputs


def _check_picture(network: Network, picture: FloatArray) -> None:
    shape = network.input_shape
    if picture.dtype != np.float32 or picture.shape != (shape.channels, shape.height, shape.width):
        sides = "×".join(str(side) for side in picture.shape)
        raise ShapeError(
            f"the picture for {network.name!r}",
            f"type {picture.dtype} and shape {sides}",
            f"type float32 and shape {shape}",
            remedy="resize it, put the channels first and divide by 255",
        )
