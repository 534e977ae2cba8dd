"""Writes the trained network as darknet's files: cfg, weights and names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cnn.darknet.graph import DARKNET_EPSILON
from host.whole_file import write_whole
from tools.demo.network import ANCHORS, CLASSES, SIZE, TORCH_EPSILON, WIDTHS
from tools.demo.objects import LABELS

if TYPE_CHECKING:
    import torch  # type: ignore[import-not-found, unused-ignore]


def darknet_weights(network: torch.nn.Sequential, pictures: int) -> bytes:
    """Return the weights file of a network trained on ``pictures`` pictures.

    The file has a header of 20 bytes, then for each convolution biases, [scales, means, variances], weights. The
    variance is converted so that darknet's (x − mean) / (sqrt(variance) + 1e-6) equals PyTorch's (x − mean) /
    sqrt(variance + 1e-5).
    """
    from torch import nn

    parts = [np.array([0, 2, 0], "<i4").tobytes(), np.array([pictures], "<u8").tobytes()]
    layers = list(network)
    for i, layer in enumerate(layers):
        if not isinstance(layer, nn.Conv2d):
            continue
        norm = layers[i + 1] if i + 1 < len(layers) else None
        if isinstance(norm, nn.BatchNorm2d):
            arrays = [norm.bias, norm.weight, norm.running_mean, _darknet_variance(norm.running_var)]
        else:
            arrays = [layer.bias]
        parts += [_little_endian(array) for array in [*arrays, layer.weight]]
    return b"".join(parts)


def _darknet_variance(variance: Any) -> npt.NDArray[np.float64]:
    deviation = np.sqrt(variance.numpy().astype(np.float64) + TORCH_EPSILON)
    return np.asarray((deviation - DARKNET_EPSILON) ** 2)


def _little_endian(values: Any) -> bytes:
    array = values if isinstance(values, np.ndarray) else values.detach().numpy()
    return array.astype("<f4").tobytes()


def darknet_cfg() -> str:
    """Return the network in darknet's cfg syntax."""
    parts = [f"[net]\nbatch=1\nsubdivisions=1\nwidth={SIZE}\nheight={SIZE}\nchannels=3\n"]
    for i, width in enumerate(WIDTHS):
        parts.append(
            f"[convolutional]\nbatch_normalize=1\nfilters={width}\nsize=3\nstride=1\npad=1\nactivation=leaky\n"
        )
        if i < 6:
            parts.append(f"[maxpool]\nsize=2\nstride={2 if i < 5 else 1}\n")
    head = len(ANCHORS) * (5 + CLASSES)
    parts.append(f"[convolutional]\nfilters={head}\nsize=1\nstride=1\npad=1\nactivation=linear\n")
    anchors = ", ".join(f"{w:g},{h:g}" for w, h in ANCHORS)
    parts.append(
        f"[region]\nanchors={anchors}\nbias_match=1\nclasses={CLASSES}\ncoords=4\nnum={len(ANCHORS)}\n"
        f"softmax=1\njitter=.0\nrescore=0\nthresh=.6\nabsolute=1\nrandom=0\n"
    )
    return "\n".join(parts)


def write_model(folder: Path, network: torch.nn.Sequential, pictures: int) -> None:
    """Write shapes.cfg, shapes.weights and shapes.names into ``folder``, which is made if needed."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "shapes.cfg", darknet_cfg().encode())
    write_whole(folder / "shapes.names", "".join(f"{label}\n" for label in LABELS).encode())
    write_whole(folder / "shapes.weights", darknet_weights(network, pictures))
