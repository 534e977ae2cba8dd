"""The files of the model that comes with the project, and what PyTorch's network becomes in them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import cnn
from tools.demo.darknet_files import darknet_cfg, darknet_weights
from tools.demo.network import ANCHORS, CLASSES, SIZE, WIDTHS, build_network
from tools.demo.objects import LABELS

SHAPES = Path(cnn.__file__).parent / "models" / "shapes"


def parameters() -> int:
    """Return the number of floats in the weights file: 4 and a kernel per filter; in the head, a bias and a kernel."""
    channels = (3, *WIDTHS)
    body = sum(o * (4 + 9 * i) for i, o in pairwise(channels))
    return body + len(ANCHORS) * (5 + CLASSES) * (1 + channels[-1])


def test_shapes_cfg_and_names_equal_the_description_of_the_trainer() -> None:
    assert (SHAPES / "shapes.cfg").read_text() == darknet_cfg()
    assert (SHAPES / "shapes.names").read_text().split() == list(LABELS)


def test_shapes_weights_file_has_all_parameters_and_positive_variances() -> None:
    data = (SHAPES / "shapes.weights").read_bytes()
    assert np.frombuffer(data[:12], "<i4").tolist() == [0, 2, 0]
    values = np.frombuffer(data[20:], "<f4")
    assert len(values) == parameters()
    assert len(data) < 2_000_000
    assert np.isfinite(values).all()
    first = WIDTHS[0]
    assert (values[3 * first : 4 * first] > 1e-6).all()  # variances of the first layer


@pytest.mark.engine
def test_exported_weights_compute_what_pytorch_computes() -> None:
    torch = pytest.importorskip("torch", reason="training needs PyTorch: pip install -e '.[train]'")
    torch.manual_seed(0)
    network = build_network()
    with torch.no_grad():
        network(torch.rand(8, 3, SIZE, SIZE))  # some running statistics
        network.eval()
        picture = torch.rand(1, 3, SIZE, SIZE)
        expected = network[0:3](picture).numpy()
    values = np.frombuffer(darknet_weights(network, 5)[20:], "<f4")
    first = WIDTHS[0]
    bias, scale, mean, variance = values[: 4 * first].reshape(4, first, 1, 1).astype(np.float64)
    sums = torch.nn.functional.conv2d(
        picture, torch.tensor(values[4 * first :][: first * 27].reshape(first, 3, 3, 3)), padding=1
    )
    normed = scale * (sums.numpy() - mean) / (np.sqrt(variance) + 1e-6) + bias
    assert np.where(normed > 0, normed, 0.1 * normed) == pytest.approx(expected, abs=1e-5)
