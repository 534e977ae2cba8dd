"""Tests of the values of activation functions and of their tables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from cnn import zoo
from cnn.activations import FUNCTIONS
from cnn.darknet.files import read_darknet
from cnn.float_model import run_float
from cnn.integer_model import run_integer
from cnn.maps import Shape
from cnn.network import Network
from cnn.ops import Activate, QActivate
from cnn.quantisation.calibration import calibrate
from cnn.quantisation.quantise import quantise, quantise_format
from cnn.stored.quantized_file import from_npz, to_npz
from tests.support import networks
from tests.support.kinds import as_kind


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


BY_MATH: dict[str, Callable[[float], float]] = {
    "abs": abs,
    "affine": lambda x: x,
    "celu": lambda x: max(0, x) + min(0, math.expm1(x)),
    "clip": lambda x: min(max(x, 0), 1),
    "elu": lambda x: x if x >= 0 else math.expm1(x),
    "erf": math.erf,
    "exp": math.exp,
    "gelu": lambda x: x / 2 * (1 + math.erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: x / 2 * (1 + math.tanh(0.7978845608 * (x + 0.044715 * x**3))),
    "hard_mish": lambda x: x if x > 0 else x * x / 2 + x if x > -2 else 0,
    "hard_sigmoid": lambda x: min(max(0.2 * x + 0.5, 0), 1),
    "hard_swish": lambda x: x * min(max(x / 6 + 0.5, 0), 1),
    "hard_tanh_leaking": lambda x: 0.001 * x if x < 0 else 0.001 * (x - 1) + 1 if x > 1 else x,
    "interpolated": lambda x: min(max(x, -1), 1),
    "leaky_relu": lambda x: max(x, 0.01 * x),
    "logistic": _sigmoid,
    "logistic_about_0": lambda x: 2 / (1 + math.exp(-x)) - 1,
    "mish": lambda x: x * math.tanh(math.log1p(math.exp(x))),
    "ramp": lambda x: x * (x > 0) + 0.1 * x,
    "selu": lambda x: 1.0507009873554805 * (x if x >= 0 else 1.6732632423543772 * math.expm1(x)),
    "sigmoid_of_pieces": lambda x: 0.01 * (x + 4) if x < -4 else 0.01 * (x - 4) + 1 if x > 4 else 0.125 * x + 0.5,
    "sign": lambda x: 1 if x > 0 else -1,
    "silu": lambda x: x * _sigmoid(x),
    "softplus": lambda x: math.log1p(math.exp(x)),
    "softsign": lambda x: x / (1 + abs(x)),
    "sqrt": lambda x: math.sqrt(max(x, 0)),
    "stair": lambda x: math.floor(x / 2) if math.floor(x) % 2 == 0 else x - math.floor(x) + math.floor(x / 2),
    "tanh": math.tanh,
    "tanh_softplus": lambda x: math.tanh(math.log1p(math.exp(x))),
    "thresholded_relu": lambda x: x if x > 1 else 0,
}


def test_function_equals_its_formula() -> None:
    x = np.linspace(-9, 9, 181)
    assert BY_MATH.keys() == FUNCTIONS.keys()
    for name, by_math in BY_MATH.items():
        values = FUNCTIONS[name].values(x, *FUNCTIONS[name].defaults)
        np.testing.assert_allclose(values, [by_math(v) for v in x], rtol=0, atol=2e-6, err_msg=name)


def test_function_does_not_overflow() -> None:
    x = np.array([-1e6, 1e6])
    with np.errstate(over="raise", invalid="raise"):
        for name, function in FUNCTIONS.items():
            if name != "abs":
                assert np.isfinite(function.values(x, *function.defaults)).all(), name


def curved(name: str) -> Network:
    random = np.random.default_rng(3)
    six = Shape(8, 6, 6)
    return networks.network(
        Shape(3, 6, 6),
        ("conv1", networks.convolution(random, 3, 8, activation="linear"), [0], six),
        ("curve", Activate(name, FUNCTIONS[name].defaults), [1], six),
        ("conv2", networks.convolution(random, 8, 4, activation="linear"), [2], Shape(4, 6, 6)),
    )


def test_table_equals_the_function_to_half_a_step() -> None:
    for name, bits in itertools.product(FUNCTIONS, (4, 8)):
        network = curved(name)
        pictures = networks.pictures(network.input_shape)
        quantised = quantise_format(network, calibrate(network, pictures, bits=bits), bits)
        before, node = quantised.nodes[1], quantised.nodes[2]
        assert before.type.datatype.bits == bits, name
        table = as_kind(QActivate, node.op).table.values
        inputs = np.arange(before.type.datatype.low, before.type.datatype.high + 1)
        wanted = FUNCTIONS[name].values(inputs * before.type.scale, *FUNCTIONS[name].defaults) / node.type.scale
        wanted = np.clip(wanted, node.type.datatype.low, node.type.datatype.high)
        np.testing.assert_allclose(table, wanted, rtol=0, atol=0.5 + 1e-9, err_msg=f"{name}, {bits} bits")
        picture = (pictures[0] * 255).round().astype(np.uint8)
        first, second = run_integer(quantised, picture)[1:3]
        assert first is not None
        expected = table[first.astype(np.int64) - before.type.datatype.low]
        np.testing.assert_array_equal(second, expected, f"{name}, {bits} bits")


def test_table_survives_writing_and_reading() -> None:
    network = curved("selu")
    data = to_npz(quantise(network, calibrate(network, networks.pictures(network.input_shape))))
    read = from_npz(data)
    assert to_npz(read) == data
    assert as_kind(QActivate, read.nodes[2].op).table.values.shape == (256,)


def test_darknet_layers_keep_their_numbers_after_a_function(tmp_path: Path) -> None:
    cfg = tmp_path / "net.cfg"
    cfg.write_text(
        "[net]\nwidth=4\nheight=4\nchannels=3\n[convolutional]\nfilters=2\nactivation=mish\n[convolutional]\n"
        "filters=2\nactivation=swish\n[shortcut]\nfrom=0\nactivation=logistic\n[route]\nlayers=0,2\n"
    )
    network = read_darknet(cfg, None, weight_source=zoo.seeded(1))
    assert [node.name for node in network.nodes] == [
        *("input", "conv1", "mish1", "conv2", "silu1", "add1", "logistic1", "route1")
    ]
    assert [node.inputs for node in network.nodes[5:]] == [(4, 2), (5,), (2, 6)]
    outputs = run_float(network, np.full((3, 4, 4), 0.5, np.float32))
    np.testing.assert_allclose(outputs[6], 1 / (1 + np.exp(-outputs[5])), rtol=1e-6)
