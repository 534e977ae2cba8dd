"""Tests of images that a file stores without a channel side, with channels last, or as a row of values.

Tests also constants that are applied to a flattened map.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from cnn.float_model import run_float
from cnn.integer_model import run_integer
from cnn.maps import Shape
from cnn.onnx.inputs import Preprocessing
from cnn.onnx.network import network_of, preprocessed, read_model, read_onnx
from cnn.ops import Convolution
from tests.support.cases import cases
from tests.support.onnx.quantising import Form, quantised, steps_on_noise
from tests.support.onnx.trained import DOMAIN, Trained
from tests.support.onnx.writer import FIRST, LAST, Writer

RANDOM = np.random.default_rng(11)
View = Callable[[Writer, str], str]
"""A function that writes operators on the input before a convolution reads it."""


def reshaped(*sides: int) -> View:
    return lambda writer, x: writer.put("Reshape", [x, writer.constant(sides, np.int64)])


def with_axes(kind: str, *axes: int) -> View:
    return lambda writer, x: writer.put(kind, [x, writer.constant(axes, np.int64)])


def turned(order: tuple[int, ...]) -> View:
    return lambda writer, x: writer.put("Transpose", [x], perm=order)


def by(kind: str, value: float) -> View:
    return lambda writer, x: writer.put(kind, [x, writer.constant(value)])


def padded(*pads: int) -> View:
    return lambda writer, x: writer.put("Pad", [x, writer.constant(pads, np.int64)])


def measured(writer: Writer, x: str) -> str:
    """Write x.view(x.size(0), 1, 6, 8) as PyTorch exports it: the batch is read from the input's shape."""
    batch = writer.put("Gather", [writer.put("Shape", [x]), writer.constant([0], np.int64)])
    sides = writer.put("Concat", [batch, writer.constant([1, 6, 8], np.int64)], axis=0)
    return writer.put("Reshape", [x, sides])


def classifier(sides: tuple[int | str, ...], channels: int, *views: View) -> Any:
    """Write two convolutions, a pool and a matrix product after these views."""
    writer, name = Writer(), "picture"
    for view in views:
        name = view(writer, name)
    weights = [writer.constant(RANDOM.normal(0, 0.3, shape)) for shape in ((4, channels, 3, 3), (5, 4, 3, 3), (5, 3))]
    name = writer.put("Relu", [writer.put("Conv", [name, weights[0]], pads=[1] * 4)])
    name = writer.put("Conv", [writer.put("MaxPool", [name], kernel_shape=[2, 2]), weights[1]])
    name = writer.put("Flatten", [writer.put("GlobalAveragePool", [name])])
    return writer.model([writer.put("MatMul", [name, weights[2]])], sides)


GREY = Shape(1, 6, 8)
PICTURES: dict[str, tuple[tuple[int | str, ...], Shape, tuple[View, ...]]] = {
    "one channel last, by a Reshape": (("n", 6, 8, 1), GREY, (reshaped(-1, 1, 6, 8),)),
    "one channel last, by a Transpose": (("n", 6, 8, 1), GREY, (turned(FIRST),)),
    "one channel last, divided before": (("n", 6, 8, 1), GREY, (by("Div", 0.5), reshaped(-1, 1, 6, 8))),
    "one channel last, padded before": (("n", 6, 8, 1), GREY, (padded(0, 1, 2, 0, 0, 1, 0, 0), reshaped(-1, 1, 8, 10))),
    "one channel last, squeezed": (("n", 6, 8, 1), GREY, (with_axes("Squeeze", 3), with_axes("Unsqueeze", 1))),
    "no channel, an Unsqueeze": ((1, 6, 8), GREY, (with_axes("Unsqueeze", 1),)),
    "no channel, an Unsqueeze after them": (("n", 6, 8), GREY, (with_axes("Unsqueeze", -1), turned(FIRST))),
    "no channel, a Reshape": ((1, 6, 8), GREY, (reshaped(-1, 1, 6, 8),)),
    "no channel, measured": (("n", 6, 8), GREY, (measured,)),
    "no channel, numbers before": (
        (1, 6, 8),
        GREY,
        (by("Sub", 0.5), by("Mul", 2), by("Max", -0.3), reshaped(1, 1, 6, 8)),
    ),
    "a row of one channel": ((1, 48), GREY, (reshaped(-1, 1, 6, 8),)),
    "a row, numbers before": (("n", 48), GREY, (by("Sub", 0.5), by("Div", 0.25), reshaped(-1, 1, 6, 8))),
    "a row of three channels": ((1, 144), Shape(3, 6, 8), (reshaped(-1, 3, 6, 8),)),
    "a row, its channels last": ((1, 144), Shape(3, 6, 8), (reshaped(-1, 6, 8, 3), turned(FIRST))),
    "a row of one channel last": (("n", 48), GREY, (reshaped(-1, 6, 8, 1), by("Add", 0.25), turned(FIRST))),
}


def check_values(model: Any, shape: Shape, last: bool) -> Any:
    """Compare a network of the given input shape with onnxruntime.

    Args:
        model: the model.
        shape: the expected input shape.
        last: whether the file has the channels last.
    """
    network = network_of(model, "net.onnx", "net")
    assert network.input_shape == shape
    picture = np.random.default_rng(4).random((shape.channels, shape.height, shape.width), np.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    sides = [side if isinstance(side, int) else 1 for side in session.get_inputs()[0].shape]
    given = (picture.transpose(1, 2, 0) if last else picture).reshape(sides)
    expected = session.run(None, {"picture": np.ascontiguousarray(given)})[0]
    output = run_float(network, picture)[network.outputs[0]]
    np.testing.assert_allclose(output.ravel(), expected.ravel(), rtol=0, atol=1e-4)
    return network


@cases("name", PICTURES)
def test_image_in_another_view_is_read_as_an_image(name: str) -> None:
    sides, shape, views = PICTURES[name]
    network = check_values(classifier(sides, shape.channels, *views), shape, last="channels last" in name)
    assert len(network.nodes) <= 6 + len([view for view in views if view.__qualname__.startswith(("by.", "padded."))])


def test_grey_image_that_is_only_flattened_is_read() -> None:
    """Write the input of Keras' first examples."""
    writer = Writer()
    flat = writer.put("Reshape", ["picture", writer.constant([-1, 48], np.int64)])
    model = writer.model([writer.put("MatMul", [flat, writer.constant(RANDOM.normal(size=(48, 5)))])], ("n", 6, 8, 1))
    check_values(model, GREY, last=True)


def test_signal_input_stays_a_signal() -> None:
    writer = Writer()
    weights = writer.constant(RANDOM.normal(size=(4, 3, 5)))
    model = writer.model([writer.put("Conv", ["picture", weights])], (1, 3, 20))
    check_values(model, Shape(3, 1, 20), last=False)


def test_reshape_to_one_channel_last_between_layers_equals_onnxruntime() -> None:
    writer = Writer()
    kernels = [writer.constant(RANDOM.normal(0, 0.3, shape)) for shape in ((1, 3, 3, 3), (4, 2, 3, 3))]
    x = writer.put("Conv", ["picture", kernels[0]])
    last = writer.put("Sigmoid", [writer.put("Reshape", [x, writer.constant([-1, 4, 6, 1], np.int64)])])
    other = writer.put("Transpose", [x], perm=LAST)
    joined = writer.put("Concat", [padded(0, 1, 1, 0, 0, 1, 1, 0)(writer, name) for name in (last, other)], axis=3)
    model = writer.model(
        [writer.put("Conv", [writer.put("Transpose", [joined], perm=FIRST), kernels[1]])], (1, 3, 6, 8)
    )
    check_values(model, Shape(3, 6, 8), last=False)


BEHIND = {
    "Mul": [by("Mul", 2)],
    "Mul and Sub": [by("Mul", 2), by("Sub", 1)],
    "Add and Div": [by("Add", 0.5), by("Div", 4)],
    "Max": [by("Max", 0.25)],
    "Neg": [lambda writer, x: writer.put("Neg", [x])],
}


@cases("name", BEHIND)
@cases("layer", [False, True])
def test_constant_after_flatten_equals_onnxruntime(name: str, layer: bool) -> None:
    writer, x = Writer(), "picture"
    if layer:
        x = writer.put(
            "MaxPool", [writer.put("Conv", [x, writer.constant(RANDOM.normal(size=(3, 3, 1, 1)))])], kernel_shape=[1, 1]
        )
    x = writer.put("Flatten", [x])
    for view in BEHIND[name]:
        x = view(writer, x)
    model = writer.model([writer.put("MatMul", [x, writer.constant(RANDOM.normal(size=(144, 4)))])], (1, 3, 6, 8))
    check_values(model, Shape(3, 6, 8), last=False)


def test_grey_image_with_mean_and_std_is_normalised(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    for name in ("no channel, an Unsqueeze", "one channel last, by a Reshape", "a row of one channel"):
        sides, shape, views = PICTURES[name]
        onnx.save(classifier(sides, shape.channels, *views), path)
        plain = read_onnx(path)
        prepared = preprocessed(plain.data, "net", Preprocessing((0.25,), (0.5,))).network
        picture = np.random.default_rng(4).random((1, 6, 8), np.float32)
        assert isinstance(prepared.nodes[1].op, Convolution)
        ours = run_float(prepared, picture)[prepared.outputs[0]]
        theirs = run_float(plain.network, (picture - np.float32(0.25)) / np.float32(0.5))[plain.network.outputs[0]]
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


def test_quantised_file_of_a_grey_image_is_within_a_step_of_onnxruntime(tmp_path: Path) -> None:
    model = classifier((1, 6, 8, 1), 1, by("Sub", 0.5), reshaped(-1, 1, 6, 8))
    steps = steps_on_noise(quantised(model, tmp_path, Form(), (1, 6, 8, 1)))
    assert max(steps.values()) <= 1
    assert len(steps) >= 4


def signs_of(writer: Writer, x: str) -> str:
    return writer.put("BipolarQuant", [x, writer.constant(1)], domain=DOMAIN)


def test_finn_network_of_signs_is_exact() -> None:
    """Write FINN's TFC: a flattened image is multiplied by 2, reduced by 1 and replaced by its signs."""
    writer, weights = Trained(), [np.where(RANDOM.random(sides) < 0.5, -1, 1) for sides in ((48, 9), (9, 4))]
    flat = writer.put("Reshape", ["picture", writer.constant([1, 48], np.int64)])
    x = signs_of(writer, by("Sub", 1)(writer, by("Mul", 2)(writer, flat)))
    norm = [writer.constant(values) for values in (np.full(9, 0.5), np.linspace(-1.1, 1.2, 9), np.zeros(9), np.ones(9))]
    x = writer.put("MatMul", [x, signs_of(writer, writer.constant(weights[0]))])
    x = signs_of(writer, writer.put("BatchNormalization", [x, *norm], epsilon=1e-5))
    x = by("Mul", 0.0625)(writer, writer.put("MatMul", [x, signs_of(writer, writer.constant(weights[1]))]))
    network = read_model(writer.model([x], (1, 1, 6, 8)), "tfc.onnx", "tfc").quantized
    assert network is not None
    for seed in range(4):
        picture = np.random.default_rng(seed).integers(0, 256, (1, 6, 8), np.uint8)
        signs = np.where(picture.ravel() < 127.5, -1, 1)
        signs = np.where(0.5 * (signs @ weights[0]) + np.linspace(-1.1, 1.2, 9) < 0, -1, 1)
        values = run_integer(network, picture)[-1]
        assert values is not None
        assert values.ravel().tolist() == (signs @ weights[1]).tolist()
        assert network.nodes[-1].type.scale == 0.0625


def signal(sides: tuple[int | str, ...]) -> Any:
    writer = Writer()
    return writer.model([writer.put("Conv", ["picture", writer.constant(RANDOM.normal(size=(4, 3, 5)))])], sides)


SIZED: list[tuple[Any, tuple[int, int], Shape]] = [
    (signal((1, 3, "n")), (20, 1), Shape(3, 1, 20)),
    (signal((1, 3, "n")), (1, 20), Shape(3, 1, 20)),
    (signal((1, 3, 40)), (20, 1), Shape(3, 1, 20)),
    (classifier(("n", "height", "width"), 1, with_axes("Unsqueeze", 1)), (8, 6), GREY),
    (classifier((1, 12, 16), 1, with_axes("Unsqueeze", 1)), (8, 6), GREY),
    (classifier(("n", "height", "width", 1), 1, turned(FIRST)), (8, 6), GREY),
    (classifier(("n", "values"), 1, reshaped(-1, 1, 6, 8)), (48, 1), GREY),
]


def test_size_sets_the_open_sides_of_every_input(tmp_path: Path) -> None:
    for model, size, shape in SIZED:
        onnx.save(model, tmp_path / "net.onnx")
        assert read_onnx(tmp_path / "net.onnx", size).network.input_shape == shape
