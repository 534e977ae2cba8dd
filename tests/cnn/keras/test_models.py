"""Tests that Keras models become networks with equal outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import systolic
from boards.errors import (
    ChoiceError,
    ConflictError,
    InvalidValueError,
    SeveralFaultsError,
    ShapeError,
    SystolicError,
    UnsupportedError,
)
from cnn.float_model import run_float
from tests.support.cases import cases
from tests.support.errors import faults_of, raises, raises_among

pytest.importorskip("onnx")
keras = pytest.importorskip("keras")

Layers = keras.layers
SHAPE = (12, 10, 3)


def functional(build: Callable[[Any], Any], shape: tuple[int | None, ...] = SHAPE) -> Any:
    """Return the model that ``build`` makes from its input.

    Random numbers are added to all weights, so that no batch norm is an identity.
    """
    keras.utils.set_random_seed(1)
    entry = keras.Input(shape)
    model, random = keras.Model(entry, build(entry), name="net"), np.random.default_rng(2)
    for layer in model.layers:
        values = [np.asarray(value) for value in layer.get_weights()]
        layer.set_weights([value + random.uniform(0, 0.4, value.shape).astype(value.dtype) for value in values])
    return model


def check(model: Any) -> Any:
    """Check that the network's outputs equal Keras' outputs, within 1e-4 of the greatest absolute value."""
    shape = model.input_shape[1:]
    picture = np.random.default_rng(3).random(shape, np.float32)
    network = systolic.load(model).network
    first = np.moveaxis(picture, -1, 0).reshape(sides_of(network))
    expected = np.asarray(model.predict(picture[None], verbose=0))[0]
    result = run_float(network, np.ascontiguousarray(first))[-1]
    expected = np.moveaxis(expected, -1, 0).ravel()
    np.testing.assert_allclose(result.ravel(), expected, rtol=0, atol=1e-4 * max(1.0, np.abs(expected).max()))
    return network


def sides_of(network: Any) -> tuple[int, int, int]:
    shape = network.input_shape
    return shape.channels, shape.height, shape.width


def test_classifier_of_many_layers_equals_keras() -> None:
    """Use a model with MobileNet blocks, squeeze and excitation, joins and a flattened map."""

    def build(x: Any) -> Any:
        x = Layers.Rescaling(2.0, offset=-1.0)(x)
        x = Layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False)(x)
        x = Layers.ReLU(max_value=6)(Layers.BatchNormalization()(x))
        y = Layers.DepthwiseConv2D(3, padding="same", activation="silu")(x)
        gate = Layers.GlobalAveragePooling2D(keepdims=True)(y)
        gate = Layers.Conv2D(8, 1, activation="hard_sigmoid")(gate)
        x = Layers.Add()([x, Layers.Multiply()([y, gate])])
        x = Layers.Concatenate()([x, Layers.SeparableConv2D(4, 3, padding="same", activation="gelu")(x)])
        x = Layers.MaxPooling2D(2)(Layers.PReLU(shared_axes=[1, 2])(x))
        x = Layers.Dense(5, activation="relu")(Layers.Dropout(0.5)(Layers.Flatten()(x)))
        return Layers.Dense(4, activation="softmax")(x)

    network = check(functional(build))
    assert network.name == "net"


DECODERS = {
    f"{kernel} by {stride}, {padding}": (kernel, stride, padding)
    for kernel in (2, 3, 4)
    for stride in (2, 3)
    for padding in ("same", "valid")
}


@cases("name", DECODERS)
def test_transposed_convolution_equals_keras(name: str) -> None:
    kernel, stride, padding = DECODERS[name]
    check(functional(lambda x: Layers.Conv2DTranspose(4, kernel, strides=stride, padding=padding)(x)))


@cases("extra", [0, 1])
@cases("name", DECODERS)
def test_transposed_convolution_with_output_padding_equals_keras(name: str, extra: int) -> None:
    kernel, stride, padding = DECODERS[name]
    layer = Layers.Conv2DTranspose(4, kernel, strides=stride, padding=padding, output_padding=extra)
    check(functional(lambda x: layer(x)))


LAYERS: dict[str, Callable[[Any], Any]] = {
    "Conv2D, dilated": lambda x: Layers.Conv2D(4, 3, dilation_rate=2, padding="same", activation="mish")(x),
    "Conv2D, groups": lambda x: Layers.Conv2D(6, 3, groups=3, activation="tanh")(x),
    "Conv2D, rectangular": lambda x: Layers.Conv2D(6, (1, 4), padding="same", activation="leaky_relu")(x),
    "DepthwiseConv2D, several filters": lambda x: Layers.DepthwiseConv2D(3, depth_multiplier=2, strides=2)(x),
    "Dense of each position": lambda x: Layers.Dense(5, activation="sigmoid")(x),
    "BatchNormalization of the input": lambda x: Layers.BatchNormalization(scale=False)(x),
    "AveragePooling2D": lambda x: Layers.AveragePooling2D((2, 3), strides=2)(x),
    "GlobalMaxPooling2D": lambda x: Layers.GlobalMaxPooling2D()(Layers.Conv2D(4, 1)(x)),
    "UpSampling2D": lambda x: Layers.UpSampling2D((2, 3))(Layers.Conv2D(4, 1)(x)),
    "UpSampling2D bilinear": lambda x: Layers.UpSampling2D((2, 3), interpolation="bilinear")(Layers.Conv2D(4, 1)(x)),
    "ZeroPadding2D": lambda x: Layers.Conv2D(4, 3)(Layers.ZeroPadding2D(((1, 0), (2, 1)))(x)),
    "LeakyReLU": lambda x: Layers.LeakyReLU(negative_slope=0.1)(Layers.Conv2D(4, 1)(x)),
    "ReLU, a threshold": lambda x: Layers.ReLU(threshold=0.3)(Layers.Conv2D(4, 1)(x)),
    "ReLU, a slope": lambda x: Layers.ReLU(negative_slope=0.2)(Layers.Conv2D(4, 1)(x)),
    "ELU": lambda x: Layers.ELU(alpha=0.7)(Layers.Conv2D(4, 1)(x)),
    "Maximum of three": lambda x: Layers.Maximum()([Layers.Conv2D(4, 1)(x) for _ in range(3)]),
    "Subtract": lambda x: Layers.Subtract()([Layers.Conv2D(4, 1)(x), Layers.Conv2D(4, 1)(x)]),
    "Reshape to a map": lambda x: Layers.Conv2DTranspose(3, 2, strides=2)(
        Layers.Reshape((3, 5, 4))(Layers.Dense(60, activation="relu")(Layers.Flatten()(Layers.Conv2D(4, 1)(x))))
    ),
    "Reshape to a signal": lambda x: Layers.Conv1D(3, 2)(Layers.Reshape((5, 4))(Layers.Dense(20)(Layers.Flatten()(x)))),
    "Resizing to more": lambda x: Layers.Resizing(24, 15)(Layers.Conv2D(4, 1)(x)),
    "Resizing to less": lambda x: Layers.Resizing(4, 5, interpolation="nearest")(Layers.Conv2D(4, 1)(x)),
    "what training alone changes": lambda x: Layers.Conv2D(4, 1)(
        Layers.RandomContrast(0.2)(Layers.RandomZoom(0.1)(Layers.RandomRotation(0.1)(Layers.RandomFlip()(x))))
    ),
    "mean of places": lambda x: Layers.Dense(3)(keras.ops.mean(Layers.Conv2D(4, 1)(x), axis=(1, 2))),
    "sum of places": lambda x: Layers.Dense(3)(keras.ops.sum(Layers.Conv2D(4, 1)(x), axis=[-3, -2])),
    "mean and greatest of channels": lambda x: Layers.Conv2D(2, 3)(
        Layers.Concatenate()([keras.ops.mean(x, -1, keepdims=True), keras.ops.max(x, axis=3, keepdims=True)])
    ),
    "Average": lambda x: Layers.Average()([Layers.Conv2D(4, 1)(x) for _ in range(3)]),
    "Cropping2D": lambda x: Layers.Cropping2D(((1, 0), (2, 3)))(Layers.Conv2D(4, 1)(x)),
    "Normalization": lambda x: Layers.Conv2D(4, 1)(
        Layers.Normalization(mean=[0.4, 0.5, 0.6], variance=[0.1, 0.2, 0.3])(x)
    ),
    "Normalization by one number": lambda x: Layers.Conv2D(4, 1)(
        Layers.Normalization(axis=None, mean=0.4, variance=0.1)(x)
    ),
    "Reshape, squeeze and excitation": lambda x: Layers.Multiply()(
        [
            Layers.Conv2D(4, 1)(x),
            Layers.Reshape((1, 1, 4))(
                Layers.Dense(4, activation="sigmoid")(Layers.GlobalAveragePooling2D()(Layers.Conv2D(4, 1)(x)))
            ),
        ]
    ),
    "Reshape to a row": lambda x: Layers.Dense(3)(Layers.Reshape((-1,))(Layers.Conv2D(4, 1)(x))),
    "Reshape to positions in a row": lambda x: Layers.Softmax()(Layers.Reshape((-1, 4))(Layers.Conv2D(4, 1)(x))),
    "celu": lambda x: Layers.Conv2D(4, 1, activation="celu")(x),
    "exponential": lambda x: Layers.Conv2D(4, 1, activation="exponential")(x),
    "hard_tanh": lambda x: Layers.Conv2D(4, 1, activation="hard_tanh")(x),
    "log_softmax": lambda x: Layers.Dense(4, activation="log_softmax")(Layers.GlobalAveragePooling2D()(x)),
    "operations with numbers": lambda x: 1.5 - (Layers.Conv2D(4, 1)(x) * 2.0 + 1.0) / 4.0,
    "operations with a number for each channel": lambda x: (
        Layers.Conv2D(4, 1)(x) * np.array([1.0, -2.0, 0.5, 0.0], np.float32)
    ),
    "operations of two maps": lambda x: keras.ops.maximum(Layers.Conv2D(4, 1)(x), Layers.Conv2D(4, 1)(x)),
    "operations of one map": lambda x: keras.ops.hard_silu(keras.ops.abs(Layers.Conv2D(4, 1)(x))),
    "operations in MobileNetV3": lambda x: (
        Layers.Conv2D(4, 1)(x) * (Layers.ReLU(6.0)(Layers.Conv2D(4, 1)(x) + 3.0) * (1.0 / 6.0))
    ),
    "a layer that is used twice": lambda x: (lambda again: again(again(x)))(Layers.Conv2D(3, 3, padding="same")),
}


@cases("name", LAYERS)
def test_layer_equals_keras(name: str) -> None:
    check(functional(LAYERS[name]))


def test_signal_model_equals_keras() -> None:
    def build(x: Any) -> Any:
        x = Layers.MaxPooling1D(2)(Layers.Conv1D(6, 3, padding="same", activation="relu")(x))
        return Layers.Dense(3)(Layers.GlobalAveragePooling1D()(x))

    check(functional(build, (20, 2)))


@cases("dilation", [1, 3])
def test_signal_with_causal_padding_cropping_and_repeating_equals_keras(dilation: int) -> None:
    def build(x: Any) -> Any:
        x = Layers.Conv1D(4, 3, padding="causal", dilation_rate=dilation)(x)
        return Layers.UpSampling1D(2)(Layers.Cropping1D((2, 1))(x))

    check(functional(build, (20, 2)))


@cases("axis", [1, 2, -2])
def test_softmax_over_rows_or_columns_is_refused(axis: int) -> None:
    with raises_among(InvalidValueError, what="its axis", got=axis):
        systolic.load(functional(lambda x: Layers.Softmax(axis=axis)(x)))


def test_operation_outside_of_layers_is_refused() -> None:
    with raises_among(ChoiceError, what="an operation outside of layers", got="Roll", remedy="use a layer for it"):
        systolic.load(functional(lambda x: keras.ops.roll(x, 1, axis=1)))
    with raises_among(ShapeError, what="its constant", got=(12, 10, 3)):
        systolic.load(functional(lambda x: x * np.ones(SHAPE, np.float32)))
    with raises_among(ShapeError, what="its output", got=(10, 12, 3, 1)):
        systolic.load(functional(lambda x: Layers.Reshape((10, 12, 3, 1))(x)))


AXES = "all axes but the channels, or any axes with keepdims=True, without the batch"
STATISTICS = "it divides by statistics of each image, which no layer does; use a BatchNormalization"
UNKNOWN = "it is not one of the layers that become operators (docs/reference/onnx.md)"


@cases(
    "build, kind, fields",
    [
        (lambda x: keras.ops.max(x, axis=-1), InvalidValueError, {"got": [-1], "required": AXES}),
        (lambda x: keras.ops.mean(x, axis=0, keepdims=True), InvalidValueError, {"got": [0], "required": AXES}),
        (
            lambda x: Layers.Resizing(4, 4, interpolation="bicubic")(x),
            ChoiceError,
            {"what": "interpolation", "got": "bicubic", "choices": ("nearest", "bilinear")},
        ),
        (
            lambda x: Layers.Resizing(4, 4, crop_to_aspect_ratio=True)(x),
            UnsupportedError,
            {"reason": "its option crop_to_aspect_ratio is set"},
        ),
        (lambda x: Layers.LayerNormalization()(x), UnsupportedError, {"reason": STATISTICS}),
        (lambda x: Layers.RandomCrop(4, 4)(x), UnsupportedError, {"reason": UNKNOWN}),
    ],
)
def test_unsupported_options_of_a_layer_are_refused(
    build: Callable[[Any], Any], kind: type[SystolicError], fields: dict[str, object]
) -> None:
    with raises_among(kind, **fields):
        systolic.load(functional(build))


def test_nested_sequential_model_equals_keras() -> None:
    inner = keras.Sequential([keras.Input(SHAPE), Layers.Conv2D(4, 3, activation="relu")], name="stem")
    check(keras.Sequential([keras.Input(SHAPE), inner, Layers.Conv2D(2, 1)], name="net"))


def test_unsupported_layers_are_reported_together() -> None:
    def build(x: Any) -> Any:
        x = Layers.Lambda(lambda values: values * 2, name="own")(x)
        x = Layers.UpSampling2D(interpolation="bicubic", name="smooth")(x)
        return Layers.Conv2D(2, 1, activation="soft_shrink", name="curve")(x)

    with raises(SeveralFaultsError, subject="3 layers cannot become operators", where="net") as caught:
        systolic.load(functional(build))
    assert [error.subject for error in faults_of(caught.value, UnsupportedError)][:1] == ["Lambda 'own'"]
    place, choices = "UpSampling2D 'smooth'", ("nearest", "bilinear")
    assert faults_of(caught.value, ChoiceError, what="interpolation", got="bicubic", choices=choices, where=place)
    assert faults_of(caught.value, ChoiceError, what="its activation", got="soft_shrink", where="Conv2D 'curve'")


def test_model_without_a_fixed_graph_is_refused() -> None:
    with raises(UnsupportedError, subject="a model with its own call method", where="open"):
        systolic.load(keras.Sequential([Layers.Conv2D(2, 1)], name="open"))
    with raises(InvalidValueError, what="the shapes of the model's inputs", got=[(None, None, None, 3)], where="net"):
        systolic.load(functional(lambda x: Layers.Conv2D(2, 1)(x), (None, None, 3)))
    with raises(ConflictError, subjects=("a Keras model", "seed")):
        systolic.load(functional(lambda x: Layers.Conv2D(2, 1)(x)), seed=1)


def test_layer_shared_by_inputs_of_two_sizes_is_refused() -> None:
    entry, flat = keras.Input(SHAPE), Layers.Flatten()
    smaller = Layers.MaxPooling2D(2)(entry)
    model = keras.Model(entry, Layers.Concatenate()([Layers.Dense(2)(flat(entry)), Layers.Dense(2)(flat(smaller))]))
    with raises_among(ShapeError, what="the inputs of its uses", required="one shape"):
        systolic.load(model)
