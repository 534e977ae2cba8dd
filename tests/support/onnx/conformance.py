"""The backend tests of the package onnx: models with their inputs and expected outputs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.backend.test
from onnx import helper, numpy_helper, version_converter

from boards.errors import (
    ChoiceError,
    InvalidValueError,
    MissingValueError,
    RangeError,
    SeveralFaultsError,
    ShapeError,
    SystolicError,
    UnsupportedError,
)
from cnn.float_model import run_float
from cnn.integer_model import run_integer
from cnn.onnx.file import FIRST_OPSET
from cnn.onnx.network import BUILDERS, OnnxNetwork, read_model
from cnn.quantized import QuantizedNetwork
from tests.support.executed import executed
from tests.support.onnx.outputs import outputs_of

Array = np.ndarray[Any, Any]

DATA = Path(onnx.backend.test.__file__).parent / "data"
FOLDERS = ("node", "pytorch-converted", "pytorch-operator", "simple")
OTHERS = frozenset({"Constant"})
"""Operators that a network may have, but that do not become layers."""

BESIDE = frozenset({"Add", "Concat", "Div", "Max", "Min", "Mul", "Sub", "Sum"})
"""Operators of several maps. A case passes the maps as channels of one image."""

SINGLE = (BESIDE - {"Concat"}) | {
    *(
        "Abs",
        "Celu",
        "Clip",
        "Elu",
        "Exp",
        "Gelu",
        "HardSigmoid",
        "HardSwish",
        "LeakyRelu",
        "Mish",
        "Neg",
        "Relu",
        "Selu",
    ),
    *("Sigmoid", "Softplus", "Softsign", "Sqrt", "Swish", "Tanh", "ThresholdedRelu"),
}
"""Operators without axes. A one-dimensional input is passed as the channels of one position."""

COUNTED = "1.21"
"""The version of the package for which COMPUTED and SKIPPED are counted. Other versions differ by a few cases."""

COMPUTED = 306


@dataclass(frozen=True)
class Fault:
    """An expected error.

    Attributes:
        kind: The exact class of the error.
        fields: Texts that the error's fields must contain, by field name.
    """

    kind: type[SystolicError]
    fields: Mapping[str, str]

    def fits(self, error: SystolicError) -> bool:
        return type(error) is self.kind and all(text in str(getattr(error, name)) for name, text in self.fields.items())


@dataclass(frozen=True)
class Reason:
    """A reason for which cases are not computed.

    Attributes:
        sentence: The reason in words.
        count: The number of cases in the version COUNTED.
        faults: The errors that have this reason.
    """

    sentence: str
    count: int
    faults: tuple[Fault, ...]


def unsupported(reason: str) -> Fault:
    return Fault(UnsupportedError, {"reason": reason})


def shape(what: str, required: str = "", got: str = "") -> Fault:
    return Fault(ShapeError, {"what": what, "required": required, "got": got})


SKIPPED = (
    Reason(
        "values move between images, channels and positions",
        27,
        (
            unsupported("reorders values"),
            unsupported("concatenated only along their channels"),
            unsupported("slices the batch"),
            unsupported("must gather by an integer"),
            shape("its output"),
            Fault(InvalidValueError, {"what": "transA"}),
        ),
    ),
    Reason(
        "nothing is computed, because the values keep their order",
        31,
        (Fault(RangeError, {"what": "number of layers after the input"}),),
    ),
    Reason("maps of three dimensions", 29, (shape("the input", got="5 sides"), shape("the input", got="6 sides"))),
    Reason("a side without a batch", 25, (shape("the input", got="1 sides"),)),
    Reason("pixels are interpolated cubically", 11, (Fault(ChoiceError, {"what": "mode", "got": "cubic"}),)),
    Reason(
        "the last of equal values is chosen, or the least value",
        9,
        (unsupported("first of equal values"), unsupported("greatest values are selected")),
    ),
    Reason(
        "maps are divided by each other, or multiplied by matrices of their own",
        23,
        (unsupported("a map is divided by a map"), shape("the matrix")),
    ),
    Reason(
        "scales for each channel or block of a map, floats and integers of 2 and 4 bits",
        8,
        (shape("the scale"), Fault(ChoiceError, {"what": "type of quantised values"})),
    ),
    Reason(
        "a map is resized with smoothing, to a part of itself, or onnxruntime differs",
        7,
        (
            Fault(ChoiceError, {"what": "coordinate_transformation_mode"}),
            unsupported("antialias"),
            unsupported("align corners differently"),
        ),
    ),
    Reason("a mean, sum or maximum over pictures", 12, (Fault(InvalidValueError, {"what": "axes"}),)),
    Reason(
        "a softmax or choice over other sides than the channels", 4, (Fault(InvalidValueError, {"what": "its axis"}),)
    ),
    Reason("a constant per value, instead of one per channel", 4, (shape("its constant"),)),
    Reason(
        "a constant depends on the image, or an output does not depend on it",
        2,
        (unsupported("depend on the network's input"), unsupported("must be a constant")),
    ),
    Reason(
        "windows of more than 4,095 rows, sides of more than 65,536",
        1,
        (Fault(RangeError, {"what": "of a window"}), Fault(RangeError, {"what": " of the input "})),
    ),
    Reason("the file does not state a dimension", 5, (Fault(MissingValueError, {"reason": "leaves it open"}),)),
    Reason("a pool returns the index of its greatest value", 2, (unsupported("the indices of the greatest values"),)),
    Reason("batch norms in training", 2, (unsupported("training_mode"),)),
    Reason(
        "a clip or a range is empty",
        2,
        (Fault(InvalidValueError, {"what": "min and max"}), Fault(InvalidValueError, {"what": "a range"})),
    ),
)
"""The reasons. The reason of a case is the first one with a fault that fits one of the case's errors."""

WRONG = frozenset(f"test_qlinearmatmul_2D_int8_float{bits}" for bits in (16, 32))
"""Cases that expect quantised values above 127 to wrap around, although QuantizeLinear saturates."""

PRINTED = {"test_averagepool_2d_ceil_last_window_starts_on_pad": 1e-3}
"""The tolerance of cases whose expected values have only four digits."""

TOLERANCE = 1e-4
"""The tolerance relative to an output's greatest absolute value, which counts as at least 0.1."""


@dataclass(frozen=True)
class Case:
    """A model with one input.

    Attributes:
        name: The name of the case.
        model: The model.
        pictures: The images, [batch, …].
        expected: The expected outputs.
    """

    name: str
    model: Any
    pictures: Array
    expected: tuple[Array, ...]

    @property
    def weighted(self) -> bool:
        """Return whether the model has weights of at least two dimensions."""
        products = ("Conv", "ConvInteger", "QLinearConv", "Gemm", "MatMul", "MatMulInteger", "QLinearMatMul", "PRelu")
        sides = [len(tensor.dims) for tensor in self.model.graph.initializer]
        return max(sides, default=0) >= 2 and any(node.op_type in products for node in self.model.graph.node)


def cases() -> Iterator[Case]:
    """Yield the cases of supported operators whose first input is float32, or 8-bit integers."""
    for folder in (path for kind in FOLDERS for path in sorted((DATA / kind).iterdir())):
        model = onnx.load(folder / "model.onnx")
        if not {node.op_type for node in model.graph.node} <= BUILDERS.keys() | OTHERS:
            continue
        data = next(iter(sorted(folder.glob("test_data_set_*"))), None)
        if data is None or folder.name in WRONG:
            continue
        case = _case(folder.name, model, *(_arrays(data, kind) for kind in ("input", "output")))
        if case is not None:
            yield case


def _arrays(folder: Path, kind: str) -> list[Array | None]:
    files = sorted(folder.glob(f"{kind}_*.pb"), key=lambda path: int(path.stem.rpartition("_")[2]))
    return [_array(path) for path in files]


def _array(path: Path) -> Array | None:
    try:
        return numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))
    except Exception:
        return None  # the file holds a sequence or an optional value


def _case(name: str, model: Any, inputs: list[Any], outputs: list[Any]) -> Case | None:
    held = {tensor.name for tensor in model.graph.initializer}
    free = [value for value in model.graph.input if value.name not in held]
    if any(array is None for array in [*inputs, *outputs]) or not inputs or len(inputs) > len(model.graph.input):
        return None
    if inputs[0].dtype not in (np.float32, np.uint8, np.int8) or any(array.dtype.kind == "b" for array in inputs):
        return None
    kinds = {node.op_type for node in model.graph.node}
    if {"Cast"} == kinds or (inputs[0].dtype != np.float32 and not any("Q" in k or "Integer" in k for k in kinds)):
        return None  # a network has no integer inputs without a quantisation
    if inputs[0].ndim == 1 and kinds <= SINGLE:
        inputs = [array[None] if array.ndim == 1 else array for array in inputs]
    if model.opset_import[0].version < FIRST_OPSET:
        _stand_slopes(model)
        model = version_converter.convert_version(model, FIRST_OPSET)
    if len(inputs) > 1 and kinds <= BESIDE and len({array.shape for array in inputs}) == 1 and inputs[0].ndim > 1:
        inputs = [_joined(model, inputs)]
    else:
        for value, array in zip(free[1:], inputs[1:], strict=False):
            model.graph.initializer.append(numpy_helper.from_array(array, value.name))
    return Case(name, model, inputs[0], tuple(outputs))


def _stand_slopes(model: Any) -> None:
    """Give the slopes of PRelu the shape of the newer opset, because the converter does not change it."""
    slopes = {node.input[1] for node in model.graph.node if node.op_type == "PRelu"}
    ranks = [len(value.type.tensor_type.shape.dim) for value in model.graph.input]
    for tensor in model.graph.initializer:
        if tensor.name in slopes and tensor.dims[0] > 1:
            tensor.dims.extend([1] * (ranks[0] - 2))
            value = next(value for value in model.graph.input if value.name == tensor.name)
            for _ in range(ranks[0] - 2):
                value.type.tensor_type.shape.dim.add().dim_value = 1


def _joined(model: Any, inputs: Sequence[Array]) -> Array:
    """Return the inputs as channels of one image, and insert a Split for them in the model."""
    names = [value.name for value in model.graph.input]
    version = model.opset_import[0].version
    numbers: dict[str, Any] = {"num_outputs": len(names)} if version >= 18 else {}
    model.graph.node.insert(0, helper.make_node("Split", ["joined"], names, axis=1, **numbers))
    del model.graph.input[1:]
    model.graph.input[0].name = "joined"
    return np.concatenate(inputs, axis=1)


def read(case: Case) -> OnnxNetwork:
    """Return the network of a case for one image.

    Raises:
        SystolicError: The model is refused.
    """
    dimensions = case.model.graph.input[0].type.tensor_type.shape.dim
    del dimensions[:]
    for side in (1, *case.pictures.shape[1:]):
        dimensions.add().dim_value = side
    return read_model(case.model, case.name, "case")


def difference(case: Case) -> float:
    """Return the greatest error of any output, relative to its greatest absolute value.

    For 8-bit outputs, the error is the number of steps of difference beyond the first one, which may be due to
    rounding.

    Raises:
        SystolicError: The model is refused.
    """
    network = read(case)
    if network.quantized is not None:
        return _steps(network.quantized, case)
    shape = network.network.input_shape
    sides = (shape.channels, shape.height, shape.width)
    turned = case.model.graph.input[0].name in network.last
    whole = np.moveaxis(case.pictures, -1, 1) if turned else case.pictures
    pictures = [np.ascontiguousarray(picture.reshape(sides)) for picture in whole]
    frames = [run_float(network.network, picture) for picture in pictures]
    outputs = [outputs_of(network.network, frame) for frame in frames]
    names = [value.name for value in case.model.graph.output]
    results = [np.stack([each[name] for each in outputs]) for name in names]
    assert len(results) == len(case.expected)
    return max(_error(result.ravel(), wanted.ravel()) for result, wanted in zip(results, case.expected, strict=True))


def _steps(network: QuantizedNetwork, case: Case) -> float:
    shape, worst = network.input_shape, 0.0
    for picture, wanted in zip(case.pictures, case.expected[0], strict=True):
        raw = picture.astype(np.int64) + (128 if picture.dtype == np.int8 else 0)
        pixels = raw.astype(np.uint8).reshape(shape.channels, shape.height, shape.width)
        result = run_integer(network, pixels)[-1]
        assert result is not None
        if wanted.dtype.kind in "iu" and wanted.dtype.itemsize == 1:
            offset = 128 if wanted.dtype == np.uint8 else 0
            steps = np.abs(result.ravel().astype(np.int64) - (wanted.ravel().astype(np.int64) - offset)).max()
            worst = max(worst, float(max(0, steps - 1)))
        else:  # the output is the sums, without requantisation
            values = result.ravel() * network.nodes[-1].type.scale
            worst = max(worst, _error(values, wanted.ravel()))
    return worst


def _error(result: Array, expected: Array) -> float:
    if result.size != expected.size:
        return float("inf")
    numbers = ~np.isnan(expected)  # the root of a negative value is NaN
    result, expected = result[numbers], expected[numbers]
    return float(np.abs(result - expected).max(initial=0) / max(0.1, np.abs(expected).max(initial=0)))


def mismatches(case: Case, folder: Path, style: str) -> tuple[int, int]:
    """Return the number of values of the case's design, and of those that differ from the golden model.

    The design is generated for ``style`` and executed on noise.
    """
    read(case)
    path = folder / f"{case.name}.onnx"
    onnx.save(case.model, path)
    result = executed(path, style)
    return sum(layer.values for layer in result.layers), result.mismatches


def skipped(error: SystolicError) -> str:
    """Return why a case is not computed; AssertionError for a reason that is not in SKIPPED."""
    errors = error.errors if isinstance(error, SeveralFaultsError) else [error]
    for reason in SKIPPED:
        if any(fault.fits(one) for fault in reason.faults for one in errors):
            return reason.sentence
    raise AssertionError(f"no reason of SKIPPED fits: {error!r}")


def summary_text(computed: int, reasons: Mapping[str, Sequence[str]], named: bool = False) -> str:
    """Return the number of computed cases, and a line per reason for the others.

    Args:
        computed: The number of computed cases.
        reasons: The names of the skipped cases, by reason.
        named: Whether the lines list the names.
    """
    lines = [f"{computed} cases are computed, {sum(map(len, reasons.values()))} are skipped:"]
    for reason, names in sorted(reasons.items(), key=lambda pair: -len(pair[1])):
        listed = f": {', '.join(name.removeprefix('test_') for name in names)}" if named else ""
        lines.append(f"{len(names):4}  {reason}{listed}")
    return "\n".join(lines)


def main() -> None:
    """Print the number of computed cases, and the reasons for the others.

    With --names, print the name and the error of each case. With style names as further arguments, also execute the
    designs of cases with weights.
    """
    import tempfile

    reasons: dict[str, list[str]] = {}
    passed, named = 0, "--names" in sys.argv
    for case in cases():
        try:
            error_of = difference(case)
            if named:
                print(f"{case.name}: error {error_of:.2g} of the greatest value", flush=True)
            passed += 1
        except SystolicError as error:
            reasons.setdefault(skipped(error), []).append(case.name)
            continue
        for style in [name for name in sys.argv[1:] if name != "--names"] if case.weighted else []:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    compared, wrong = mismatches(case, Path(folder), style)
                    print(f"{case.name}, {style}: {wrong} of {compared:,} values differ from golden", flush=True)
                except Exception as error:
                    print(f"{case.name}, {style}: {type(error).__name__}: {error}", flush=True)
    print(summary_text(passed, reasons, named))


if __name__ == "__main__":
    main()
