"""Pictures as training read them, (p / 255 − mean) / std: folded into the batch norm of what reads them.

    Σ w · (p / 255 − mean) / std = (Σ w · p / 255 − M) / std,  M = Σ w · mean

Padding is 0 in training, and so a pixel of the mean: the nearest whole one here.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from boards.errors import NetworkError
from cnn.exported.topology import Kernel, Layer, Topology
from cnn.network import FloatArray, Padding


def pixel_zero(topology: Topology) -> int:
    """The pixel that padding has; NetworkError where each channel would need one of its own."""
    padded = [layer for layer, kernel in topology.kernels if 0 in layer.inputs and kernel.padding != Padding()]
    if not padded:
        return 0
    if len(set(topology.mean)) > 1:
        raise NetworkError(
            f"{padded[0].source}: {padded[0].name!r} pads a picture whose channels have means of their own, and "
            "padding has one value; take one mean for all channels, or no padding"
        )
    return round(255 * topology.mean[0])


def check_reader(topology: Topology, layer: Layer) -> None:
    """NetworkError where a layer that is no convolution cannot read the picture as it comes."""
    if topology.order == "BGR":
        raise NetworkError(f"{layer.source}: a picture in BGR order must be read by convolutions alone")
    if not topology.plain_pixels:
        raise NetworkError(f"{layer.source}: a picture with a mean or a std must be read by convolutions alone")


def normalised(
    topology: Topology, layer: Layer, weights: FloatArray, arrays: Mapping[str, FloatArray]
) -> Mapping[str, FloatArray]:
    """``arrays`` with the batch norm that a convolution of pixels 0…1 has; weights: of it, for a picture in RGB.

    NetworkError where it has no batch norm.
    """
    kernel = layer.op
    assert isinstance(kernel, Kernel)
    if topology.plain_pixels:
        return arrays
    if kernel.output_bits is None or topology.requantise_of(kernel).startswith("given"):
        raise NetworkError(
            f"{layer.source}: {layer.name!r} reads a picture with a mean or a std, which its batch norm takes in, but "
            "it has none; give it 'output_bits' and a batch norm, or leave 'mean' and 'std' out"
        )
    means = np.array(topology.mean[::-1] if topology.order == "BGR" else topology.mean)
    of_filters = means.reshape(kernel.groups, -1).repeat(kernel.filters // kernel.groups, axis=0)
    shift = (weights.sum(axis=(2, 3), dtype=np.float64) * of_filters).sum(axis=1)
    gamma, mean = f"bn{kernel.number}_gamma", f"bn{kernel.number}_mean"
    return {
        **arrays,
        gamma: np.asarray(arrays[gamma] / topology.std, np.float32),
        mean: np.asarray(arrays[mean] * topology.std + shift, np.float32),
    }
