"""GELU as exporters write it, by its parts → one Gelu.

    erf     x · 0.5 · (1 + Erf(x / √2))                          PyTorch before opset 20, TensorFlow, Keras
    tanh    0.5 · x · (1 + Tanh(√(2/π) · (x + 0.044715 · x³)))

In which order its factors stand, and whether it is divided or multiplied, is each exporter's own. So what stands before
an operator is taken as a function of one tensor, and its values are compared with those of GELU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cnn.activations import FUNCTIONS
from cnn.onnx.graph import Array, Graph, Operation
from cnn.onnx.rewriting.replaced import replaced

Doubles = npt.NDArray[np.float64]

POINTS: Doubles = np.linspace(-6.0, 6.0, 97)
"""Where values are compared."""

CLOSE = 1e-4
"""How far a value may be off: constants of 16 bits are, by a third of it. Both forms differ by four times as much."""

FORMS = {"gelu": "none", "gelu_tanh": "tanh"}
"""Function → ``approximate`` of a Gelu."""

MOST_PARTS = 12
"""Operators of a GELU: the longest form has 9, and constants are worked out in some."""

_LAST = ("Mul", "Div")
_CURVES = ("Erf", "Tanh")
_PARTS: Mapping[str, Callable[..., Any]] = {
    "Erf": lambda x: FUNCTIONS["erf"].values(x),
    "Tanh": np.tanh,
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Pow": np.power,
    "Sqrt": np.sqrt,
    "Identity": np.positive,
}
_TAKES = {kind: 2 if kind in ("Add", "Sub", "Mul", "Div", "Pow") else 1 for kind in _PARTS}
"""How many inputs each has."""


def with_gelus(graph: Graph) -> Graph:
    """The graph with one Gelu for each that is written by its parts; those that nothing else reads are left out."""
    return replaced(graph, _gelu_of)


def _gelu_of(
    operation: Operation, producers: Mapping[str, Operation], constants: Mapping[str, Array]
) -> Operation | None:
    """A Gelu that gives what the operation gives; None where that is another function, or one of several tensors."""
    parts = list(_parts_of(operation, producers)) if operation.kind in _LAST else []
    if not any(part.kind in _CURVES for part in parts):
        return None
    for source in dict.fromkeys(name for part in parts for name in part.inputs):
        values = _Values(source, producers, constants).of(operation.outputs[0])
        if values is None or values.shape != POINTS.shape:
            continue
        for function, approximate in FORMS.items():
            if np.abs(values - FUNCTIONS[function].values(POINTS)).max() < CLOSE:
                attributes = {"approximate": approximate}
                return Operation(operation.name, "Gelu", (source,), operation.outputs, attributes)
    return None


def _parts_of(operation: Operation, producers: Mapping[str, Operation]) -> Iterator[Operation]:
    """The operation and those before it that may be parts of a function, the nearest first."""
    waiting, visited = [operation], {id(operation)}
    while waiting and len(visited) <= MOST_PARTS:
        part = waiting.pop(0)
        yield part
        for producer in filter(None, map(producers.get, part.inputs)):
            if producer.kind in _PARTS and id(producer) not in visited:
                visited.add(id(producer))
                waiting.append(producer)


class _Values:
    """What tensors are worth where ``source`` is worth POINTS."""

    def __init__(self, source: str, producers: Mapping[str, Operation], constants: Mapping[str, Array]) -> None:
        self._producers, self._constants = producers, constants
        self._known: dict[str, Doubles | None] = {source: POINTS}

    def of(self, name: str) -> Doubles | None:
        """None where it depends on another tensor too, or on more than single numbers."""
        if name not in self._known:
            self._known[name] = None  # what reads itself has no value, nor what has more parts than a GELU
            if len(self._known) <= 3 * MOST_PARTS:
                self._known[name] = self._worked_out(name)
        return self._known[name]

    def _worked_out(self, name: str) -> Doubles | None:
        constant = _number_of(self._constants.get(name))
        operation = self._producers.get(name)
        if constant is not None or operation is None:
            return constant
        if operation.kind == "Constant":
            return _number_of(next(iter(operation.attributes.values()), None))
        if operation.kind not in _PARTS:
            return None
        inputs = [self.of(part) for part in operation.inputs]
        numbers = [values for values in inputs if values is not None]
        if len(numbers) < len(inputs) or len(numbers) != _TAKES[operation.kind]:
            return None
        with np.errstate(all="ignore"):  # what is not finite is no GELU
            return np.asarray(_PARTS[operation.kind](*numbers), np.float64)


def _number_of(value: Any) -> Doubles | None:
    """A constant that is one number."""
    if isinstance(value, (int, float)):
        return np.asarray(value, np.float64)
    if not isinstance(value, np.ndarray) or value.size != 1 or value.dtype.kind not in "fiu":
        return None
    return value.astype(np.float64).reshape(())
