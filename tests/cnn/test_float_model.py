from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from boards.errors import ChoiceError, ShapeError
from cnn.activations import activate
from cnn.darknet.files import read_darknet, read_topology
from cnn.float_model import run_float
from cnn.maps import FloatArray
from cnn.network import Network, Node
from cnn.ops import BatchNorm, Convolution, Dense
from cnn.zoo import seeded
from tests.support.errors import raises
from tests.support.kinds import as_kind


def network_of(tmp_path: Path, layers: str, channels: int = 4, height: int = 9, width: int = 7) -> Network:
    cfg = tmp_path / "net.cfg"
    cfg.write_text(f"[net]\nwidth={width}\nheight={height}\nchannels={channels}\n{layers}")
    return seeded(5)(read_topology(cfg))


def picture_for(network: Network) -> FloatArray:
    shape = network.input_shape
    random = np.random.default_rng(3)
    return random.random((shape.channels, shape.height, shape.width), dtype=np.float32)


def slow_convolution(x: FloatArray, op: Convolution, height: int, width: int) -> np.ndarray:
    """Compute the definition for one output at a time, in float64, without batch norm and bias."""
    filters, channels, high, wide = op.weights.shape
    p = op.padding
    padded = np.pad(x.astype(np.float64), ((0, 0), (p.top, p.bottom), (p.left, p.right)))
    result = np.zeros((filters, height, width))
    for f in range(filters):
        first = f // (filters // op.groups) * channels
        for i in range(height):
            for j in range(width):
                y, z = i * op.stride, j * op.stride
                window = padded[first : first + channels, y : y + high, z : z + wide]
                result[f, i, j] = (window * op.weights[f]).sum()
    return result


CONVOLUTIONS = (
    "filters=6\nsize=3\nstride=1\npad=1",
    "filters=6\nsize=3\nstride=2\npad=1",
    "filters=6\nsize=1\nstride=1",
    "filters=8\nsize=3\nstride=1\npad=1\ngroups=4",
    "filters=8\nsize=5\nstride=3\npadding=1\ngroups=2",
)


def test_convolution_equals_its_definition(tmp_path: Path) -> None:
    for options, normed in itertools.product(CONVOLUTIONS, (0, 1)):
        text = f"[convolutional]\n{options}\nactivation=linear\nbatch_normalize={normed}\n"
        network = network_of(tmp_path, text)
        node, x = network.nodes[1], picture_for(network)
        op = as_kind(Convolution, node.op)
        expected = slow_convolution(x, op, node.shape.height, node.shape.width)
        assert (op.batch_norm is not None) == bool(normed)
        if isinstance(norm := op.batch_norm, BatchNorm):
            expected -= norm.mean[:, None, None]
            expected *= (norm.scale / np.sqrt(norm.variance.astype(np.float64) + norm.epsilon))[:, None, None]
        expected += op.bias[:, None, None]
        found = run_float(network, x)[1]
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5, err_msg=text)


def test_convolution_in_several_row_blocks_equals_its_definition(tmp_path: Path) -> None:
    text = "[convolutional]\nfilters=3\nsize=3\nstride=2\npad=1\nactivation=linear\n"
    network = network_of(tmp_path, text, channels=40, height=161, width=150)
    node, x = network.nodes[1], picture_for(network)
    assert isinstance(node.op, Convolution)
    expected = slow_convolution(x, node.op, 81, 75) + node.op.bias[:, None, None]
    np.testing.assert_allclose(run_float(network, x)[1], expected, rtol=1e-4, atol=1e-4)


def test_activation_equals_its_definition() -> None:
    x = np.array([-200, -1, 0, 1, 7, 200], np.float32)
    expected: dict[str, list[float]] = {
        "linear": [-200, -1, 0, 1, 7, 200],
        "leaky": [-20, -0.1, 0, 1, 7, 200],
        "relu": [0, 0, 0, 1, 7, 200],
        "relu6": [0, 0, 0, 1, 6, 6],
    }
    for name, values in expected.items():
        np.testing.assert_allclose(activate(x.copy(), name), values, rtol=1e-5, atol=1e-7, err_msg=name)


def test_max_pool_padding_is_never_the_maximum(tmp_path: Path) -> None:
    network = network_of(tmp_path, "[maxpool]\nsize=2\nstride=1\n", channels=1, height=2, width=2)
    x = np.array([[[-4, -3], [-2, -5]]], np.float32)
    assert run_float(network, x)[1].tolist() == [[[-2, -3], [-2, -5]]]


def slow_reorg(x: FloatArray, stride: int) -> FloatArray:
    """Compute reorg_cpu of darknet's src/blas.c with forward = 0, by the indices as written there."""
    c, h, w = x.shape
    source, result = x.reshape(-1), np.empty(x.size, np.float32)
    for k in range(c):
        for j in range(h):
            for i in range(w):
                offset, c2 = divmod(k, c // stride**2)
                w2, h2 = i * stride + offset % stride, j * stride + offset // stride
                result[i + w * (j + h * k)] = source[w2 + w * stride * (h2 + h * stride * c2)]
    return result.reshape(c * stride**2, h // stride, w // stride)


def test_reorg_equals_darknet(tmp_path: Path) -> None:
    network = network_of(tmp_path, "[reorg]\nstride=2\n", channels=8, height=6, width=4)
    x = picture_for(network)
    np.testing.assert_array_equal(run_float(network, x)[1], slow_reorg(x, 2))


def test_upsample_route_slice_add_and_average_equal_numpy(tmp_path: Path) -> None:
    text = "[upsample]\nstride=2\nscale=3\n[route]\nlayers=0,0\n"
    text += "[route]\nlayers=1\ngroups=4\ngroup_id=1\n[shortcut]\nfrom=-1\nactivation=relu6\n"
    text += "[avgpool]\n[softmax]\n"
    network = network_of(tmp_path, text)
    x = picture_for(network)
    up, joined, part, total, average, shares = run_float(network, x)[1:]
    np.testing.assert_array_equal(up[:, 1::2, ::2], x * np.float32(3))
    np.testing.assert_array_equal(joined, np.concatenate([up, up]))
    np.testing.assert_array_equal(part, up[2:4])
    np.testing.assert_array_equal(total, np.minimum(part + part, 6))
    np.testing.assert_allclose(average[:, 0, 0], total.mean(axis=(1, 2)), rtol=1e-5)
    powers = np.exp(average)
    np.testing.assert_allclose(shares, powers / powers.sum(), rtol=1e-5)


def test_dense_reads_channels_first(tmp_path: Path) -> None:
    network = network_of(tmp_path, "[connected]\noutput=5\nactivation=linear\n")
    op, x = as_kind(Dense, network.nodes[1].op), picture_for(network)
    expected = op.weights @ x.reshape(-1) + op.bias
    np.testing.assert_allclose(run_float(network, x)[1].reshape(-1), expected, rtol=1e-5, atol=1e-6)


def test_image_of_wrong_type_or_shape_is_refused(tmp_path: Path) -> None:
    network = network_of(tmp_path, "[avgpool]\n")
    required = "type float32 and shape 4×9×7"
    with raises(ShapeError, what="the picture for 'net'", got="type float64 and shape 4×9×7", required=required):
        run_float(network, np.zeros((4, 9, 7)))  # type: ignore[arg-type]  # the check that is tested
    with raises(ShapeError, got="type float32 and shape 9×7×4", required=required):
        run_float(network, np.zeros((9, 7, 4), np.float32))


def test_unknown_activation_is_refused() -> None:
    with raises(ChoiceError, what="the activation", got="rrelu"):
        activate(np.zeros(3, np.float32), "rrelu")


def test_outputs_do_not_share_memory_with_the_image(tmp_path: Path) -> None:
    network = network_of(tmp_path, "[maxpool]\nsize=1\nstride=1\n")
    x = picture_for(network)
    before = x.copy()
    run_float(network, x)[0][:] = 0
    np.testing.assert_array_equal(x, before)


def corner_aligned(picture: FloatArray, height: int, width: int) -> FloatArray:
    """Resize an image of shape (rows, columns, 3) as darknet's resize_image does: bilinear, with aligned corners.

    Returns:
        A float32 array of shape (3, height, width).
    """

    def along(array: FloatArray, size: int) -> FloatArray:
        at = np.arange(size, dtype=np.float32) * np.float32((array.shape[0] - 1) / (size - 1))
        low = np.minimum(at.astype(int), array.shape[0] - 2)
        part = (at - low)[:, None, None].astype(np.float32)
        return np.asarray((1 - part) * array[low] + part * array[low + 1])

    wide = along(picture.transpose(1, 0, 2), width).transpose(1, 0, 2)
    return np.ascontiguousarray(along(wide, height).transpose(2, 0, 1), dtype=np.float32)


@pytest.mark.shared
def test_layers_of_a_trained_network_equal_recorded_values(shared: Path) -> None:
    data = shared / "data"
    stem = "yolo-lite-voc-trial3-noBatch"
    network = read_darknet(data / f"networks/{stem}.cfg", data / f"networks/{stem}.weights")
    with np.load(data / f"expected/{stem}_dog_224_layers.npz", allow_pickle=False) as file:
        expected = [file[key][0] for key in file.files]
    dog = np.asarray(Image.open(data / "pictures/dog.jpg").convert("RGB"), np.float32) / np.float32(255)
    np.testing.assert_allclose(corner_aligned(dog, 224, 224), expected[0], atol=2e-4)
    found = run_float(network, np.ascontiguousarray(expected[0]))
    assert len(found) == len(expected)
    for node, ours, theirs in zip(network.nodes, found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-5, err_msg=node.name)


def with_root(network: Network, root: Callable[[np.ndarray], np.ndarray]) -> Network:
    """Return the same network with batch norms that divide by ``root(variance)``."""

    def changed(node: Node) -> Node:
        if not isinstance(node.op, Convolution) or node.op.batch_norm is None:
            return node
        norm = node.op.batch_norm
        variance = root(norm.variance.astype(np.float64)) ** 2
        norm = replace(norm, variance=variance.astype(np.float32), epsilon=0.0)
        return replace(node, op=replace(node.op, batch_norm=norm))

    return replace(network, nodes=tuple(changed(node) for node in network.nodes))


@pytest.mark.shared
def test_epsilon_approximates_darknet_formula(shared: Path) -> None:
    """Compare with darknet's formula (x − mean) / (sqrt(variance) + 1e-6); see cnn.darknet.layers."""
    data = shared / "data"
    stem = "yolo-lite-voc-trial3"
    network = read_darknet(data / f"networks/{stem}.cfg", data / f"networks/{stem}.weights")
    with np.load(data / f"expected/{stem}-noBatch_dog_224_layers.npz", allow_pickle=False) as file:
        x = np.ascontiguousarray(file["input"][0])
    darknets = run_float(with_root(network, lambda v: np.sqrt(v) + 1e-6), x)[-1]
    others = run_float(with_root(network, lambda v: np.sqrt(v + 1e-5)), x)[-1]
    ours = np.abs(run_float(network, x)[-1] - darknets).max() / np.abs(darknets).max()
    theirs = np.abs(others - darknets).max() / np.abs(darknets).max()
    assert ours < 2e-5
    assert ours * 4 < theirs
