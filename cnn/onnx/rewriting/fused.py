"""onnxruntime's FusedConv and FusedGemm, which it writes where it saves the graph that it has optimised → a Conv or
Gemm, the Add of its fourth input, and its activation.

    FusedConv   activation(Conv(x, weights, bias) + sum), the parameters of the activation in a list
    FusedGemm   activation(alpha · a · b + beta · c), each parameter of the activation by its name
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from boards.errors import ChoiceError, InvalidValueError
from cnn.onnx.graph import Graph, Operation, require
from cnn.onnx.layers import Layers

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
    operations: list[Operation] = []
    for operation in graph.operations:
        operations += _parts_of(operation) if _is_known(operation) else [operation]
    return replace(graph, operations=tuple(operations))


def refuse(_: Layers, operation: Operation) -> Layers:
    """Raise the error of an operator that could not be taken apart."""
    activation = operation.attributes.get(NAME, "")
    require(activation == "" or activation in PARAMETERS, ChoiceError(NAME, activation, sorted(PARAMETERS)))
    count = len(PARAMETERS.get(str(activation), ()))
    raise InvalidValueError(LIST, operation.attributes.get(LIST), f"at most {count} numbers")


def _is_known(operation: Operation) -> bool:
    activation, numbers = operation.attributes.get(NAME, ""), operation.attributes.get(LIST, ())
    known = activation == "" or activation in PARAMETERS
    fits = isinstance(numbers, tuple) and len(numbers) <= len(PARAMETERS.get(str(activation), ()))
    fits = fits and all(isinstance(number, float) for number in numbers)
    return (
        operation.kind in (FUSED_CONV, FUSED_GEMM) and bool(operation.outputs and operation.inputs) and known and fits
    )


def _parts_of(operation: Operation) -> list[Operation]:
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
        parts.append(Operation(operation.name or output, step, reads, (name,), attributes))
        source = name
    return parts


def _parameters(operation: Operation, activation: str) -> dict[str, Any]:
    names, numbers = PARAMETERS[activation], operation.attributes.get(LIST, ())
    listed = dict(zip(names, numbers, strict=False))
    named = {name: operation.attributes[PREFIX + name] for name in names if PREFIX + name in operation.attributes}
    return {**listed, **named}
