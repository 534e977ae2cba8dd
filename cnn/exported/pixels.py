"""Folds the normalisation of pixels in training, (p / 255 − mean) / std, into the batch norm of the first convolution.

    Σ w · (p / 255 − mean) / std = (Σ w · p / 255 − M) / std,  M = Σ w · mean

Padding is 0 after this normalisation, so it is a pixel with the value of the mean: the nearest whole number is used.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from boards.errors import ConflictError, MissingValueError, UnsupportedError
from cnn.exported.topology import Kernel, Topology, TopologyLayer
from cnn.maps import FloatArray, Padding


def pixel_zero(topology: Topology) -> int:
    """Return the pixel value that stands for a normalised 0, which padding has; ConflictError if channels differ."""
    padded = [layer for layer, kernel in topology.kernels if 0 in layer.inputs and kernel.padding != Padding()]
    if not padded:
        return 0
    if len(set(topology.mean)) > 1:
        subjects = (f"padding of {padded[0].name!r}", "a mean for each channel of the picture")
        remedy = "take one mean for all channels, or no padding"
        raise ConflictError(subjects, "padding has one value", where=padded[0].source, remedy=remedy)
    return round(255 * topology.mean[0])


def check_reader(topology: Topology, layer: TopologyLayer) -> None:
    """Raise UnsupportedError if a layer that is not a convolution reads images to be normalised or in BGR order."""
    picture = "in BGR order" if topology.order == "BGR" else "with a mean or a std"
    if topology.order == "BGR" or not topology.plain_pixels:
        subject = f"{layer.name!r} that reads a picture {picture}"
        raise UnsupportedError(subject, "only convolutions can include that", where=layer.source)


def normalised(
    topology: Topology, layer: TopologyLayer, weights: FloatArray, arrays: Mapping[str, FloatArray]
) -> Mapping[str, FloatArray]:
    """Return the arrays with the image's normalisation folded into the batch norm of the convolution that reads it.

    Args:
        topology: The network's topology, with the mean and the standard deviation.
        layer: The convolution.
        weights: Its weights for an RGB picture.
        arrays: The file's arrays by name.

    Raises:
        MissingValueError: The convolution has no batch norm.
    """
    kernel = layer.op
    assert isinstance(kernel, Kernel)
    if topology.plain_pixels:
        return arrays
    if kernel.output_bits is None or topology.requantise_of(kernel).startswith("given"):
        raise MissingValueError(
            f"the batch norm of {layer.name!r}",
            "it takes in the mean and the standard deviation of the picture",
            where=layer.source,
            remedy="give the layer 'output_bits' and a batch norm, or remove 'mean' and 'std'",
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
