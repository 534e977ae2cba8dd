"""Tests of products of two maps: their integers, checks, files, and other programs that compute them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from boards.errors import MismatchError, RangeError, ShapeError
from cnn import zoo
from cnn.darknet.files import read_darknet
from cnn.datatype import TensorType
from cnn.float_model import run_float
from cnn.integer_model import run_integer
from cnn.ops import QMultiply
from cnn.quantisation.calibration import calibrate
from cnn.quantisation.quantise import quantise
from cnn.quantized import QuantizedNetwork
from cnn.quantized_check import check_quantized
from cnn.requantise import Requantiser
from cnn.stored.quantized_file import from_npz, to_npz
from systolic.golden import checksums, golden_files, run_golden
from tests.support.errors import raises
from tests.support.kinds import as_kind
from tests.support.onnx.qonnx_execution import steps_off

CFG = """[net]\nwidth=6\nheight=5\nchannels=3
[convolutional]\nfilters=4\nsize=3\npad=1\nactivation=leaky
[convolutional]\nfilters=4\nsize=1\nactivation=logistic
[sam]\nfrom=-2\nactivation=leaky
[convolutional]\nfilters=2\nsize=1\nactivation=linear
"""
Pixels = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]


@pytest.fixture(scope="module")
def picture() -> Pixels:
    return np.random.default_rng(1).integers(0, 256, (3, 5, 6), np.uint8)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory, picture: Pixels) -> QuantizedNetwork:
    path = tmp_path_factory.mktemp("net") / "net.cfg"
    path.write_text(CFG)
    floats = read_darknet(path, None, weight_source=zoo.seeded(1))
    ranges = calibrate(floats, [picture.astype(np.float32) / np.float32(255)])
    exact = run_float(floats, picture.astype(np.float32) / np.float32(255))
    quantised = quantise(floats, ranges)
    for node, output, integers in zip(quantised.nodes, exact, run_integer(quantised, picture), strict=True):
        assert integers is not None
        assert np.abs(integers * node.type.scale - output).max() < 0.04 * np.abs(output).max()
    return quantised


def test_product_is_requantised(network: QuantizedNetwork, picture: Pixels) -> None:
    outputs = run_integer(network, picture)
    node = network.nodes[4]
    by = as_kind(Requantiser, as_kind(QMultiply, node.op).requantiser)
    first, second = (np.asarray(outputs[i], np.int64) for i in node.inputs)
    total = (first * second + by.bias[:, None, None]).astype(object)
    for place, value in np.ndenumerate(total):
        channel = place[0]
        factor = by.negative[channel] if value < 0 else by.multiplier[channel]
        rounded = (value * int(factor) + (1 << int(by.shift[channel] - 1))) >> int(by.shift[channel])
        assert np.asarray(outputs[4])[place] == min(max(rounded, -128), 127)
    types = [network.nodes[i].type.datatype for i in node.inputs]
    assert as_kind(QMultiply, node.op).accumulator_bound(*types) == 128 * 128


def test_product_survives_files_and_equals_other_programs(
    network: QuantizedNetwork, picture: Pixels, tmp_path: Path
) -> None:
    again = from_npz(to_npz(network), "net.npz")
    ours = [output for output in run_integer(network, picture) if output is not None]
    for output, theirs in zip(ours, run_integer(again, picture), strict=True):
        np.testing.assert_array_equal(output, theirs)
    (tmp_path / "golden").mkdir()
    for name, data in golden_files(network).items():
        (tmp_path / "golden" / name).write_bytes(data)
    assert run_golden(tmp_path / "golden", picture) == checksums(network, run_integer(network, picture))
    assert steps_off(network, "finn") == steps_off(network, "qonnx") == 0


def test_product_of_wrong_inputs_is_refused(network: QuantizedNetwork) -> None:
    def with_inputs(*inputs: int) -> QuantizedNetwork:
        node = replace(network.nodes[4], inputs=inputs)
        return replace(network, nodes=(*network.nodes[:4], node, *network.nodes[5:]))

    first = network.nodes[4].inputs[0]
    with raises(RangeError, what="the number of inputs of QMultiply", got=1, low=2, high=2):
        check_quantized(with_inputs(first))
    with raises(ShapeError, what="the inputs of a product", got="4×5×6, 3×5×6"):
        check_quantized(with_inputs(first, 0))


def test_product_of_a_map_with_a_zero_point_is_refused(network: QuantizedNetwork) -> None:
    node = network.nodes[3]
    shifted = replace(node, type=TensorType(node.type.datatype, node.type.scale, 3))
    with raises(MismatchError, what="the zero points of maps that are multiplied", got=[3, 0]):
        check_quantized(replace(network, nodes=(*network.nodes[:3], shifted, *network.nodes[4:])))
