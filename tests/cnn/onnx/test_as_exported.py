"""Tests of model files as tools export them: with a fixed batch, model-local functions or fused operators."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper

from boards.errors import (
    ChoiceError,
    DamagedFileError,
    InvalidValueError,
    RangeError,
    SeveralFaultsError,
    UnsupportedError,
)
from cnn.float_model import run_float
from cnn.onnx.file import DEEPEST, parsed
from cnn.onnx.network import network_of, read_onnx
from tests.support.cases import cases
from tests.support.errors import raises, raises_among
from tests.support.onnx.networks import check_against_runtime, pixels
from tests.support.onnx.writer import Writer

RANDOM = np.random.default_rng(12)
MICROSOFT, OWN = "com.microsoft", "local"


def normal(writer: Writer, *sides: int) -> str:
    return writer.constant(RANDOM.normal(0, 0.3, sides))


# --- a fixed batch ----------------------------------------------------------------------------------------------------


def flattened(writer: Writer, x: str, *sides: int) -> str:
    return writer.put("Reshape", [x, writer.constant(sides, np.int64)])


def with_batch(view: Callable[[Writer, str], str], batch: int = 4) -> Any:
    """Write a classifier for a fixed batch whose map is flattened by ``view``."""
    writer = Writer()
    x = writer.put("Relu", [writer.put("Conv", ["picture", normal(writer, 4, 3, 3, 3)], pads=[1] * 4)])
    x = view(writer, x)
    return writer.model([writer.put("MatMul", [x, normal(writer, 4 * 6 * 8, 5)])], (batch, 3, 6, 8))


def resized(writer: Writer, x: str) -> str:
    sizes = writer.constant([4, 4, 12, 16], np.int64)
    larger = writer.put(
        "Resize", [x, "", "", sizes], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"
    )
    return writer.put("Flatten", [writer.put("MaxPool", [larger], kernel_shape=[2, 2], strides=[2, 2])])


VIEWS: dict[str, Callable[[Writer, str], str]] = {
    "Flatten": lambda writer, x: writer.put("Flatten", [x]),
    "a Reshape that names the batch": lambda writer, x: flattened(writer, x, 4, -1),
    "a Reshape that leaves it open": lambda writer, x: flattened(writer, x, -1, 192),
    "two of them": lambda writer, x: flattened(writer, flattened(writer, x, 4, 4, 48), 0, 192),
    "a Resize by sizes": resized,
}


@cases("name", VIEWS)
def test_fixed_batch_is_read_as_one_image(name: str, tmp_path: Path) -> None:
    model = with_batch(VIEWS[name])
    onnx.save(model, tmp_path / "net.onnx")
    read = read_onnx(tmp_path / "net.onnx")
    assert [note for note in read.notes if "a batch of 4" in note]
    pictures = RANDOM.random((4, 3, 6, 8), np.float32)
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"picture": pictures})
    for picture, values in zip(pictures, expected, strict=True):
        ours = run_float(read.network, picture)[read.network.outputs[0]]
        np.testing.assert_allclose(ours.ravel(), values, rtol=0, atol=1e-5)


MOVED: dict[str, Callable[[Writer, str], str]] = {
    "Unsqueeze": lambda writer, x: flattened(
        writer, writer.put("Unsqueeze", [x, writer.constant([0], np.int64)]), 4, -1
    ),
    "Reshape": lambda writer, x: flattened(writer, x, 1, -1),
    "Flatten": lambda writer, x: writer.put("Flatten", [x], axis=0),
    "Transpose": lambda writer, x: flattened(writer, writer.put("Transpose", [x], perm=(1, 0, 2, 3)), 4, -1),
}


@cases("kind", MOVED)
def test_batch_that_does_not_stay_the_first_side_is_refused(kind: str) -> None:
    with raises_among(UnsupportedError, reason="the batch of 4 does not stay the first side"):
        network_of(with_batch(MOVED[kind]), "net.onnx", "net")


# --- functions --------------------------------------------------------------------------------------------------------


def with_functions(model: Any, *functions: Any) -> Any:
    model.functions.extend(functions)
    model.opset_import.append(helper.make_opsetid(OWN, 1))
    return model


def function(name: str, nodes: list[Any], inputs: list[str], attributes: tuple[str, ...] = (), opset: int = 17) -> Any:
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(OWN, 1)]
    return helper.make_function(OWN, name, inputs, ["result"], nodes, imports, list(attributes))


def slope_attribute(name: str) -> Any:
    """Return an attribute whose value is the attribute ``slope`` of the calling function."""
    return onnx.AttributeProto(name=name, type=onnx.AttributeProto.FLOAT, ref_attr_name="slope")


def blocks() -> Any:
    """Write two calls of a function that calls another function and passes an attribute on to it."""
    writer = Writer()
    inner = helper.make_node("LeakyRelu", ["a"], ["result"])
    inner.attribute.append(slope_attribute("alpha"))
    called = helper.make_node("Curve", ["sums"], ["result"], domain=OWN)
    called.attribute.append(slope_attribute("slope"))
    block = [helper.make_node("Conv", ["x", "w", "b"], ["sums"], pads=[1] * 4), called]
    x = "picture"
    for channels, slope in ((3, 0.1), (4, 0.25)):
        weights = [normal(writer, 4, channels, 3, 3), normal(writer, 4)]
        x = writer.put("Block", [x, *weights], domain=OWN, slope=slope)
    model = writer.model([x], (1, 3, 6, 8))
    block_function = function("Block", block, ["x", "w", "b"], ("slope",))
    return with_functions(model, block_function, function("Curve", [inner], ["a"], ("slope",)))


def test_model_local_functions_are_inlined(tmp_path: Path) -> None:
    model, picture = blocks(), pixels(3, 6, 8)
    onnx.save(model, tmp_path / "net.onnx")
    network = read_onnx(tmp_path / "net.onnx").network
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"picture": picture[None]})
    np.testing.assert_allclose(run_float(network, picture)[-1], expected[0], rtol=0, atol=1e-5)
    assert [node.name for node in network.nodes] == ["input", "conv1", "conv2", "leaky_relu1"]


def doubling_functions(count: int) -> Any:
    """Write ``count`` functions, each of which calls the next one twice."""
    writer = Writer()
    model = writer.model([writer.put("f0", ["picture"], domain=OWN)], (1, 3, 6, 8))
    functions = []
    for number in range(count):
        kind, domain = ("Relu", "") if number == count - 1 else (f"f{number + 1}", OWN)
        calls = [helper.make_node(kind, [x], [y], domain=domain) for x, y in (("x", "y"), ("y", "result"))]
        functions.append(function(f"f{number}", calls, ["x"]))
    return with_functions(model, *functions)


def test_functions_that_expand_beyond_the_limit_are_refused() -> None:
    begun = time.process_time()
    with raises(RangeError, what="the number of operations, with its functions expanded,", got=1 << 20, high=8192):
        parsed(doubling_functions(20).SerializeToString(), "net.onnx")
    with raises(RangeError, what="the depth of nested function calls", high=DEEPEST):
        parsed(doubling_functions(DEEPEST + 9).SerializeToString(), "net.onnx")
    # The limit is checked before the functions are expanded, so that the refusal is fast.
    assert time.process_time() - begun < 1
    circle = [helper.make_node("f0", ["x"], ["result"], domain=OWN)]
    model = with_functions(doubling_functions(1), function("f0", circle, ["x"]))
    del model.functions[0]
    with raises(DamagedFileError, reason="has a function that calls itself: 'f0'", path="net.onnx"):
        parsed(model.SerializeToString(), "net.onnx")
    called = doubling_functions(1)
    called.graph.node[0].input.append("picture")
    with raises(DamagedFileError, reason="calls 'f0' with 2 inputs and 1 outputs; it has 1 and 1"):
        parsed(called.SerializeToString(), "net.onnx")


def test_function_of_another_opset_is_refused() -> None:
    model = with_functions(doubling_functions(1), function("g", [], ["x"]))
    del model.functions[:]
    model.functions.append(function("f0", [helper.make_node("Relu", ["x"], ["result"])], ["x"], opset=9))
    with raises(
        UnsupportedError, subject="the model-local function 'f0'", reason="its opset differs from the model's opset"
    ):
        parsed(model.SerializeToString(), "net.onnx")


# --- onnxruntime's fused operators ------------------------------------------------------------------------------------

LISTS = {
    "": [],
    "Relu": [],
    "Tanh": [],
    "Sigmoid": [],
    "LeakyRelu": [0.3],
    "Clip": [-0.2, 0.4],
    "HardSigmoid": [0.25, 0.4],
}


@cases("activation", LISTS)
@cases("summed", [False, True])
def test_fused_convolution_equals_its_parts(activation: str, summed: bool) -> None:
    writer = Writer()
    x = writer.put("Conv", ["picture", normal(writer, 4, 3, 1, 1)])
    inputs = [x, normal(writer, 4, 4, 3, 3), *([normal(writer, 4), x] if summed else [])]
    options = {"activation": activation, "activation_params": LISTS[activation]}
    named: dict[str, Any] = {key: value for key, value in options.items() if value}
    y = writer.put("FusedConv", inputs, domain=MICROSOFT, pads=[1] * 4, kernel_shape=[3, 3], **named)
    model = writer.model([writer.put("Conv", [y, normal(writer, 2, 4, 1, 1)])], (1, 3, 6, 8))
    model.opset_import.append(helper.make_opsetid(MICROSOFT, 1))
    check_against_runtime(model, pixels(3, 6, 8))


NAMED: dict[str, dict[str, float]] = {
    "Relu": {},
    "Tanh": {},
    "Sigmoid": {},
    "Softplus": {},
    "Softsign": {},
    "LeakyRelu": {"alpha": 0.3},
    "Elu": {"alpha": 0.5},
    "HardSigmoid": {"alpha": 0.25, "beta": 0.4},
    "ThresholdedRelu": {"alpha": 0.1},
}


@cases("activation", NAMED)
def test_fused_gemm_equals_its_parts(activation: str) -> None:
    writer = Writer()
    flat = writer.put("Flatten", ["picture"])
    named: dict[str, Any] = {f"activation_{key}": value for key, value in NAMED[activation].items()}
    inputs = [flat, normal(writer, 5, 144), normal(writer, 5)]
    y = writer.put("FusedGemm", inputs, domain=MICROSOFT, activation=activation, alpha=0.5, transB=1, **named)
    model = writer.model([writer.put("MatMul", [y, normal(writer, 5, 3)])], (1, 3, 6, 8))
    model.opset_import.append(helper.make_opsetid(MICROSOFT, 1))
    check_against_runtime(model, pixels(3, 6, 8))


def test_model_saved_by_onnxruntime_is_read(tmp_path: Path) -> None:
    """Use a residual block, saved after onnxruntime's optimisation."""
    writer = Writer()
    x = writer.put("Relu", [writer.put("Conv", ["picture", normal(writer, 4, 3, 1, 1)])])
    sums = writer.put("Add", [writer.put("Conv", [x, normal(writer, 4, 4, 3, 3)], pads=[1] * 4), x])
    x = writer.put("Flatten", [writer.put("Relu", [sums])])
    model = writer.model(
        [writer.put("Sigmoid", [writer.put("Gemm", [x, normal(writer, 192, 5), normal(writer, 5)])])], (1, 3, 6, 8)
    )
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "saved.onnx")
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    saved = onnx.load(tmp_path / "saved.onnx")
    assert {"FusedConv", "FusedGemm"} <= {node.op_type for node in saved.graph.node}
    check_against_runtime(saved, pixels(3, 6, 8))


def test_fused_activation_that_is_unknown_is_refused() -> None:
    for attributes, expected in (
        ({"activation": "Twist"}, ChoiceError("activation", "Twist", ())),
        (
            {"activation": "Relu", "activation_params": [1.0]},
            InvalidValueError("activation_params", (1.0,), "at most 0 numbers"),
        ),
    ):
        writer = Writer()
        y = writer.put("FusedConv", ["picture", normal(writer, 4, 3, 3, 3)], domain=MICROSOFT, **attributes)
        with raises_among(type(expected), got=expected.got):
            network_of(writer.model([y], (1, 3, 6, 8)), "net.onnx", "net")


# --- unsupported operators and their remedies -------------------------------------------------------------------------


def layer_norm(writer: Writer, x: str, form: str) -> str:
    """Write a normalisation over the channels with elementary operators, in one of four forms."""
    number = writer.constant
    centred = writer.put("Sub", [x, writer.put("ReduceMean", [x], axes=[1])]) if form != "RMS" else x
    squares = writer.put("Pow", [centred, number(2)]) if form != "Mul" else writer.put("Mul", [centred, centred])
    mean = writer.put("Add", [writer.put("ReduceMean", [squares], axes=[1]), number(1e-5)])
    if form == "Pow":
        return writer.put("Mul", [writer.put("Pow", [mean, number(-0.5)]), centred])
    root = writer.put("Sqrt", [mean])
    return (
        writer.put("Mul", [centred, writer.put("Reciprocal", [root])])
        if form == "Mul"
        else writer.put("Div", [centred, root])
    )


@cases("form", ["Div", "Mul", "Pow", "RMS"])
def test_normalisation_written_out_is_refused_by_its_name(form: str) -> None:
    writer = Writer()
    x = layer_norm(writer, writer.put("Conv", ["picture", normal(writer, 4, 3, 3, 3)]), form)
    model = writer.model([writer.put("Conv", [x, normal(writer, 2, 4, 1, 1)])], (1, 3, 6, 8))
    kind = f"{'RMS' if form == 'RMS' else 'Layer'}Normalization by its parts"
    with raises(SeveralFaultsError) as caught:
        network_of(model, "net.onnx", "net")
    (fault,) = caught.value.errors
    assert isinstance(fault, UnsupportedError)
    assert fault.subject.startswith(kind)
    assert "BatchNormalization" in fault.reason


@cases(
    "kind, remedy",
    [
        ("DynamicQuantizeLinear", "quantize_static"),
        ("com.microsoft.DynamicQuantizeMatMul", "quantize_static"),
        ("com.vai.quantize.VitisQuantizeLinear", "QuantFormat.QDQ"),
        ("com.vai.quantize.BFPFixNeuron", "QuantFormat.QDQ"),
        ("com.amd.quark.ExtendedQuantizeLinear", "XINT8"),
    ],
)
def test_operator_of_other_quantisers_is_refused_with_a_remedy(kind: str, remedy: str) -> None:
    writer = Writer()
    domain, _, name = kind.rpartition(".")
    x = writer.put(name, [writer.put("Conv", ["picture", normal(writer, 4, 3, 3, 3)])], domain=domain)
    with raises(SeveralFaultsError) as caught:
        network_of(writer.model([x], (1, 3, 6, 8)), "net.onnx", "net")
    (fault,) = caught.value.errors
    assert isinstance(fault, UnsupportedError)
    assert remedy in fault.reason
    assert fault.subject.startswith(kind)
