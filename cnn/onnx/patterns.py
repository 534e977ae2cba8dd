"""Rewrites of a graph before it is read: groups of operators are replaced by one operator that computes the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import ChoiceError, InvalidValueError
from cnn.activations import FUNCTIONS
from cnn.onnx.activations import LOOK_UP
from cnn.onnx.channels_last import SOFTMAXES, to_first, to_last
from cnn.onnx.file import needed
from cnn.onnx.graph import Array, Graph, OnnxOperation, require
from cnn.onnx.layers import Layers
from cnn.onnx.operators import WRITTEN_OUT

# Replacing an operation whose function exporters write as several operators.

Replacement = Callable[[OnnxOperation, Mapping[str, OnnxOperation], Mapping[str, Array]], OnnxOperation | None]
"""A function of an operation, of the producer of each tensor and of the constants.

It returns an operation that replaces the given one, or None to keep it."""


def replaced(graph: Graph, replacement: Replacement) -> Graph:
    """Return the graph with each operation replaced by ``replacement``, and without operations that became unused."""
    producers = {name: operation for operation in graph.operations for name in operation.outputs}
    operations = [replacement(operation, producers, graph.constants) or operation for operation in graph.operations]
    if all(ours is theirs for ours, theirs in zip(operations, graph.operations, strict=True)):
        return graph
    return replace(graph, operations=needed(operations, graph.outputs))


# FusedConv and FusedGemm, which onnxruntime writes into optimised graphs, are replaced by a Conv or Gemm, the Add of
# the fourth input, and the activation.
#
#     FusedConv   activation(Conv(x, weights, bias) + sum), the parameters of the activation in one list
#     FusedGemm   activation(alpha · a · b + beta · c), one attribute for each parameter of the activation

FUSED_CONV, FUSED_GEMM = "com.microsoft.FusedConv", "com.microsoft.FusedGemm"

PARAMETERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("Celu", "Elu", "LeakyRelu", "ThresholdedRelu"), ("alpha",)),
    "Clip": ("min", "max"),
    "HardSigmoid": ("alpha", "beta"),
    "Selu": ("alpha", "gamma"),
    **dict.fromkeys(("HardSwish", "Relu", "Sigmoid", "Softplus", "Softsign", "Tanh"), ()),
}
"""Activations that can be fused, and the names of their parameters in the order of the list."""

PREFIX, LIST, NAME = "activation_", "activation_params", "activation"


def with_parts(graph: Graph) -> Graph:
    """Return the graph with each FusedConv and FusedGemm replaced by a Conv or Gemm, an Add and an activation."""
    operations: list[OnnxOperation] = []
    for operation in graph.operations:
        operations += _operations_of(operation) if _is_known(operation) else [operation]
    return replace(graph, operations=tuple(operations))


def refuse(_: Layers, operation: OnnxOperation) -> Layers:
    """Raise the error for a FusedConv or FusedGemm whose activation or parameters are not known."""
    activation = operation.attributes.get(NAME, "")
    require(activation == "" or activation in PARAMETERS, ChoiceError(NAME, activation, sorted(PARAMETERS)))
    count = len(PARAMETERS.get(str(activation), ()))
    raise InvalidValueError(LIST, operation.attributes.get(LIST), f"at most {count} numbers")


def _is_known(operation: OnnxOperation) -> bool:
    activation, numbers = operation.attributes.get(NAME, ""), operation.attributes.get(LIST, ())
    known = activation == "" or activation in PARAMETERS
    fits = isinstance(numbers, tuple) and len(numbers) <= len(PARAMETERS.get(str(activation), ()))
    fits = fits and all(isinstance(number, float) for number in numbers)
    return (
        operation.kind in (FUSED_CONV, FUSED_GEMM) and bool(operation.outputs and operation.inputs) and known and fits
    )


def _operations_of(operation: OnnxOperation) -> list[OnnxOperation]:
    """Return the plain operators that replace a FusedConv or FusedGemm, in order."""
    activation, output = str(operation.attributes.get(NAME, "")), operation.outputs[0]
    own = {key: value for key, value in operation.attributes.items() if not key.startswith(NAME)}
    kind = "Conv" if operation.kind == FUSED_CONV else "Gemm"
    summand = operation.inputs[3] if len(operation.inputs) > 3 and kind == "Conv" else ""
    steps: list[tuple[str, tuple[str, ...], dict[str, Any]]] = [(kind, operation.inputs[:3], own)]
    if summand:
        steps.append(("Add", (summand,), {}))
    if activation:
        steps.append((activation, (), _parameters(operation, activation)))
    parts, source = [], ""
    for number, (step, inputs, attributes) in enumerate(steps, 1):
        name = output if number == len(steps) else f"{output}/{step}"
        reads = inputs if number == 1 else (source, *inputs)
        parts.append(OnnxOperation(operation.name or output, step, reads, (name,), attributes))
        source = name
    return parts


def _parameters(operation: OnnxOperation, activation: str) -> dict[str, Any]:
    names, numbers = PARAMETERS[activation], operation.attributes.get(LIST, ())
    listed = dict(zip(names, numbers, strict=False))
    named = {name: operation.attributes[PREFIX + name] for name in names if PREFIX + name in operation.attributes}
    return {**listed, **named}


# GELU written as several operators is replaced by one Gelu.
#
#     erf     x · 0.5 · (1 + Erf(x / √2))                          PyTorch before opset 20, TensorFlow, Keras
#     tanh    0.5 · x · (1 + Tanh(√(2/π) · (x + 0.044715 · x³)))
#
# Exporters differ in the order of the factors, and multiply or divide. The operators before a Mul or Div are therefore
# evaluated as a function of one tensor at some points, and the values are compared with the values of GELU.

Doubles = npt.NDArray[np.float64]

POINTS: Doubles = np.linspace(-6.0, 6.0, 97)
"""The inputs at which a function is compared with GELU."""

CLOSE = 1e-4
"""The tolerance of a value. 16-bit constants cause a third of it; the two forms of GELU differ by four times it."""

FORMS = {"gelu": "none", "gelu_tanh": "tanh"}
"""The attribute ``approximate`` of a Gelu, by function."""

MAX_PARTS = 12
"""Limit for the operators of a GELU. The longest form has 9, and some files compute constants in further ones."""

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
"""The number of inputs of each operator."""


def with_gelus(graph: Graph) -> Graph:
    """Return the graph with one Gelu operator for each GELU that is written as several operators."""
    return replaced(graph, _gelu_of)


def _gelu_of(
    operation: OnnxOperation, producers: Mapping[str, OnnxOperation], constants: Mapping[str, Array]
) -> OnnxOperation | None:
    """Return a Gelu operator that computes this operation's output; None if that is not the GELU of one tensor."""
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
                return OnnxOperation(operation.name, "Gelu", (source,), operation.outputs, attributes)
    return None


def _parts_of(operation: OnnxOperation, producers: Mapping[str, OnnxOperation]) -> Iterator[OnnxOperation]:
    """Yield the operation and those before it that may be parts of a GELU, the nearest first."""
    waiting, visited = [operation], {id(operation)}
    while waiting and len(visited) <= MAX_PARTS:
        part = waiting.pop(0)
        yield part
        for producer in filter(None, map(producers.get, part.inputs)):
            if producer.kind in _PARTS and id(producer) not in visited:
                visited.add(id(producer))
                waiting.append(producer)


class _Values:
    """An evaluator of tensors as functions of the tensor ``source``, at the sample inputs POINTS."""

    def __init__(self, source: str, producers: Mapping[str, OnnxOperation], constants: Mapping[str, Array]) -> None:
        self._producers, self._constants = producers, constants
        self._known: dict[str, Doubles | None] = {source: POINTS}

    def of(self, name: str) -> Doubles | None:
        """Return a tensor's values at the sample inputs; None if it does not depend on ``source`` and numbers alone."""
        if name not in self._known:
            self._known[name] = None  # for tensors that depend on themselves, and for more parts than a GELU has
            if len(self._known) <= 3 * MAX_PARTS:
                self._known[name] = self._evaluate(name)
        return self._known[name]

    def _evaluate(self, name: str) -> Doubles | None:
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
        with np.errstate(all="ignore"):  # values that are not finite differ from GELU's
            return np.asarray(_PARTS[operation.kind](*numbers), np.float64)


def _number_of(value: Any) -> Doubles | None:
    """Return a constant of exactly one number as an array; None for any other value."""
    if isinstance(value, (int, float)):
        return np.asarray(value, np.float64)
    if not isinstance(value, np.ndarray) or value.size != 1 or value.dtype.kind not in "fiu":
        return None
    return value.astype(np.float64).reshape(())


# Norms by statistics of each image, which exporters of older opsets write as several operators, are replaced by one
# operator. No layer computes it, and the error can then name the norm instead of its parts.
#
#     (x − mean(x)) / √(mean((x − mean(x))²) + ε)      LayerNormalization, over any sides
#     x / √(mean(x²) + ε)                               RMSNormalization

MAX_STEPS = 6
"""Limit for the operators between the mean of the squares and the division by its root."""

_STEPS = ("Add", "Clip", "Div", "Max", "Pow", "Reciprocal", "Sqrt")


def with_norms(graph: Graph) -> Graph:
    """Return the graph with one operator per LayerNormalization or RMSNormalization written as several operators."""
    return replaced(graph, _norm_of)


def _norm_of(
    operation: OnnxOperation, producers: Mapping[str, OnnxOperation], _: Mapping[str, Array]
) -> OnnxOperation | None:
    if operation.kind not in ("Div", "Mul") or len(operation.inputs) != 2:
        return None
    pairs = [operation.inputs] if operation.kind == "Div" else [operation.inputs, operation.inputs[::-1]]
    for numerator, scale in pairs:
        if not _is_root_of_squares(producers.get(scale), numerator, producers):
            continue
        centred = producers.get(numerator)
        if centred is not None and centred.kind == "Sub" and _is_mean_of(centred, producers):
            kind, source = "LayerNormalization", centred.inputs[0]
        else:
            kind, source = "RMSNormalization", numerator
        return OnnxOperation(operation.name, kind + WRITTEN_OUT, (source,), operation.outputs, {})
    return None


def _is_root_of_squares(
    operation: OnnxOperation | None, numerator: str, producers: Mapping[str, OnnxOperation]
) -> bool:
    """Return whether the operation computes √(mean(numerator²) + ε), the divisor of a norm, or its reciprocal."""
    has_root = False
    for _ in range(MAX_STEPS):
        if operation is None or operation.kind == "ReduceMean":
            break
        if operation.kind not in _STEPS:
            return False
        has_root = has_root or operation.kind in ("Sqrt", "Pow")
        sources = [producers[name] for name in operation.inputs if name in producers]
        varying = [source for source in sources if source.kind != "Constant"]
        operation = varying[0] if len(varying) == 1 else None
    if operation is None or operation.kind != "ReduceMean":
        return False
    squares = producers.get(operation.inputs[0])
    return has_root and squares is not None and _is_square_of(squares, numerator)


def _is_square_of(operation: OnnxOperation, numerator: str) -> bool:
    if operation.kind == "Mul":
        return operation.inputs == (numerator, numerator)
    return operation.kind == "Pow" and operation.inputs[:1] == (numerator,)


def _is_mean_of(centred: OnnxOperation, producers: Mapping[str, OnnxOperation]) -> bool:
    mean = producers.get(centred.inputs[1]) if len(centred.inputs) == 2 else None
    return mean is not None and mean.kind == "ReduceMean" and mean.inputs[:1] == centred.inputs[:1]


# A Gather of constants by the integers of a map, as this project exports tables, is replaced by one LookUp.
#
#     Gather(values, Cast(x / scale + offset))        values[⌊x / scale + offset⌋]

_INTEGERS = (6, 7)
"""The numbers of INT32 and INT64 in TensorProto.DataType."""


def with_look_ups(graph: Graph) -> Graph:
    """Return the graph with one LookUp operator for each Gather of a constant table by a map's integers."""
    return replaced(graph, _looked_up)


def _looked_up(
    operation: OnnxOperation, producers: Mapping[str, OnnxOperation], constants: Mapping[str, Array]
) -> OnnxOperation | None:
    """Return a LookUp operator that replaces the operation; None if it is not a Gather from a constant table."""
    axis = operation.attributes.get("axis", 0)
    is_table = operation.kind == "Gather" and axis == 0 and {*operation.inputs[:1]} <= {*constants}
    cast = _producer(operation, 1, "Cast", producers) if is_table else None
    added = _producer(cast, 0, "Add", producers)
    divided = _producer(added, 0, "Div", producers)
    if cast is None or added is None or divided is None or cast.attributes.get("to") not in _INTEGERS:
        return None
    if not (len(added.inputs) == len(divided.inputs) == 2 and {added.inputs[1], divided.inputs[1]} <= {*constants}):
        return None
    inputs = (*divided.inputs, added.inputs[1], operation.inputs[0])
    return OnnxOperation(operation.name, LOOK_UP, inputs, operation.outputs, {})


def _producer(
    operation: OnnxOperation | None, place: int, kind: str, producers: Mapping[str, OnnxOperation]
) -> OnnxOperation | None:
    """Return the operation that computes input ``place`` of the operation, if it is of this kind; else None."""
    name = operation.inputs[place] if operation is not None and place < len(operation.inputs) else ""
    producer = producers.get(name)
    return producer if producer is not None and producer.kind == kind else None


# A comparison and a Where, as PyTorch exports its Threshold with a value of 0, are replaced by one ThresholdedRelu.

_KEPT_WHERE = {"Greater": 1, "LessOrEqual": 2}
"""The input of the Where that is the compared tensor x: Where(x > t, x, 0) or Where(x <= t, 0, x)."""


def with_thresholds(graph: Graph) -> Graph:
    """Return the graph with one ThresholdedRelu for each comparison and Where that compute x > t ? x : 0."""
    return replaced(graph, _thresholded)


def _thresholded(
    operation: OnnxOperation, producers: Mapping[str, OnnxOperation], constants: Mapping[str, Array]
) -> OnnxOperation | None:
    """Return a ThresholdedRelu that replaces a Where and its comparison; None if they compute something else."""
    if operation.kind != "Where" or len(operation.inputs) != 3:
        return None
    compared = producers.get(operation.inputs[0])
    if compared is None or compared.kind not in _KEPT_WHERE or len(compared.inputs) != 2:
        return None
    place = _KEPT_WHERE[compared.kind]
    threshold, value = (
        _number(name, producers, constants) for name in (compared.inputs[1], operation.inputs[3 - place])
    )
    if operation.inputs[place] != compared.inputs[0] or threshold is None or value != 0:
        return None
    return OnnxOperation(
        operation.name, "ThresholdedRelu", compared.inputs[:1], operation.outputs, {"alpha": threshold}
    )


def _number(name: str, producers: Mapping[str, OnnxOperation], constants: Mapping[str, Array]) -> float | None:
    """Return the number in a constant tensor of exactly one value; None for any other tensor."""
    producer = producers.get(name)
    value = constants.get(name) if producer is None else _value(producer)
    return float(value.ravel()[0]) if value is not None and value.size == 1 else None


def _value(operation: OnnxOperation) -> Array | None:
    """Return the array of an ONNX Constant; None for other operations."""
    value = operation.attributes.get("value")
    return value if operation.kind == "Constant" and isinstance(value, np.ndarray) else None


# Before opset 13, PyTorch writes a Softmax between two Transposes that swap the channels with the last side and back.
# The Transposes are replaced by ones that move the channels to the end and back, because cnn.onnx.channels_last reads
# these. The order of the other sides does not matter to a softmax over the last side.


def with_channels_last(graph: Graph) -> Graph:
    """Return the graph with Transposes around a softmax changed to move the channels to the end and back."""
    producers = {name: operation for operation in graph.operations for name in operation.outputs}
    changed: dict[int, OnnxOperation] = {}
    for back in graph.operations:
        changed.update(_swapped(graph, back, producers))
    if not changed:
        return graph
    operations = (changed.get(id(operation), operation) for operation in graph.operations)
    return replace(graph, operations=tuple(operations))


def _swapped(graph: Graph, back: OnnxOperation, producers: Mapping[str, OnnxOperation]) -> dict[int, OnnxOperation]:
    """Return replacements for the two Transposes around a softmax, by the ``id`` of the old one; empty if it has none.

    The result is empty if ``back`` is not the second of two such Transposes.
    """
    softmax = _before(back, ("Transpose",), producers)
    before = _before(softmax, SOFTMAXES, producers)
    if softmax is None or before is None or before.kind != "Transpose":
        return {}
    if any(graph.readers[between.outputs[0]] != 1 for between in (before, softmax)):
        return {}
    order, undone = _order_of(before), _order_of(back)
    rank = len(order)
    is_swap = rank > 2 and (order[0], order[-1]) == (0, 1)
    if not is_swap or [order[axis] for axis in undone if axis < rank] != list(range(rank)):
        return {}
    if softmax.attributes.get("axis") not in (-1, rank - 1):
        return {}
    return {id(before): _in_order(before, to_last(rank)), id(back): _in_order(back, to_first(rank))}


def _before(
    operation: OnnxOperation | None, kinds: Sequence[str], producers: Mapping[str, OnnxOperation]
) -> OnnxOperation | None:
    """Return the producer of the operation's first input, if the operation is of one of these kinds; else None."""
    reads = operation.inputs if operation is not None and operation.kind in kinds else ()
    return producers.get(reads[0]) if reads else None


def _order_of(operation: OnnxOperation) -> tuple[int, ...]:
    """Return the axes order (``perm``) of a Transpose; () if it is missing or not valid."""
    order = operation.attributes.get("perm")
    if not (isinstance(order, tuple) and all(isinstance(axis, int) for axis in order)):
        return ()
    return order if sorted(order) == list(range(len(order))) else ()


def _in_order(operation: OnnxOperation, order: tuple[int, ...]) -> OnnxOperation:
    return replace(operation, attributes={**operation.attributes, "perm": order})
