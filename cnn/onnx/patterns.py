"""Functions of a graph that put one operator in the place of several that mean the same, before the graph is read."""

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

# Operations in the place of those that are written by their parts.

Replacement = Callable[[OnnxOperation, Mapping[str, OnnxOperation], Mapping[str, Array]], OnnxOperation | None]
"""A function of an operation, of the producers of tensors and of the constants. It returns the operation that replaces
the first, or None if that stays."""


def replaced(graph: Graph, replacement: Replacement) -> Graph:
    """The graph with what its operations become; those that nothing else reads are left out."""
    producers = {name: operation for operation in graph.operations for name in operation.outputs}
    operations = [replacement(operation, producers, graph.constants) or operation for operation in graph.operations]
    if all(ours is theirs for ours, theirs in zip(operations, graph.operations, strict=True)):
        return graph
    return replace(graph, operations=needed(operations, graph.outputs))


# onnxruntime's FusedConv and FusedGemm, which it writes where it saves the graph that it has optimised → a Conv or
# Gemm, the Add of its fourth input, and its activation.
#
#     FusedConv   activation(Conv(x, weights, bias) + sum), the parameters of the activation in a list
#     FusedGemm   activation(alpha · a · b + beta · c), each parameter of the activation by its name

FUSED_CONV, FUSED_GEMM = "com.microsoft.FusedConv", "com.microsoft.FusedGemm"

PARAMETERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("Celu", "Elu", "LeakyRelu", "ThresholdedRelu"), ("alpha",)),
    "Clip": ("min", "max"),
    "HardSigmoid": ("alpha", "beta"),
    "Selu": ("alpha", "gamma"),
    **dict.fromkeys(("HardSwish", "Relu", "Sigmoid", "Softplus", "Softsign", "Tanh"), ()),
}
"""Activations that may be fused, and the names of their parameters in the order of the list."""

PREFIX, LIST, NAME = "activation_", "activation_params", "activation"


def with_parts(graph: Graph) -> Graph:
    """Return the graph with these operators replaced by those that they stand for."""
    operations: list[OnnxOperation] = []
    for operation in graph.operations:
        operations += _operations_of(operation) if _is_known(operation) else [operation]
    return replace(graph, operations=tuple(operations))


def refuse(_: Layers, operation: OnnxOperation) -> Layers:
    """Raise the error of an operator that could not be taken apart."""
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
    """The operators in their order. What is between them has names of its own."""
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


# GELU as exporters write it, by its parts → one Gelu.
#
#     erf     x · 0.5 · (1 + Erf(x / √2))                          PyTorch before opset 20, TensorFlow, Keras
#     tanh    0.5 · x · (1 + Tanh(√(2/π) · (x + 0.044715 · x³)))
#
# In which order its factors stand, and whether it is divided or multiplied, is each exporter's own. So what stands
# before an operator is taken as a function of one tensor, and its values are compared with those of GELU.

Doubles = npt.NDArray[np.float64]

POINTS: Doubles = np.linspace(-6.0, 6.0, 97)
"""The inputs at which a function is compared with GELU."""

CLOSE = 1e-4
"""The tolerance of a value. Constants of 16 bits cause a third of it; both forms of GELU differ by four times it."""

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
"""The number of inputs of each operator."""


def with_gelus(graph: Graph) -> Graph:
    """The graph with one Gelu for each that is written by its parts; those that nothing else reads are left out."""
    return replaced(graph, _gelu_of)


def _gelu_of(
    operation: OnnxOperation, producers: Mapping[str, OnnxOperation], constants: Mapping[str, Array]
) -> OnnxOperation | None:
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
                return OnnxOperation(operation.name, "Gelu", (source,), operation.outputs, attributes)
    return None


def _parts_of(operation: OnnxOperation, producers: Mapping[str, OnnxOperation]) -> Iterator[OnnxOperation]:
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
    """The values of tensors if ``source`` has the values POINTS."""

    def __init__(self, source: str, producers: Mapping[str, OnnxOperation], constants: Mapping[str, Array]) -> None:
        self._producers, self._constants = producers, constants
        self._known: dict[str, Doubles | None] = {source: POINTS}

    def of(self, name: str) -> Doubles | None:
        """Return the values of a tensor; None if it depends on another tensor too, or on more than single numbers."""
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


# Norms by statistics of each picture, written out by their parts, as exporters of older opsets do → one operator, so
# that what no layer does is named as what it is.
#
#     (x − mean(x)) / √(mean((x − mean(x))²) + ε)      LayerNormalization, over whichever sides
#     x / √(mean(x²) + ε)                               RMSNormalization

MOST_STEPS = 6
"""Operators between the mean of squares and what is divided by its root."""

_STEPS = ("Add", "Clip", "Div", "Max", "Pow", "Reciprocal", "Sqrt")


def with_norms(graph: Graph) -> Graph:
    """Return the graph with one operator for each norm that is written by its parts."""
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
    """Return whether it is the root of the numerator's mean square plus a number, or the reciprocal of such a root."""
    has_root = False
    for _ in range(MOST_STEPS):
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


# A Gather of constants by what a map's integers are, as tables are written here → one LookUp.
#
# Gather(values, Cast(x / scale + offset))        values[⌊x / scale + offset⌋]

_INTEGERS = (6, 7)
"""INT32 and INT64, as ONNX numbers them."""


def with_look_ups(graph: Graph) -> Graph:
    """The graph with one LookUp for each table that is written so; what nothing else reads is left out."""
    return replaced(graph, _looked_up)


def _looked_up(
    operation: OnnxOperation, producers: Mapping[str, OnnxOperation], constants: Mapping[str, Array]
) -> OnnxOperation | None:
    """None of a Gather of anything else."""
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
    """Return the producer of an input if it is of that kind."""
    name = operation.inputs[place] if operation is not None and place < len(operation.inputs) else ""
    producer = producers.get(name)
    return producer if producer is not None and producer.kind == kind else None


# A comparison and a choice, as PyTorch exports its Threshold with a value of 0 → one ThresholdedRelu.

_KEPT_WHERE = {"Greater": 1, "LessOrEqual": 2}
"""Which input of the Where is the tensor that is compared: x where x > t, or where not x <= t."""


def with_thresholds(graph: Graph) -> Graph:
    """The graph with one ThresholdedRelu for each that is written so; what nothing else reads is left out."""
    return replaced(graph, _thresholded)


def _thresholded(
    operation: OnnxOperation, producers: Mapping[str, OnnxOperation], constants: Mapping[str, Array]
) -> OnnxOperation | None:
    """What a Where gives; None where it chooses otherwise."""
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
    """A constant of one value; None of others."""
    producer = producers.get(name)
    value = constants.get(name) if producer is None else _value(producer)
    return float(value.ravel()[0]) if value is not None and value.size == 1 else None


def _value(operation: OnnxOperation) -> Array | None:
    """Of a Constant."""
    value = operation.attributes.get("value")
    return value if operation.kind == "Constant" and isinstance(value, np.ndarray) else None


# A Softmax between two Transposes that swap the channels with the last side and back, as PyTorch writes it before
# opset 13 → the same with the channels taken last and back, which layers read.
#
# A softmax over the last side asks nothing of the order of the other ones. So any order that has the channels last
# will do, where the second Transpose undoes the first.


def with_channels_last(graph: Graph) -> Graph:
    """The graph with such Transposes in the order that layers read."""
    producers = {name: operation for operation in graph.operations for name in operation.outputs}
    changed: dict[int, OnnxOperation] = {}
    for back in graph.operations:
        changed.update(_swapped(graph, back, producers))
    if not changed:
        return graph
    operations = (changed.get(id(operation), operation) for operation in graph.operations)
    return replace(graph, operations=tuple(operations))


def _swapped(graph: Graph, back: OnnxOperation, producers: Mapping[str, OnnxOperation]) -> dict[int, OnnxOperation]:
    """Of a Transpose behind a softmax behind another one: what both are instead; nothing where they are otherwise."""
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
    """What gives the first input of an operation of these kinds."""
    reads = operation.inputs if operation is not None and operation.kind in kinds else ()
    return producers.get(reads[0]) if reads else None


def _order_of(operation: OnnxOperation) -> tuple[int, ...]:
    """Of a Transpose; nothing where the file does not say one."""
    order = operation.attributes.get("perm")
    if not (isinstance(order, tuple) and all(isinstance(axis, int) for axis in order)):
        return ()
    return order if sorted(order) == list(range(len(order))) else ()


def _in_order(operation: OnnxOperation, order: tuple[int, ...]) -> OnnxOperation:
    return replace(operation, attributes={**operation.attributes, "perm": order})
