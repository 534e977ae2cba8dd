"""Float networks in the forms that exporters write, and a comparison with onnxruntime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime

from cnn.float_model import run_float
from cnn.network import Network
from cnn.onnx.network import network_of
from tests.support.onnx.writer import Writer

RANDOM = np.random.default_rng(5)
"""All random weights of these graphs are drawn from this sequence."""


def pixels(*shape: int) -> Any:
    """Return a picture of random values between 0 and 1, the same for each shape."""
    return np.random.default_rng(3).random(shape, np.float32)


def check_against_runtime(model: Any, picture: Any) -> Network:
    """Check every output against onnxruntime, to 1e-4 of its greatest value, and return the network."""
    network = network_of(model, "net.onnx", "net")
    outputs = run_float(network, picture)
    results = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"picture": picture[None]})
    assert len(results) == len(network.outputs)
    for index, expected in zip(network.outputs, results, strict=True):
        np.testing.assert_allclose(
            outputs[index].ravel(), expected.ravel(), rtol=0, atol=1e-4 * max(1.0, np.abs(expected).max())
        )
    return network


JOINS = """[net]\nwidth=16\nheight=16\nchannels=3
[convolutional]\nfilters=8\nsize=3\npad=1\nstride=1\nactivation=relu\nbatch_normalize=1
[maxpool]\nsize=2\nstride=1
[convolutional]\nfilters=8\nsize=1\nactivation=linear\ngroups=2
[shortcut]\nfrom=-3\nactivation=relu
[maxpool]\nsize=2\nstride=2
[upsample]\nstride=2
[route]\nlayers=-1,-3
[route]\nlayers=-1\ngroups=2\ngroup_id=1
[convolutional]\nfilters=6\nsize=3\nstride=2\npad=1\nactivation=relu6
[avgpool]
[connected]\noutput=5\nactivation=logistic
"""
"""This darknet network has shortcuts, routes and groups, and ends with a classifier."""


def convolved(writer: Writer, source: str, channels: int, filters: int, **attributes: Any) -> str:
    """Append a convolution of 3 × 3 with random weights and a bias, and return its output."""
    weights = RANDOM.normal(0, 0.3, (filters, channels // attributes.get("group", 1), 3, 3))
    return writer.put(
        "Conv", [source, writer.constant(weights), writer.constant(RANDOM.normal(size=filters))], **attributes
    )


def _normalised(writer: Writer) -> str:
    mean, deviation = (
        writer.constant(np.reshape(values, (1, 3, 1, 1))) for values in ((0.4, 0.5, 0.6), (0.2, 0.3, 0.25))
    )
    source = writer.put("Div", [writer.put("Sub", ["picture", mean]), deviation])
    return writer.put("Relu", [convolved(writer, source, 3, 4, pads=[1, 1, 1, 1])])


def _padded(writer: Writer) -> str:
    source = writer.put("Pad", ["picture", writer.constant([0, 0, 1, 2, 0, 0, 0, 1], np.int64)])
    return convolved(writer, source, 3, 5, auto_pad="VALID", strides=[2, 2])


def _same_lower(writer: Writer) -> str:
    return convolved(writer, "picture", 3, 6, auto_pad="SAME_LOWER", strides=[2, 2], group=3)


def _dilated(writer: Writer) -> str:
    return convolved(writer, "picture", 3, 4, dilations=[2, 3], pads=[2, 3, 2, 3])


def _standing_alone(writer: Writer) -> str:
    norm = [writer.constant(values) for values in ([1, 2, 3], [0, 1, 0.5], [0.1, 0.2, 0], [1, 0.5, 2])]
    source = writer.put("Relu", [writer.put("BatchNormalization", ["picture", *norm])])
    return writer.put(
        "Add", [writer.put("Mul", [writer.constant(0.5), source]), writer.constant([[[1]], [[2]], [[3]]])]
    )


def scaled(writer: Writer) -> str:
    """Append a factor, an offset and a batch norm after a convolution, which absorbs all of them."""
    factor = writer.constant(RANDOM.random((1, 4, 1, 1)))
    source = writer.put("Add", [writer.put("Mul", [convolved(writer, "picture", 3, 4), factor]), writer.constant(0.25)])
    norm = [writer.constant(values) for values in (np.ones(4), np.zeros(4), np.full(4, 0.1), np.full(4, 2.0))]
    return writer.put("Div", [writer.put("BatchNormalization", [source, *norm]), writer.constant(2)])


def _read_twice(writer: Writer) -> str:
    """Append a convolution with a second reader before its activation, so that it cannot absorb the activation."""
    source = convolved(writer, "picture", 3, 4)
    return writer.put("Add", [writer.put("Relu", [source]), source])


def _read_twice_as(kind: str, *further: Any) -> Callable[[Writer], str]:
    """Return the same graph, but its activation reads the convolution through an operator that only renames it."""

    def graph(writer: Writer) -> str:
        source = convolved(writer, "picture", 3, 4)
        view = writer.put(kind, [source, *(writer.constant(array, np.int64) for array in further)])
        return writer.put("Add", [writer.put("Relu", [view]), source])

    return graph


def _normalised_by_another_name(writer: Writer) -> str:
    source = convolved(writer, "picture", 3, 4)
    norm = [writer.constant(values) for values in (np.full(4, 2.0), np.zeros(4), np.full(4, 0.1), np.ones(4))]
    return writer.put("Add", [writer.put("BatchNormalization", [writer.put("Identity", [source]), *norm]), source])


def _shapes_worked_out(writer: Writer) -> str:
    """Append a flattening as exporters of dynamic shapes write it, with a computed shape."""
    pooled = writer.put(
        "GlobalAveragePool", [writer.put("Slice", ["picture", *(writer.constant([n], np.int64) for n in (0, 2, 1))])]
    )
    batch = writer.put("Gather", [writer.put("Shape", [pooled]), writer.constant(0, np.int64)], axis=0)
    rows = writer.put("Unsqueeze", [batch, writer.constant([0], np.int64)])
    shape = writer.put("Concat", [rows, writer.constant([-1], np.int64)], axis=0)
    flat = writer.put("Reshape", [pooled, shape])
    matrix = writer.put("MatMul", [flat, writer.constant(RANDOM.random((2, 7)))])
    return writer.put("Softmax", [writer.put("Add", [matrix, writer.constant(np.arange(7))])], axis=1)


def _parts(writer: Writer) -> str:
    first = writer.put("Split", ["picture", writer.constant([1, 2], np.int64)], outputs=2, axis=1)
    return writer.put("Concat", [convolved(writer, first + "_", 2, 3), convolved(writer, first, 1, 2)], axis=1)


def _rounded_up(writer: Writer) -> str:
    return writer.put("MaxPool", ["picture"], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)


def _of_one_value(writer: Writer) -> str:
    """Append an AdaptiveAvgPool2d as it is exported if the map already has the pool's size."""
    return writer.put("AveragePool", [convolved(writer, "picture", 3, 4)], kernel_shape=[1, 1], strides=[1, 1])


def _mean(writer: Writer) -> str:
    return writer.put("ReduceMean", [convolved(writer, "picture", 3, 4)], axes=[-1, 2], keepdims=0)


def _curved(kind: str, **attributes: Any) -> Callable[[Writer], str]:
    """Return a graph of a convolution and a function that becomes a table."""
    return lambda writer: writer.put(kind, [convolved(writer, "picture", 3, 4)], **attributes)


CURVED = (
    _curved("Abs"),
    _curved("Celu", alpha=0.7),
    _curved("Elu", alpha=0.5),
    _curved("Gelu"),
    _curved("Gelu", approximate="tanh"),
    _curved("HardSigmoid", alpha=0.3),
    _curved("HardSwish"),
    _curved("LeakyRelu", alpha=0.25),
    _curved("Mish"),
    _curved("Selu"),
    _curved("Sigmoid"),
    _curved("Softplus"),
    _curved("Softsign"),
    _curved("Tanh"),
    _curved("ThresholdedRelu", alpha=0.2),
)
"""Each of these graphs has a function that becomes a table, after a convolution."""


def gated(kind: str) -> Callable[[Writer], str]:
    """Return a graph of x · f(x), as exporters write SiLU and hard swish."""

    def graph(writer: Writer) -> str:
        source = convolved(writer, "picture", 3, 4)
        return writer.put("Mul", [source, writer.put(kind, [source])])

    return graph


def mish(writer: Writer) -> str:
    """Append the operators that exporters of older opsets write for mish."""
    source = convolved(writer, "picture", 3, 4)
    return writer.put("Mul", [writer.put("Tanh", [writer.put("Softplus", [source])]), source])


def _one_slope(writer: Writer) -> str:
    return writer.put("PRelu", [convolved(writer, "picture", 3, 4), writer.constant(np.full((1, 1, 1), 0.3))])


def _cut_off(writer: Writer) -> str:
    source = writer.put("Clip", [convolved(writer, "picture", 3, 4), writer.constant(-0.5), writer.constant(1)])
    return writer.put("Clip", [source, "", writer.constant(0.75)])


def _positive(writer: Writer) -> str:
    """Append a ReLU after a sigmoid. It has no effect, because its input is never negative."""
    return writer.put("Relu", [writer.put("Sigmoid", [convolved(writer, "picture", 3, 4)])])


GRAPHS: tuple[Callable[[Writer], str], ...] = (
    _normalised,
    _padded,
    _same_lower,
    _dilated,
    _standing_alone,
    scaled,
    _read_twice,
    _read_twice_as("Identity"),
    _read_twice_as("Reshape", [1, 4, 12, 16]),
    _normalised_by_another_name,
    _shapes_worked_out,
    _parts,
    _rounded_up,
    _of_one_value,
    _mean,
    *CURVED,
    gated("Sigmoid"),
    gated("HardSigmoid"),
    mish,
    _one_slope,
    _cut_off,
    _positive,
)
"""Each of these functions writes a graph as exporters do, and returns the name of its output."""
