"""Compares the datatypes that a file annotates tensors with, and the values that the tensors' layers can give.

An annotation is not an operator and changes no value. It states which values a tensor has, so either it is true or the
file contradicts itself. If nothing quantises the sums of a layer, the annotation says which integers they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from boards.errors import InvalidValueError, SystolicError, UnsupportedError, listed, shown
from cnn.datatype import BIPOLAR, INT16, DataType, TensorType
from cnn.maps import FloatArray
from cnn.network import Node
from cnn.onnx.annotated_input import PIXEL_BITS
from cnn.onnx.annotation import NEAR, Annotation, check_constants, raise_all
from cnn.onnx.graph import Graph, OnnxOperation
from cnn.onnx.layers import Annotated, Layers, Map
from cnn.onnx.quantised.integers import affine_of, scales_of_filters, whole_weights
from cnn.onnx.quantised.mark import Mark
from cnn.onnx.quantised.values import WIDEST, Values
from cnn.ops import (
    Activate,
    Add,
    Concat,
    Convolution,
    Dense,
    DepthToSpace,
    Input,
    MaxPool,
    Multiply,
    Output,
    Pad,
    Reorg,
    Slice,
    TopK,
    Upsample,
)
from cnn.quantisation.tensor_types import PIXEL

Doubles = npt.NDArray[np.float64]

MOVES = (Concat, DepthToSpace, MaxPool, Pad, Output, Reorg, Slice, TopK)
"""Operations whose outputs are values of their inputs."""

MAX_STEPS = 1 << 16
"""The most step sizes whose sums are analysed. With more, the values of a layer count as unknown."""

REMEDY = "annotate the datatype that it has, or quantise it with QONNX's Quant or MultiThreshold"


@dataclass(frozen=True, eq=False)
class ValueRange:
    """The real values that a layer can give: sums of whole multiples of ``steps``, from ``low`` to ``high``."""

    steps: Doubles
    low: float
    high: float

    def counts_in(self, step: float) -> bool:
        """Return whether every value of the range is a whole multiple of ``step``."""
        quotients = self.steps / step
        whole = np.rint(quotients)
        return bool((np.abs(quotients - whole) <= NEAR * np.maximum(1, whole)).all() and (whole >= 1).all())

    @property
    def text(self) -> str:
        """The range of values as error messages state it."""
        return f"multiples of {float(self.steps.min()):g} from {self.low:g} to {self.high:g}"


def scales_of(graph: Graph) -> Mapping[str, FloatArray]:
    """Return, for each constant that the file annotates with a datatype, the real value of its integer 1, by name."""
    held = {name: each for name, each in graph.annotations.items() if name in graph.constants}
    return {name: np.full(1, each.step, np.float32) for name, each in held.items()}


def with_datatypes(layers: Layers, operation: OnnxOperation, annotations: Mapping[str, Annotation]) -> Layers:
    """Return the network built so far, with the datatypes that the file states for the operation's outputs noted.

    Raises:
        InvalidValueError: A constant has values outside its annotated datatype.
    """
    for name in operation.outputs if annotations else ():
        annotation, value = annotations.get(name), layers.value(name)
        if annotation is None or value is None:
            continue
        if isinstance(value, np.ndarray):
            check_constants({name: annotation}, {name: value}, "")
            scale = layers.scales.get(name, np.full(1, annotation.step, np.float32))
            layers = replace(layers, scales={**layers.scales, name: scale})
        elif isinstance(value, Map):
            node = layers.nodes[value.node]
            tensor = Annotated(name, annotation, value.node, node, layers.mark(value.node))
            layers = replace(layers, annotated=(*layers.annotated, tensor))
    return layers


def with_types(layers: Layers, graph: Graph) -> tuple[Layers, tuple[str, ...]]:
    """Return the network with quantised types for sums that an annotation says are integers; also notes for the user.

    Raises:
        SystolicError: A tensor contradicts its annotation, or its integers have too many bits for a map.
        SeveralFaultsError: Several tensors do.
    """
    if not graph.annotations:
        return layers, ()
    few = _of_few_bits(graph, layers.label)
    reaches: list[ValueRange | None] = []
    for index, node in enumerate(layers.nodes):
        reaches.append(_reach(node, layers.mark(index), reaches))
    faults: list[SystolicError] = []
    for tensor in layers.annotated:
        fault = _fault(tensor, layers, reaches)
        if fault is not None:
            faults.append(fault.at(layers.label))
    raise_all(faults, layers.label)
    layers, notes = _settled(layers, graph, reaches)
    if not any(mark.type for mark in layers.marks.values()):
        notes += _of_floats(layers, graph)
    return layers, (*few, *notes)


def _of_few_bits(graph: Graph, label: str) -> tuple[str, ...]:
    """Return a note for the user if the network's input is annotated with fewer values than pixels have."""
    annotation = graph.annotations.get(graph.input)
    if annotation is None or graph.lowest is None or annotation.bits >= PIXEL_BITS:
        return ()
    most = annotation.high - annotation.low >> annotation.is_bipolar
    told = f"pixels are its integers from 0 to {most}, and greater pixels count as {most}"
    return (f"{label}: the input {shown(graph.input)} is annotated {annotation.name}: {told}",)


def _of_floats(layers: Layers, graph: Graph) -> tuple[str, ...]:
    """Return a note for the user if the file annotates weights only, so that no layer's integers are known."""
    weights = [name for name in graph.annotations if name in graph.constants]
    if not weights:
        return ()
    told = f"the annotated datatypes of {listed(weights)} are ignored"
    return (f"{layers.label}: {told}, because their inputs are floats: the network is quantised by calibration",)


def _fault(tensor: Annotated, layers: Layers, reaches: Sequence[ValueRange | None]) -> SystolicError | None:
    """Return the error of a tensor whose layer can give values that its stated datatype lacks; None if it cannot."""
    node, annotation = tensor.node, tensor.annotation
    if isinstance(node.op, Input) or (isinstance(node.op, TopK) and node.op.labels):
        return None
    reach = _reach(node, tensor.mark, reaches)
    what = f"the datatype that the tensor {shown(tensor.name)} is annotated with"
    if reach is None:
        required = "a float datatype, because the values are computed from floats"
    elif annotation.is_bipolar:
        type_ = layers.type_of(tensor.index)
        if type_ is not None and type_.datatype == BIPOLAR and type_.scale == 1:
            return None
        required = f"another datatype: the values are {reach.text}"
    else:
        room = NEAR * max(annotation.step, abs(reach.low), abs(reach.high))
        low, high = annotation.low * annotation.step - room, annotation.high * annotation.step + room
        if reach.counts_in(annotation.step) and low <= reach.low and reach.high <= high:
            return None
        required = f"a datatype that holds the values, {reach.text}"
    return InvalidValueError(what, annotation.name, required, remedy=REMEDY)


# Values that layers can give.


def _reach(node: Node, mark: Mark, reaches: Sequence[ValueRange | None]) -> ValueRange | None:
    """Return the range of real values that a node's output can have; None if it is not known or not discrete."""
    if isinstance(node.op, Input):
        return _of_type(PIXEL if mark.scale is None else replace(PIXEL, scale=float(mark.scale[0])))
    sources = [reach for i in node.inputs if (reach := reaches[i]) is not None]
    known = len(sources) == len(node.inputs)
    computed = _of_layer(node, mark, sources) if known else None
    if mark.type is None:
        return computed
    typed = _of_type(mark.type)
    if isinstance(node.op, Activate) and computed is not None:  # a function may not give all values of its datatype
        return replace(typed, low=max(typed.low, computed.low), high=min(typed.high, computed.high))
    return typed


def _of_type(type_: TensorType) -> ValueRange:
    low, high = ((end - type_.zero_point) * type_.scale for end in (type_.datatype.low, type_.datatype.high))
    return ValueRange(np.array([type_.scale]), low, high)


def _of_layer(node: Node, mark: Mark, sources: Sequence[ValueRange]) -> ValueRange | None:
    op = node.op
    if isinstance(op, (Convolution, Dense)):
        return _cut_off(_of_sums(op, mark, sources[0]), op.activation)
    if isinstance(op, MOVES) or (isinstance(op, Upsample) and op.scale == 1):
        return _made(np.concatenate([s.steps for s in sources]), [s.low for s in sources], [s.high for s in sources])
    if isinstance(op, Add):
        steps = np.concatenate([source.steps for source in sources])
        total = _made(steps, [sum(s.low for s in sources)], [sum(s.high for s in sources)])
        return _cut_off(total, op.activation)
    if isinstance(op, Multiply):
        first, second = sources
        ends = [a * b for a in (first.low, first.high) for b in (second.low, second.high)]
        return _cut_off(_made(np.outer(first.steps, second.steps).ravel(), ends, ends), op.activation)
    if isinstance(op, Activate) and op.function == "clip":
        least, most = op.parameters
        low, high = (min(max(end, least), most) for end in (sources[0].low, sources[0].high))
        inner = [abs(end) for end in op.parameters if sources[0].low < end < sources[0].high]
        return _made(np.concatenate([sources[0].steps, inner]), [low], [high])
    return None


def _of_sums(op: Convolution | Dense, mark: Mark, source: ValueRange) -> ValueRange | None:
    """Return the range of values of a convolution's or dense layer's sums; None if its weights are floats.

    The sums of a filter are multiples of the greatest common divisor of its weights.
    """
    try:
        scale = scales_of_filters(op, mark.scale)
        weights = whole_weights(op.weights, scale)
    except SystolicError:  # the weights are floats
        return None
    rows = weights.reshape(len(weights), -1)
    gain, offset = affine_of(op)
    around = op.around if isinstance(op, Convolution) else 0.0
    low, high = min(source.low, around, 0.0), max(source.high, around, 0.0)
    factor, sign = scale * np.abs(gain), np.sign(gain).astype(np.int64)[:, None]
    above, below = np.maximum(rows * sign, 0).sum(axis=1), np.minimum(rows * sign, 0).sum(axis=1)
    inputs = np.append(source.steps, abs(around)) if around else source.steps
    steps = np.outer(inputs, np.unique(factor * np.gcd.reduce(np.abs(rows), axis=1))).ravel()
    lows, highs = factor * (above * low + below * high) + offset, factor * (above * high + below * low) + offset
    return _made(np.concatenate([steps, np.abs(offset)]), lows, highs)


def _cut_off(reach: ValueRange | None, activation: str) -> ValueRange | None:
    """Return a range of values after an activation; None if the result is not known."""
    if reach is None or activation == "linear":
        return reach
    if activation == "relu6":
        return _made(np.append(reach.steps, 6.0), [min(max(reach.low, 0.0), 6.0)], [min(max(reach.high, 0.0), 6.0)])
    return replace(reach, low=max(reach.low, 0.0), high=max(reach.high, 0.0)) if activation == "relu" else None


def _made(steps: Doubles, lows: Sequence[float] | Doubles, highs: Sequence[float] | Doubles) -> ValueRange | None:
    """Return the range of values that sums of these steps can have; None for too many steps or an infinite bound."""
    steps = np.unique(steps[steps > 0])
    low, high = float(np.min(lows)), float(np.max(highs))
    finite = bool(np.isfinite(steps).all() and np.isfinite([low, high]).all())
    return ValueRange(steps if steps.size else np.ones(1), low, high) if finite and steps.size <= MAX_STEPS else None


# Integers of sums that nothing quantises.


def _settled(layers: Layers, graph: Graph, reaches: Sequence[ValueRange | None]) -> tuple[Layers, tuple[str, ...]]:
    """Return the network with a quantised type for each layer whose integer sums nothing quantises; also notes."""
    said = {tensor.index: tensor for tensor in layers.annotated if tensor.node.op is layers.nodes[tensor.index].op}
    read = {i for node in layers.nodes for i in node.inputs if not isinstance(node.op, Output)}
    whole = graph.lowest is not None and graph.input in graph.annotations
    notes: list[str] = []
    faults: list[SystolicError] = []
    for index, (node, reach) in enumerate(zip(layers.nodes, reaches, strict=True)):
        mark, tensor = layers.mark(index), said.get(index)
        weighted = isinstance(node.op, (Convolution, Dense))
        wanted = tensor is not None or not weighted or (whole and mark.scale is not None)
        if mark.type is not None or reach is None or not node.op.calibrated or not wanted:
            continue
        step = float(reach.steps.min()) if tensor is None else tensor.annotation.step
        if not reach.counts_in(step):
            continue
        name = f"the tensor {shown(tensor.name)}" if tensor else f"the output of {shown(node.name)} ({node.source})"
        type_ = _type_inside(reach, step) if index in read else _type_at_the_end(reach, step)
        if type_ is None or getattr(node.op, "activation", "") == "relu6":
            reason = f"its integers, {reach.text}, have more than {WIDEST} bits, or are clipped between two of them"
            remedy = "put QONNX's MultiThreshold or Quant after it"
            faults.append(UnsupportedError(name, reason, where=layers.label, remedy=remedy))
            continue
        layers = layers.typed(index, type_)
        if type_.scale > step:
            told = f"its integers, {reach.text}, are rounded to steps of {type_.scale:g}"
            notes.append(f"{layers.label}: {name} is an output of {INT16.bits} bits: {told}")
    raise_all(faults, layers.label)
    return layers, tuple(notes)


def _type_at_the_end(reach: ValueRange, step: float) -> TensorType:
    """Return the INT16 type of a network output, with the least scale by which its values fit.

    Its step is ``step`` if all integers fit, and otherwise the least multiple of it, by a power of two, that fits.
    """
    greatest = max(abs(reach.low), abs(reach.high)) / step
    while greatest > INT16.high:
        greatest, step = greatest / 2, step * 2
    return TensorType(INT16, step)


def _type_inside(reach: ValueRange, step: float) -> TensorType | None:
    """Return the quantised type with the fewest bits that holds a range of values exactly; None above 16 bits."""
    low, high = round(reach.low / step), round(reach.high / step)
    if low >= 0:
        bits = max(1, high.bit_length())
        return Values(bits, False, False, step, 0).type if bits < WIDEST else None
    bits = 1 + max((-1 - low).bit_length(), high.bit_length())
    return TensorType(DataType(max(bits, 2), True), step) if bits <= WIDEST else None
