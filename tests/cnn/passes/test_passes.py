"""Tests of passes: lookups by name, checked setters, fixed points, and golden results after each change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from boards.errors import (
    ChoiceError,
    ConflictError,
    InvalidValueError,
    MismatchError,
    RangeError,
    ShapeError,
    StateError,
    SystolicError,
    UnsupportedError,
)
from cnn.datatype import INT8, INT16, UINT8
from cnn.float_model import run_float
from cnn.integer_model import run_integer
from cnn.maps import Padding, Shape
from cnn.network import Network
from cnn.ops import Add, Convolution, MaxPool
from cnn.passes.transform import PASSES, transformed
from cnn.passes.view import View, checked, without
from cnn.quantisation.calibration import calibrate
from cnn.quantisation.quantise import quantise
from cnn.quantized import QuantizedNetwork
from tests.support.cases import cases
from tests.support.errors import raises, refused
from tests.support.low_bit import Layers
from tests.support.networks import convolution, dense, network, normalisation

SHAPE = Shape(3, 6, 5)


def channel_factors(channels: int, activation: str = "linear", batch_norm: bool = False) -> Convolution:
    """Return a depthwise 1×1 convolution, which scales each channel."""
    random = np.random.default_rng(channels)
    norm = normalisation(random, channels) if batch_norm else None
    weights = random.normal(1, 0.5, (channels, 1, 1, 1)).astype(np.float32)
    bias = random.normal(0, 1, channels).astype(np.float32)
    return Convolution(weights, bias, norm, 1, Padding(), channels, activation)


def chain() -> Network:
    """Return convolutions with factors per channel after each."""
    random = np.random.default_rng(1)
    wide = Shape(4, 6, 5)
    return network(
        SHAPE,
        ("conv1", convolution(random, 3, 4, activation="linear", batch_norm=True), [0], wide),
        ("scale1", channel_factors(4), [1], wide),
        ("scale2", channel_factors(4, "relu", True), [2], wide),
        ("scale3", channel_factors(4), [3], wide),
        ("conv2", convolution(random, 4, 4, activation="linear"), [4], wide),
        ("add", Add("linear"), [5, 4], wide),
        ("dense", dense(random, 120, 5), [6], Shape(5, 1, 1)),
        ("scale4", channel_factors(5), [7], Shape(5, 1, 1)),
    )


def quantised(source: Network) -> QuantizedNetwork:
    picture = np.random.default_rng(3).random((3, 6, 5)).astype(np.float32)
    return quantise(source, calibrate(source, [picture]))


def test_view_finds_nodes_shapes_types_and_arrays_by_name() -> None:
    source = chain()
    view = View(source)
    assert view.producer("conv2") is source.nodes[5]
    assert [node.name for node in view.consumers("scale3")] == ["conv2", "add"]
    assert view.shape("dense") == Shape(5, 1, 1)
    assert view.datatype("dense") is None
    assert view.initialiser("conv1.weights").shape == (4, 3, 3, 3)
    assert view.initialiser("conv1.batch_norm.mean").shape == (4,)
    assert "scale1.bias" in view.initialisers()
    integers = View(quantised(source))
    assert (integers.datatype("input"), integers.datatype("conv2"), integers.datatype("scale4")) == (UINT8, INT8, INT16)
    assert integers.initialiser("conv2.requantiser.multiplier").dtype == np.int64


@cases(
    "name, fault",
    [
        (
            "conv9",
            ChoiceError(
                "the tensor",
                "conv9",
                ["input", "conv1", "twice", "twice", "scale3", "conv2", "add", "dense", "scale4"],
                where="tiny",
            ),
        ),
        ("twice", ConflictError(["node 2", "node 3"], "all of them are called 'twice'", where="tiny")),
    ],
)
def test_tensor_with_an_unknown_or_double_name_is_refused(name: str, fault: SystolicError) -> None:
    source = chain()
    nodes = tuple(replace(node, name="twice") if node.name.startswith("scale1") else node for node in source.nodes)
    nodes = tuple(replace(node, name="twice") if node.name == "scale2" else node for node in nodes)
    with refused(fault):
        View(replace(source, nodes=nodes)).producer(name)


def test_setter_returns_a_new_checked_network() -> None:
    source = chain()
    view = View(source)
    zeros = view.with_initialiser("conv2.weights", np.zeros((4, 4, 1, 1), np.float32).repeat(3, 2).repeat(3, 3))
    assert not View(zeros).initialiser("conv2.weights").any()
    assert view.initialiser("conv2.weights").any()
    assert View(source).network is source
    with raises(ShapeError, what="conv2.weights", got="float64", required="the type float32"):
        view.with_initialiser("conv2.weights", np.zeros((4, 4, 3, 3)))
    with raises(InvalidValueError, what="conv2.bias", required="finite numbers"):
        view.with_initialiser("conv2.bias", np.full(4, np.nan, np.float32))
    with raises(ChoiceError, what="the array", got="conv2.means", choices=view.initialisers(), where="tiny"):
        view.initialiser("conv2.means")
    with raises(MismatchError, got=5, expected=4, where="'conv2' (test:6)"):
        view.with_initialiser("conv2.weights", np.zeros((4, 5, 3, 3), np.float32))


def test_shapes_follow_the_input() -> None:
    source = without(chain(), 8, 7)
    larger = View(View(source).with_shape("input", Shape(3, 12, 9)))
    assert [larger.shape(node.name) for node in source.nodes[1:]] == [Shape(4, 12, 9)] * 6
    with raises(UnsupportedError, subject="a shape of conv2", remedy="set the shape of input"):
        larger.with_shape("conv2", Shape(4, 1, 1))
    with raises(ShapeError, what="the weights", got=(5, 120), where="'dense' (test:8)"):
        View(chain()).with_shape("input", Shape(3, 12, 9))


def test_setter_on_integers_keeps_the_contract() -> None:
    view = View(quantised(chain()))
    assert View(view.with_datatype("scale4", INT8, 0.5)).datatype("scale4") == INT8
    with raises(UnsupportedError, subject="a datatype of conv1", where="tiny", remedy="quantise it first"):
        View(chain()).with_datatype("conv1", INT8)
    with raises(RangeError, what="a weight", got=-128, low=-127, high=127, where="'conv2' (test:6)"):
        view.with_initialiser("conv2.weights", np.full((4, 4, 3, 3), -128, np.int8))


def test_removal_of_a_node_with_readers_is_refused() -> None:
    with raises(ConflictError, subjects=("the removal of 'scale1'", "'scale2'")):
        without(chain(), 2)


def test_wrong_network_is_refused() -> None:
    source = chain()
    wrong = replace(source.nodes[5], shape=Shape(4, 6, 6))
    with raises(MismatchError, what="its shape", got="4×6×6", expected="4×6×5"):
        checked(replace(source, nodes=(*source.nodes[:5], wrong, *source.nodes[6:])))
    with raises(InvalidValueError, what="its inputs", got=(2,)):
        checked(replace(source, nodes=(source.nodes[0], replace(source.nodes[1], inputs=(2,)), *source.nodes[2:])))


def test_fold_pointwise_merges_factors_into_the_layer_before() -> None:
    source = chain()
    folded = transformed(source, "fold_pointwise")
    assert [node.name for node in folded.nodes] == ["input", "scale2", "scale3", "conv2", "add", "scale4"]
    picture = np.random.default_rng(4).random((3, 6, 5)).astype(np.float32)
    np.testing.assert_allclose(run_float(folded, picture)[-1], run_float(source, picture)[-1], rtol=1e-3, atol=1e-4)
    assert transformed(folded, "fold_pointwise") is folded


def test_convolve_picture_adds_a_convolution_before_layers_that_move_the_image() -> None:
    source = network(SHAPE, ("picture1", MaxPool(1, 1, Padding()), [0], SHAPE))
    convolved = transformed(source, "convolve_picture")
    assert [(node.name, node.inputs) for node in convolved.nodes] == [
        ("input", ()),
        ("picture2", (0,)),
        ("picture1", (1,)),
    ]
    assert transformed(convolved, "convolve_picture") is convolved
    unchanged = chain()
    assert transformed(unchanged, "convolve_picture") is unchanged


def test_fold_batch_norms_leaves_no_batch_norm() -> None:
    source = chain()
    folded = transformed(source, "fold_batch_norms")
    assert not any("batch_norm" in name for name in View(folded).initialisers())
    assert transformed(folded, "fold_batch_norms") is folded


def test_merge_tables_joins_consecutive_tables() -> None:
    source = Layers(3, 6, 5).conv(4, 3).curve().curve().pool().curve().curve().curve().network()
    merged = transformed(source, "merge_tables")
    assert [type(node.op).__name__ for node in merged.nodes] == [
        "QInput",
        "QConvolution",
        "QActivate",
        "MaxPool",
        "QActivate",
    ]
    picture = np.random.default_rng(5).integers(0, 256, (3, 6, 5), np.uint8)
    np.testing.assert_array_equal(run_integer(merged, picture)[-1], run_integer(source, picture)[-1])


# --- changes that a pass must not make -------------------------------------------------------------------------------


def doubled(source: Network) -> Network:
    view = View(source)
    return view.with_initialiser("conv2.bias", view.initialiser("conv2.bias") * np.float32(2))


def copied(source: Network) -> Network:
    return replace(source)


def shortened(source: Network) -> Network:
    return without(source, len(source.nodes) - 1)


def enlarged(source: Network) -> Network:
    return View(without(source, 8, 7)).with_shape("input", Shape(3, 7, 7))


def nothing(source: Network) -> None:
    del source


def pooled(source: Network) -> Network:
    return replace(source, nodes=(*source.nodes[:8], replace(source.nodes[8], op=MaxPool(2, 1, Padding()))))


@cases(
    "run, fault",
    [
        (
            doubled,
            RangeError(
                "the change of output 0 of 'tiny'",
                0.18528413772583008,
                0,
                0.0005792539596557617,
                where="the pass 'doubled'",
            ),
        ),
        (
            copied,
            StateError(
                "the pass 'copied'",
                "still changes 'tiny' after 100 rounds",
                remedy="return the argument itself if nothing is left to do",
            ),
        ),
        (
            shortened,
            RangeError(
                "the change of output 0 of 'tiny'",
                3.140948534011841,
                0,
                0.0005792539596557617,
                where="the pass 'shortened'",
            ),
        ),
        (enlarged, MismatchError("the shape of the input", "3×7×7", "3×6×5", where="the pass 'enlarged'")),
        (
            nothing,
            InvalidValueError("the result", None, "a Network of 'tiny', or its argument", where="the pass 'nothing'"),
        ),
        (
            pooled,
            InvalidValueError("the window", "2×2", "at most the padded input, 1×1", where="'scale4' (test:9)"),
        ),
    ],
)
def test_pass_that_changes_results_is_refused(run: object, fault: SystolicError) -> None:
    with refused(fault):
        transformed(chain(), run)  # type: ignore[arg-type]


def test_pass_that_changes_integers_is_refused() -> None:
    source = quantised(chain())

    def shifted(network: QuantizedNetwork) -> QuantizedNetwork:
        view = View(network)
        return view.with_initialiser("scale4.requantiser.bias", view.initialiser("scale4.requantiser.bias") + 9999)

    with raises(RangeError, what="the change of output 0 of 'tiny'", high=0, where="the pass 'shifted'"):
        transformed(source, shifted)


def test_unknown_pass_is_refused_with_the_known_ones() -> None:
    with raises(ChoiceError, what="the pass", got="fold", choices=tuple(PASSES)):
        transformed(chain(), "fold")
    assert tuple(PASSES)[:4] == ("fold_batch_norms", "fold_pointwise", "merge_tables", "convolve_picture")
