"""Tests of shortcuts of different shapes, of products of maps and of cropped images.

The expected values come from darknet's loops, which are written out here.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from boards.errors import RangeError, ShapeError, UnsupportedError
from cnn import zoo
from cnn.darknet.files import read_darknet
from cnn.float_model import run_float
from cnn.maps import FloatArray
from tests.support.cases import cases
from tests.support.darknet import topology
from tests.support.errors import check_refusals

NET = "[net]\nwidth=16\nheight=8\nchannels=3\n"


def convolution(filters: int, stride: int = 1) -> str:
    return f"[convolutional]\nfilters={filters}\nsize=3\npad=1\nstride={stride}\nactivation=linear\n"


def shortcut(out: FloatArray, add: FloatArray) -> FloatArray:
    """Add ``add`` to ``out`` by the loop of shortcut_cpu in darknet's src/blas.c, for one image."""
    result, stride = out.copy(), add.shape[1] // out.shape[1]
    for channel in range(min(len(out), len(add))):
        for row in range(out.shape[1]):
            for column in range(out.shape[2]):
                result[channel, row, column] += add[channel, row * stride, column * stride]
    return np.asarray(result, np.float32)


ACTIVATIONS: dict[str, Callable[[FloatArray], Any]] = {
    "linear": lambda x: x,
    "leaky": lambda x: np.where(x < 0, 0.1 * x, x),
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "tanh": np.tanh,
}


@cases("activation", ACTIVATIONS)
@cases("first, second, stride", [(4, 7, 1), (7, 4, 1), (4, 7, 2), (7, 4, 2), (5, 5, 2)])
def test_shortcut_adds_the_common_channels_and_positions(
    first: int, second: int, stride: int, activation: str, tmp_path: Path
) -> None:
    text = NET + convolution(first) + convolution(second, stride) + f"[shortcut]\nfrom=-2\nactivation={activation}\n"
    (tmp_path / "net.cfg").write_text(text + convolution(3))
    network = read_darknet(tmp_path / "net.cfg", None, weight_source=zoo.seeded(1))
    outputs = run_float(network, np.random.default_rng(2).random((3, 8, 16), np.float32))
    maps = {node.name: output for node, output in zip(network.nodes, outputs, strict=True)}
    expected = ACTIVATIONS[activation](shortcut(maps["conv2"], maps["conv1"]))
    last = network.nodes[-1]
    np.testing.assert_allclose(outputs[last.inputs[0]], expected, rtol=1e-6, atol=1e-6)


def test_shortcut_counts_as_one_layer_for_routes(tmp_path: Path) -> None:
    text = NET + convolution(4) + convolution(7, 2) + "[shortcut]\nfrom=-2\nactivation=leaky\n[route]\nlayers=2\n"
    network = topology(tmp_path, text + convolution(3) + "[route]\nlayers=1,3\n")
    names = [network.nodes[i].name for i in network.nodes[-1].inputs]
    assert names == ["conv2", "conv3"] or names == ["conv2", "leaky_relu1"]


@cases("activation", ACTIVATIONS)
@cases("section", ["sam", "scale_channels"])
def test_sam_and_scale_channels_multiply_maps(section: str, activation: str, tmp_path: Path) -> None:
    """Compare with the formulas of darknet's forward_sam_layer and forward_scale_channels_layer."""
    first = "[convolutional]\nfilters=4\nsize=3\npad=1\nstride=1\nactivation=linear\n"
    second = "[avgpool]\n" * (section == "scale_channels") + "[convolutional]\nfilters=4\nsize=1\nactivation=tanh\n"
    layers = f"[{section}]\nfrom=0\nactivation={activation}\n[route]\nlayers=-1,0\n"
    (tmp_path / "net.cfg").write_text(NET + first + second + layers)
    network = read_darknet(tmp_path / "net.cfg", None, weight_source=zoo.seeded(1))
    outputs = run_float(network, np.random.default_rng(2).random((3, 8, 16), np.float32))
    maps = {node.name: output for node, output in zip(network.nodes, outputs, strict=True)}
    expected = ACTIVATIONS[activation](maps["conv1"] * maps["tanh1"])
    np.testing.assert_allclose(maps["route1"], np.concatenate([expected, maps["conv1"]]), rtol=1e-5, atol=1e-6)


def test_sam_and_scale_channels_of_unequal_shapes_are_refused(tmp_path: Path) -> None:
    check_refusals(
        lambda text: topology(tmp_path, NET + convolution(4) + convolution(5) + text),
        [
            ("[sam]\nfrom=0\n", ShapeError, {"got": "shape 5×8×16", "required": "shape 4×8×16", "where": "net.cfg:18"}),
            ("[scale_channels]\nfrom=0\n", ShapeError, {"got": "shape 5×8×16", "required": "shape 4×1×1"}),
            ("[sam]\nfrom=0,1\n", RangeError, {"what": "the number of layers that [sam] multiplies by", "got": 2}),
            ("[sam]\nfrom=7\n", RangeError, {"what": "from of [sam]", "got": 7, "low": -2, "high": 1}),
            ("[scale_channels]\nscale_wh=1\nfrom=0\n", UnsupportedError, {"subject": "scale_wh=1 of [scale_channels]"}),
        ],
    )


def test_crop_sets_the_input_shape(tmp_path: Path) -> None:
    text = NET + "[crop]\ncrop_width=12\ncrop_height=6\nflip=1\n{}" + convolution(2) + "[route]\nlayers=0\n"
    (tmp_path / "net.cfg").write_text(text.format(""))
    network = read_darknet(tmp_path / "net.cfg", None, weight_source=zoo.seeded(1))
    assert str(network.input_shape) == "3×6×12"
    picture = np.random.default_rng(2).random((3, 6, 12), np.float32)
    np.testing.assert_allclose(run_float(network, picture)[1], 2 * picture - 1, atol=1e-6)
    plain = topology(tmp_path, text.format("noadjust=1\n"))
    assert [node.name for node in plain.nodes] == ["input", "conv1"]
