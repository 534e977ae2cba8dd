"""The cases that the package onnx brings for its backends: models with their inputs and what must come out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.backend.test
from onnx import numpy_helper, version_converter

from boards.errors import NetworkError
from cnn.float_model import run_float
from cnn.onnx.file import FIRST_OPSET
from cnn.onnx.network import network_of
from cnn.onnx.operators import BUILDERS

DATA = Path(onnx.backend.test.__file__).parent / "data"
FOLDERS = ("node", "pytorch-converted", "pytorch-operator", "simple")
TOLERANCE = 1e-4
"""Relative to the greatest value of an output, with 1e-5 for those that are all small."""


@dataclass(frozen=True)
class Case:
    """A model of which the first input is the picture and the others are constants, and its arrays."""

    name: str
    model: Any
    picture: np.ndarray[Any, Any]
    expected: tuple[np.ndarray[Any, Any], ...]


def cases() -> Iterator[Case]:
    """Those of operators that become layers, of one picture with four sides."""
    for folder in (path for kind in FOLDERS for path in sorted((DATA / kind).iterdir())):
        model = onnx.load(folder / "model.onnx")
        if not {node.op_type for node in model.graph.node} <= BUILDERS.keys() | {"Constant"}:
            continue
        data = next(iter(sorted(folder.glob("test_data_set_*"))), None)
        if data is None:
            continue
        case = _case(folder.name, model, *(_arrays(data, kind) for kind in ("input", "output")))
        if case is not None:
            yield case


def _arrays(folder: Path, kind: str) -> list[np.ndarray[Any, Any] | None]:
    files = sorted(folder.glob(f"{kind}_*.pb"), key=lambda path: int(path.stem.rpartition("_")[2]))
    return [_array(path) for path in files]


def _array(path: Path) -> np.ndarray[Any, Any] | None:
    try:
        return numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))
    except Exception:
        return None  # a sequence, an optional


def _case(name: str, model: Any, inputs: list[Any], outputs: list[Any]) -> Case | None:
    held = {tensor.name for tensor in model.graph.initializer}
    free = [value for value in model.graph.input if value.name not in held]
    if any(array is None for array in [*inputs, *outputs]) or not inputs or len(inputs) > len(model.graph.input):
        return None
    first = inputs[0]
    if first.ndim != 4 or first.dtype != np.float32:
        return None
    for value, array in zip(free[1:], inputs[1:], strict=False):
        model.graph.initializer.append(numpy_helper.from_array(array, value.name))
    if model.opset_import[0].version < FIRST_OPSET:
        model = version_converter.convert_version(model, FIRST_OPSET)
    return Case(name, model, first, tuple(outputs))


def difference(case: Case) -> float:
    """The greatest error of any output, as a share of its greatest value. NetworkError where the model is refused."""
    dimensions = case.model.graph.input[0].type.tensor_type.shape.dim
    del dimensions[:]
    for side in (1, *case.picture.shape[1:]):
        dimensions.add().dim_value = side
    network = network_of(case.model, case.name, "case")
    frames = [run_float(network, np.ascontiguousarray(picture)) for picture in case.picture]
    results = [np.stack([frame[index] for frame in frames]) for index in network.outputs]
    assert len(results) == len(case.expected)
    return max(_error(result.ravel(), wanted.ravel()) for result, wanted in zip(results, case.expected, strict=True))


def _error(result: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> float:
    if result.size != expected.size:
        return float("inf")
    return float(np.abs(result - expected).max(initial=0) / max(0.1, np.abs(expected).max(initial=0)))


def main() -> None:
    """Prints what every case gave."""
    for case in cases():
        try:
            print(f"{case.name}: error {difference(case):.2g} of the greatest value")
        except NetworkError as error:
            print(f"refused: {error}")


if __name__ == "__main__":
    main()
