"""Tests of layers whose weights differ from the stored numbers or are not stored at all.

The expected values come from darknet's loops, which are written out here.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from boards.errors import RangeError, UnsupportedError
from cnn import zoo
from cnn.darknet.files import parameter_count, read_darknet, read_weights, write_darknet_weights
from cnn.float_model import run_float
from cnn.maps import FloatArray
from cnn.network import Network
from cnn.ops import Convolution
from tests.support.cases import cases
from tests.support.darknet import topology
from tests.support.errors import raises
from tests.support.kinds import as_kind

NET = "[net]\nwidth=8\nheight=6\nchannels=4\n"


def with_random_weights(tmp_path: Path, text: str) -> tuple[Network, FloatArray]:
    """Read a cfg and fill it from a weights file of random non-negative numbers.

    Check also that writing and reading the weights again keeps them.

    Returns:
        The network, and the numbers in the order of the file.
    """
    network = topology(tmp_path, text)
    count = sum(parameter_count(node) for node in network.nodes)
    numbers = np.random.default_rng(1).uniform(-1, 2, count).astype(np.float32)
    numbers[numbers < 0] *= 0.5
    path = tmp_path / "net.weights"
    path.write_bytes(np.array([0, 2, 0, 0, 0], "<i4").tobytes() + np.abs(numbers).tobytes())
    filled = read_weights(network, path)
    again = tmp_path / "again.weights"
    again.write_bytes(write_darknet_weights(filled))
    for node, other in zip(filled.nodes, read_weights(network, again).nodes, strict=True):
        if isinstance(node.op, Convolution):
            np.testing.assert_array_equal(node.op.weights, as_kind(Convolution, other.op).weights)
    return filled, np.abs(numbers)


def picture(shape: tuple[int, int, int] = (4, 6, 8)) -> FloatArray:
    return np.random.default_rng(2).random(shape, np.float32)


def test_batch_norm_without_convolution_equals_the_formula(tmp_path: Path) -> None:
    network, numbers = with_random_weights(tmp_path, NET + "[batchnorm]\n")
    bias, scale, mean, variance = numbers.reshape(4, 4, 1, 1)  # darknet's order
    expected = (picture() - mean) / np.sqrt(variance + 1e-6) * scale + bias
    np.testing.assert_allclose(run_float(network, picture())[-1], expected, rtol=1e-5)
    seeded = read_darknet(tmp_path / "net.cfg", None, weight_source=zoo.seeded(1))
    assert as_kind(Convolution, seeded.nodes[-1].op).weights.ravel().tolist() == [1] * 4


def test_reorg_with_extra_values_appends_zeros(tmp_path: Path) -> None:
    network, numbers = with_random_weights(tmp_path, NET + "[reorg]\nextra=2\n[softmax]\n")
    outputs = run_float(network, picture())
    assert len(numbers) == 0
    np.testing.assert_array_equal(outputs[1].ravel(), [*picture().ravel(), 0, 0])
    seeded = read_darknet(tmp_path / "net.cfg", None, weight_source=zoo.seeded(1))
    np.testing.assert_array_equal(run_float(seeded, picture())[-1], outputs[-1])
    with raises(RangeError, got=4192, high=4096, where="net.cfg:6"):
        topology(tmp_path, NET + "[reorg]\nextra=4000\n")


def convolved(array: FloatArray, weights: FloatArray, dilation: int) -> FloatArray:
    """Convolve a map of shape (channels, rows, columns) with 3×3 windows and zero padding that keeps its size."""
    _, height, width = array.shape
    result = np.zeros((len(weights), height, width))
    for y, x, i, j in np.ndindex(height, width, 3, 3):
        row, column = y + (i - 1) * dilation, x + (j - 1) * dilation
        if 0 <= row < height and 0 <= column < width:
            result[:, y, x] += weights[:, :, i, j] @ array[:, row, column]
    return np.asarray(result, np.float32)


def test_dilated_convolution_spreads_the_stored_weights(tmp_path: Path) -> None:
    text = NET + "[convolutional]\nfilters=3\nsize=3\npad=1\ndilation=2\nactivation=linear\n"
    network, numbers = with_random_weights(tmp_path, text)
    assert len(numbers) == 3 + 3 * 4 * 9
    bias, weights = numbers[:3].reshape(3, 1, 1), numbers[3:].reshape(3, 4, 3, 3)
    expected = convolved(picture(), weights, 2) + bias
    np.testing.assert_allclose(run_float(network, picture())[-1], expected, rtol=1e-5)
    seeded = as_kind(Convolution, read_darknet(tmp_path / "net.cfg", None, weight_source=zoo.seeded(1)).nodes[1].op)
    assert (seeded.weights.shape, seeded.dilation, seeded.window) == ((3, 4, 3, 3), (2, 2), (5, 5))
    one = topology(tmp_path, text.replace("size=3", "size=1").replace("pad=1", "pad=0"))
    assert as_kind(Convolution, one.nodes[1].op).weights.shape == (3, 4, 1, 1)
    with raises(UnsupportedError, subject="dilation=2 of a window that changes the map's size", where="net.cfg:9"):
        topology(tmp_path, text.replace("size=3", "size=4"))
    with raises(RangeError, what="a side of the window with dilation=2048", got=4097, high=4095, where="net.cfg:9"):
        topology(tmp_path, text.replace("dilation=2", "dilation=2048"))


@cases("seeded", [False, True])
def test_xnor_convolution_multiplies_signs(seeded: bool, tmp_path: Path) -> None:
    first = "[convolutional]\nfilters=5\nsize=1\nactivation=linear\n"
    text = NET + first + "[convolutional]\nxnor=1\nbin_output=1\nfilters=3\nsize=3\npad=1\nactivation=linear\n"
    network, numbers = with_random_weights(tmp_path, text + "[route]\nlayers=1\n")
    if seeded:
        network = read_darknet(tmp_path / "net.cfg", None, weight_source=zoo.seeded(1))
    outputs = run_float(network, picture())
    last = as_kind(Convolution, network.nodes[3].op)
    weights = last.weights if seeded else numbers[28:].reshape(3, 5, 3, 3)
    if seeded:
        assert (np.unique(np.abs(weights[0])).size, np.unique(weights[0]).size) == (1, 2)
    means = np.abs(weights).mean(axis=(1, 2, 3), keepdims=True)
    signs = np.where(outputs[1] > 0, np.float32(1), np.float32(-1))
    expected = convolved(signs, np.where(weights > 0, means, -means), 1) + last.bias.reshape(3, 1, 1)
    np.testing.assert_allclose(outputs[3], expected, rtol=1e-5, atol=1e-5)
    assert [node.name for node in network.nodes] == ["input", "conv1", "sign1", "conv2"]


def test_reorg3d_equals_darknet_loop(tmp_path: Path) -> None:
    """Compare with the loop of reorg_cpu in darknet's src/blas.c, with the sizes that forward_reorg_layer passes."""
    network = topology(tmp_path, NET + "[reorg3d]\nstride=2\n")
    memory, expected = picture().ravel(), np.zeros(4 * 6 * 8, np.float32)
    for k, j, i in np.ndindex(16, 3, 4):
        c2, offset = k % 4, k // 4
        w2, h2 = i * 2 + offset % 2, j * 2 + offset // 2
        expected[i + 4 * (j + 3 * k)] = memory[w2 + 8 * (h2 + 6 * c2)]
    np.testing.assert_array_equal(run_float(network, picture())[-1].ravel(), expected)


def test_softmax_with_temperature_divides_its_input(tmp_path: Path) -> None:
    text = NET + "[avg]\n[softmax]\ntemperature=3\n[route]\nlayers=0,1\n"
    network = topology(tmp_path, text)
    outputs = run_float(network, picture())
    means = picture().mean(axis=(1, 2))
    powers = np.exp(means / 3)
    np.testing.assert_allclose(outputs[-1].ravel(), [*means, *(powers / powers.sum())], rtol=1e-5)
    with raises(RangeError, what="temperature of [softmax]", got=0.0, low=0.001, high=1000.0, where="net.cfg:7"):
        topology(tmp_path, text.replace("=3", "=0"))
