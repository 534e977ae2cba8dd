"""Tests that GELU written with elementary operators, as exporters do, becomes one function, and near misses do not."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from cnn.network import Network
from cnn.onnx.network import network_of
from cnn.ops import Activate
from tests.support.cases import cases
from tests.support.onnx.networks import check_against_runtime, convolved, pixels
from tests.support.onnx.writer import Writer

Form = Callable[[Writer, str], str]
"""A function that writes operators after a tensor and returns their output."""

ROOT, KAPPA, BETA = math.sqrt(2), 0.044715, math.sqrt(2 / math.pi)


class Parts:
    """Writer of operators by name, with tensors and numbers as inputs."""

    def __init__(self, writer: Writer, kind: type = np.float32) -> None:
        self._writer, self._kind = writer, kind

    def __getattr__(self, kind: str) -> Callable[..., str]:
        def put(*inputs: str | float) -> str:
            names = [i if isinstance(i, str) else self._writer.constant(i, self._kind) for i in inputs]
            return self._writer.put(kind, names)

        return put


def pytorch(writer: Writer, x: str) -> str:
    """Write torch.nn.GELU() as exported before opset 20."""
    put = Parts(writer)
    return put.Mul(put.Mul(x, put.Add(put.Erf(put.Div(x, ROOT)), 1.0)), 0.5)


def tensorflow(writer: Writer, x: str) -> str:
    """Write tf.nn.gelu as tf2onnx exports it."""
    put = Parts(writer)
    return put.Mul(put.Mul(0.5, x), put.Add(1.0, put.Erf(put.Div(x, ROOT))))


def keras(writer: Writer, x: str) -> str:
    """Write the cumulative distribution first, and a factor instead of a divisor."""
    put = Parts(writer)
    return put.Mul(x, put.Mul(put.Add(put.Erf(put.Mul(x, 1 / ROOT)), 1.0), 0.5))


def halved_at_the_end(writer: Writer, x: str) -> str:
    put = Parts(writer)
    return put.Div(put.Mul(put.Add(put.Erf(put.Mul(1 / ROOT, x)), 1.0), x), 2.0)


def with_computed_root(writer: Writer, x: str) -> str:
    """Write the root as an operator on a constant."""
    put = Parts(writer)
    root = writer.put("Sqrt", [writer.constant(2.0)])
    return put.Mul(put.Mul(x, put.Add(put.Erf(put.Div(x, root)), 1.0)), 0.5)


def with_constants_of_16_bits(writer: Writer, x: str) -> str:
    put = Parts(writer)
    numbers = (float(np.float16(ROOT)), 1.0, 0.5)
    return put.Mul(put.Mul(x, put.Add(put.Erf(put.Div(x, numbers[0])), numbers[1])), numbers[2])


def by_tanh(writer: Writer, x: str) -> str:
    """Write torch.nn.GELU("tanh") with x³ as two products."""
    put = Parts(writer)
    inner = put.Mul(put.Add(x, put.Mul(put.Mul(put.Mul(x, x), x), KAPPA)), BETA)
    return put.Mul(put.Mul(0.5, x), put.Add(put.Tanh(inner), 1.0))


def by_tanh_of_a_power(writer: Writer, x: str) -> str:
    """Write tf.nn.gelu(approximate=True)."""
    put = Parts(writer)
    inner = put.Mul(BETA, put.Add(x, put.Mul(KAPPA, put.Pow(x, 3.0))))
    return put.Mul(0.5, put.Mul(x, put.Add(1.0, put.Tanh(inner))))


def by_tanh_factored(writer: Writer, x: str) -> str:
    """Write x · (1 + κ · x²), as the fast form of Hugging Face's NewGELU does."""
    put = Parts(writer)
    inner = put.Mul(put.Mul(x, BETA), put.Add(1.0, put.Mul(put.Mul(x, KAPPA), x)))
    return put.Mul(put.Mul(x, 0.5), put.Add(1.0, put.Tanh(inner)))


BY_ERF: tuple[Form, ...] = (pytorch, tensorflow, keras, halved_at_the_end, with_computed_root)
BY_TANH: tuple[Form, ...] = (by_tanh, by_tanh_of_a_power, by_tanh_factored)


def after_a_convolution(form: Form) -> Network:
    """Read a convolution followed by the form, and compare its outputs with onnxruntime's."""
    writer = Writer(13)
    model = writer.model([form(writer, convolved(writer, "picture", 3, 4))], (1, 3, 14, 18))
    return check_against_runtime(model, pixels(3, 14, 18))


@cases("form", [*BY_ERF, *BY_TANH])
def test_gelu_written_out_becomes_one_layer(form: Form) -> None:
    network = after_a_convolution(form)
    assert [(node.name, node.op) for node in network.nodes[2:]] == [
        ("gelu1", Activate("gelu")) if form in BY_ERF else ("gelu_tanh1", Activate("gelu_tanh"))
    ]


def test_gelu_with_constants_of_16_bits_becomes_one_layer() -> None:
    writer = Writer()
    network = network_of(writer.model([with_constants_of_16_bits(writer, "picture")]), "net.onnx", "net")
    assert [node.op for node in network.nodes[1:]] == [Activate("gelu")]


def test_consecutive_gelus_become_separate_layers() -> None:
    network = after_a_convolution(lambda writer, x: by_tanh(writer, pytorch(writer, x)))
    assert [node.name for node in network.nodes[2:]] == ["gelu1", "gelu_tanh1"]


def test_gelu_part_with_another_reader_stays_a_layer() -> None:
    """Read the sum 1 + erf a second time, so that it is also a layer."""

    def form(writer: Writer, x: str) -> str:
        put = Parts(writer)
        total = put.Add(put.Erf(put.Div(x, ROOT)), 1.0)
        return put.Add(put.Mul(put.Mul(x, total), 0.5), total)

    kinds = [node.name for node in after_a_convolution(form).nodes]
    assert {"gelu1", "erf1"} <= set(kinds)


def off_by_a_constant(writer: Writer, x: str) -> str:
    put = Parts(writer)
    return put.Mul(put.Mul(x, put.Add(put.Erf(put.Div(x, 1.5)), 1.0)), 0.5)


def from_two_tensors(writer: Writer, x: str) -> str:
    put = Parts(writer)
    return put.Mul(put.Mul(convolved(writer, "picture", 3, 4), put.Add(put.Erf(put.Div(x, ROOT)), 1.0)), 0.5)


def with_a_factor_per_channel(writer: Writer, x: str) -> str:
    put = Parts(writer)
    halves = writer.constant(np.array([0.5, 0.5, 0.5, 0.6]).reshape(1, 4, 1, 1))
    return put.Mul(put.Mul(x, put.Add(put.Erf(put.Div(x, ROOT)), 1.0)), halves)


@cases("form", [off_by_a_constant, from_two_tensors, with_a_factor_per_channel])
def test_near_gelu_stays_separate_layers(form: Form) -> None:
    """Check also that the layers give onnxruntime's outputs."""
    network = after_a_convolution(form)
    assert Activate("erf") in [node.op for node in network.nodes]
    assert not [node.name for node in network.nodes if node.name.startswith("gelu")]
