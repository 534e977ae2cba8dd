"""What an ONNX file says, as frozen values: operations in order, and the arrays of its constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from boards.errors import NetworkError, shown

Array: TypeAlias = npt.NDArray[Any]

MOST_NUMBERS = 64
"""Of axes, pads or sides."""


class RefusedError(NetworkError):
    """Why one operation does not become a layer: the sentence behind its name."""


def require(condition: bool, sentence: str) -> None:
    """RefusedError with the sentence where the condition does not hold."""
    if not condition:
        raise RefusedError(sentence)


@dataclass(frozen=True, eq=False)
class Operation:
    """One node of the graph. inputs: tensors by name, "" where an optional one is left out.

    attributes: numbers, texts, tuples of them, or arrays.
    """

    name: str
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.kind} {shown(self.name or self.outputs[0])}"

    def integer(self, key: str, default: int) -> int:
        """The attribute ``key``."""
        value = self.attributes.get(key, default)
        return int(value) if isinstance(value, int) else self._refuse(key, "a whole number")

    def integers(self, key: str, default: Sequence[int]) -> tuple[int, ...]:
        """The attribute ``key``, a list of whole numbers."""
        values = self.attributes.get(key, default)
        fits = isinstance(values, (tuple, range)) and all(isinstance(value, int) for value in values)
        return tuple(values) if fits else self._refuse(key, "a list of whole numbers")

    def numbers(self, key: str) -> tuple[float, ...]:
        """The attribute ``key``, a list of numbers."""
        values = self.attributes.get(key)
        fits = isinstance(values, tuple) and all(isinstance(value, (int, float)) for value in values)
        return tuple(values or ()) if fits else self._refuse(key, "a list of numbers")

    def number(self, key: str, default: float) -> float:
        """The attribute ``key``."""
        value = self.attributes.get(key, default)
        return float(value) if isinstance(value, (int, float)) else self._refuse(key, "a number")

    def text(self, key: str, default: str) -> str:
        """The attribute ``key``."""
        value = self.attributes.get(key, default)
        return value if isinstance(value, str) else self._refuse(key, "a text")

    def _refuse(self, key: str, required: str) -> NoReturn:
        raise RefusedError(f"its attribute {key} must be {required}, not {shown(self.attributes.get(key))}")


@dataclass(frozen=True, eq=False)
class Graph:
    """operations: in topological order, those alone that an output needs. shape: of the input, batch × channels, and
    height × width or a length where it has such. opset: the version of the operators. last: why the channels of the
    input stand last, "" where they do not. lowest: the integer that a black pixel is in the input; None where it
    holds floats."""

    name: str
    opset: int
    input: str
    shape: tuple[int, ...]
    outputs: tuple[str, ...]
    operations: tuple[Operation, ...]
    constants: Mapping[str, Array]
    last: str = ""
    lowest: int | None = None

    @property
    def readers(self) -> Counter[str]:
        """How many operations read each tensor; an output of the graph has one reader more."""
        return Counter([*(name for operation in self.operations for name in operation.inputs), *self.outputs])


def whole_numbers(array: Array) -> tuple[int, ...]:
    """The values of a constant that holds whole numbers; RefusedError where it holds others, or more than a few."""
    require(array.dtype.kind in "iu" and array.size <= MOST_NUMBERS, f"whole numbers are needed, not {array.dtype}")
    return tuple(int(value) for value in np.asarray(array).ravel())
