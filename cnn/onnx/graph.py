"""The content of an ONNX file as frozen values: its operations in topological order and its constants as arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from boards.errors import InvalidValueError, RangeError, ShapeError, SystolicError, UnsupportedError, shown
from cnn.onnx.annotation import Annotation

Array: TypeAlias = npt.NDArray[Any]

MAX_NUMBERS = 64
"""The greatest number of axes, pads or sides."""


@dataclass(eq=False)
class RefusedError(SystolicError):
    """The error that an ONNX operation cannot become a layer. ``named`` makes it an UnsupportedError with its name.

    Attributes:
        reason: Why not, a sentence without full stop.
        operation: The operation that cannot become a layer; empty if it is the one being read.
    """

    reason: str
    operation: str = ""

    def message(self) -> str:
        return self.reason


def require(condition: bool, fault: str | SystolicError) -> None:
    """Raise ``fault`` unless the condition holds; a text becomes a RefusedError (operation cannot be a layer)."""
    if not condition:
        raise RefusedError(fault) if isinstance(fault, str) else fault


def named(error: SystolicError, node: object) -> SystolicError:
    """Return ``error`` with the name of the ONNX node added as its place."""
    if isinstance(error, RefusedError):
        return UnsupportedError(error.operation or str(node), error.reason, where=error.where, remedy=error.remedy)
    return error if error.where == str(node) else error.at(str(node))  # some layers name themselves


@dataclass(frozen=True, eq=False)
class OnnxOperation:
    """One node (operator with inputs, outputs and attributes) of an ONNX graph.

    Attributes:
        name: The node's name; often empty.
        kind: The operator, after its domain if that is not ONNX's own: ``com.microsoft.QGemm``.
        inputs: The names of the tensors it reads; "" for an optional input that is left out.
        outputs: The names of the tensors it computes.
        attributes: Numbers, texts, tuples of them, or arrays.
    """

    name: str
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.kind} {shown(self.name or self.outputs[0])}"

    def integer(self, key: str, default: int) -> int:
        """Return the value of the attribute ``key`` or its default; InvalidValueError if it is not a whole number."""
        value = self.attributes.get(key, default)
        require(isinstance(value, int), InvalidValueError(f"the attribute {key}", value, "a whole number"))
        return int(value)

    def integers(self, key: str, default: Sequence[int]) -> tuple[int, ...]:
        """Return the value of the attribute ``key`` or its default: a list of whole numbers."""
        values = self.attributes.get(key, default)
        fits = isinstance(values, (tuple, range)) and all(isinstance(value, int) for value in values)
        require(fits, InvalidValueError(f"the attribute {key}", values, "a list of whole numbers"))
        return tuple(values)

    def numbers(self, key: str) -> tuple[float, ...]:
        """Return the value of the attribute ``key``: a list of numbers."""
        values = self.attributes.get(key)
        fits = isinstance(values, tuple) and all(isinstance(value, (int, float)) for value in values)
        require(fits, InvalidValueError(f"the attribute {key}", values, "a list of numbers"))
        return tuple(values or ())

    def number(self, key: str, default: float) -> float:
        """Return the value of the attribute ``key`` or its default; InvalidValueError if it is not a number."""
        value = self.attributes.get(key, default)
        require(isinstance(value, (int, float)), InvalidValueError(f"the attribute {key}", value, "a number"))
        return float(value)

    def text(self, key: str, default: str) -> str:
        """Return the value of the attribute ``key`` or its default; InvalidValueError if it is not a text."""
        value = self.attributes.get(key, default)
        require(isinstance(value, str), InvalidValueError(f"the attribute {key}", value, "a text"))
        return str(value)


@dataclass(frozen=True, eq=False)
class Graph:
    """The graph of an ONNX file: operations in topological order, constants as arrays, and facts on its input.

    Attributes:
        name: The graph's name.
        opset: The version of the operators.
        input: The name of the input tensor.
        shape: The shape of the input: batch 1 and channels, followed by height and width, by a length or by nothing.
        outputs: The names of the output tensors.
        operations: The operations that an output depends on, in topological order.
        constants: The arrays of the initialisers, by name.
        last: Why the channels are the last side of the input (cnn.onnx.channels_last); "" if they are not.
        lowest: The integer of a black pixel in the input; None if the input holds floats.
        batch: The batch of the file, which is read as 1.
        annotations: The data types with which the file annotates its tensors, by tensor name.
    """

    name: str
    opset: int
    input: str
    shape: tuple[int, ...]
    outputs: tuple[str, ...]
    operations: tuple[OnnxOperation, ...]
    constants: Mapping[str, Array]
    last: str = ""
    lowest: int | None = None
    batch: int = 1
    annotations: Mapping[str, Annotation] = field(default_factory=dict)

    @property
    def readers(self) -> Counter[str]:
        """The number of operations that read each tensor, by its name; a graph output counts as one more reader."""
        return Counter([*(name for operation in self.operations for name in operation.inputs), *self.outputs])


def whole_numbers(array: Array) -> tuple[int, ...]:
    """Return the values of a constant tensor of integers as a tuple.

    Raises:
        ShapeError: The constant does not hold integers.
        RangeError: It has more than MAX_NUMBERS values.
    """
    require(array.dtype.kind in "iu", ShapeError("a constant of axes, sides or pads", array.dtype.name, "integers"))
    require(array.size <= MAX_NUMBERS, RangeError("the number of axes, sides or pads", array.size, 0, MAX_NUMBERS))
    return tuple(int(value) for value in np.asarray(array).ravel())
