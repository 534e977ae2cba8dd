"""The network of an ONNX graph while it grows: what every operator's function takes and returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from boards.errors import DoesNotFitError, RangeError, ShapeError, SystolicError
from cnn.datatype import TensorType
from cnn.limits import MAX_CHANNELS, MAX_LAYERS, MAX_MAP
from cnn.maps import FloatArray, Padding, Shape
from cnn.named_outputs import OutputStep
from cnn.network import Node
from cnn.onnx.annotation import Annotation
from cnn.onnx.digits import Moves
from cnn.onnx.graph import Array, OnnxOperation, RefusedError, require
from cnn.onnx.quantised.mark import NO_MARK, Mark
from cnn.ops import Activate, Convolution, Dense, Op

NO_PADDING = Padding()

NUMBERS = frozenset("biufV")
"""numpy's kinds of them; V are the types that numpy has not itself, bfloat16 and integers of 4 bits."""

LAST = "its input has the channels last; a Transpose must bring them to the front first"

MOST_WORKED_OUT, EACH_WORKED_OUT = 1 << 27, 5
"""Bytes of arrays that are worked out when a file is read; and how often its constants besides: once as floats of their
integers, and once moved."""


Crop: TypeAlias = tuple[tuple[int, int, int], tuple[int, int, int]]


@dataclass(frozen=True)
class Map:
    """A tensor that depends on the picture. node: whose output it holds. shape: batch 1 first, as the graph has it; it
    may be flat. padding: zeros that are still to be put around it; edge: not zeros, but its outermost values again.
    inside: the node took in the operation that follows it.
    last: the channels of its shape stand last, or it was flattened with them so (cnn.onnx.channels_last). crop: rows
    and columns of the node's map that are still to be taken, (first, step, count) each. integers: those of a file whose
    input holds such (cnn.onnx.quantised.cast). moves: of the node's values that are still to come."""

    node: int
    shape: tuple[int, ...]
    padding: Padding = NO_PADDING
    edge: bool = False
    inside: bool = False
    last: bool = False
    crop: Crop | None = None
    integers: bool = False
    moves: Moves | None = None


def first_of(value: Map) -> Map:
    """The tensor with its channels behind the batch; flat as it is."""
    sides = value.shape
    return replace(value, shape=(sides[0], sides[-1], *sides[1:-1]) if len(sides) > 2 else sides, last=False)


def last_of(value: Map) -> Map:
    """The tensor with its channels last; flat as it is."""
    sides = value.shape
    return replace(value, shape=(sides[0], *sides[2:], sides[1]) if len(sides) > 2 else sides, last=True)


@dataclass(frozen=True)
class Unknown:
    """A tensor of an operation that was not taken."""


@dataclass(frozen=True)
class Tail:
    """A tensor that the host works out of maps that leave (cnn.onnx.tails). maps: nodes. steps: from these, by
    their places, to the tensor. refusals: why the operations between are no layers, for whoever reads it as a map."""

    shape: tuple[int, ...]
    maps: tuple[int, ...]
    steps: tuple[OutputStep, ...]
    refusals: tuple[SystolicError, ...]


Value: TypeAlias = Map | Tail | Unknown | Array


@dataclass(frozen=True, eq=False)
class Annotated:
    """A tensor that the file annotates. node, mark: of the layer that gives it, as they were when it did: what follows
    may become part of the layer."""

    name: str
    annotation: Annotation
    index: int
    node: Node
    mark: Mark


@dataclass(frozen=True, eq=False)
class Layers:
    """nodes: in topological order. constants: of the file. values: what operations gave so far. readers: operations
    that read a tensor. opset: the version of the operators. left: bytes of arrays that may still be worked
    out. lowest, batch: as in Graph.

    Of a file that is quantised already: marks, what it says of nodes, scales, the float of a 1 by the constant that
    holds the weights, and annotated, what it says of tensors that layers give.
    """

    label: str
    nodes: tuple[Node, ...]
    constants: Mapping[str, Array]
    values: Mapping[str, Value]
    readers: Mapping[str, int]
    opset: int
    left: int = MOST_WORKED_OUT
    lowest: int | None = None
    batch: int = 1
    marks: Mapping[int, Mark] = field(default_factory=dict)
    scales: Mapping[str, FloatArray] = field(default_factory=dict)
    annotated: tuple[Annotated, ...] = ()

    def map(self, operation: OnnxOperation, position: int = 0) -> Map:
        """Return the operation's input as a map with no padding left to do; RefusedError if it is not one."""
        value = self.padded(operation, position)
        require(value.padding == NO_PADDING, "padding must be directly before a convolution, or in it")
        return value

    def padded(self, operation: OnnxOperation, position: int = 0, edge: bool = False) -> Map:
        """Return the operation's input as a map, with padding of zeros that is still to do; RefusedError if it is a
        constant. edge: whether the operation leaves padding of repeated edges to the next one, or takes it in."""
        value = self.optional(operation, position)
        if not isinstance(value, Map):
            raise RefusedError(f"input {position} must depend on the picture")
        require(not value.last, LAST)
        assert edge or not value.edge  # cnn.onnx.network repeats edges before an operation that does not
        return value

    def picture(self, operation: OnnxOperation, position: int = 0) -> tuple[Map, Shape]:
        """Return a map of channels × height × width, and its node's shape."""
        value = self.map(operation, position)
        return value, self.shape_of(value)

    def shape_of(self, value: Map) -> Shape:
        """Return channels × height × width; ShapeError if the graph gave it another view."""
        shape = self.nodes[value.node].shape
        fits = 2 <= len(value.shape) <= 4 and map_shape(value.shape) == shape
        view = (1, shape.channels, shape.height, shape.width)
        require(fits, ShapeError("its input", value.shape, view))
        return shape

    def positions_of(self, value: Map) -> Shape:
        """Return channels × height × width; ShapeError if side 1 is not the channels.

        Its positions may be in a row or otherwise, in the same order.
        """
        shape, sides = self.nodes[value.node].shape, value.shape
        over = sides[1] if len(sides) > 1 else 0
        require(
            over == shape.channels, ShapeError("side 1 of its input", f"{over} values", f"{shape.channels} channels")
        )
        return shape

    def constant(self, operation: OnnxOperation, position: int) -> Array:
        """Return the operation's input as an array; RefusedError if it depends on the picture or is left out."""
        value = self.optional(operation, position)
        if not isinstance(value, np.ndarray):
            raise RefusedError(f"input {position} must be a constant")
        require(value.dtype.kind in NUMBERS, ShapeError(f"input {position}", value.dtype.name, "numbers"))
        return value

    def scalar(self, operation: OnnxOperation, position: int) -> float:
        """Return the operation's input, one number; ShapeError if it has several."""
        value = self.constant(operation, position)
        require(value.size == 1, ShapeError(f"input {position}", f"{value.size:,} values", "one value"))
        return float(value.ravel()[0])

    def optional(self, operation: OnnxOperation, position: int) -> Value | None:
        """The operation's input, None where it is left out."""
        named = operation.inputs[position] if position < len(operation.inputs) else ""
        return self.value(named) if named else None

    def value(self, name: str) -> Value | None:
        """A tensor by its name; None where nothing gave it yet."""
        return self.values[name] if name in self.values else self.constants.get(name)

    def alone(self, operation: OnnxOperation, position: int = 0) -> bool:
        """Whether nothing else reads that input, so that the layer before may take the operation in. What is quantised
        already stays as it is."""
        source = self.padded(operation, position).node
        return self.mark(source).type is None and self.read_once(source)

    def read_once(self, index: int) -> bool:
        """Whether one operation reads what the node gives, by whichever name: other names are views of it."""
        values = self.values.items()
        names = [name for name, value in values if isinstance(value, Map) and value.node == index]
        return all(self.readers[name] == 1 for name in names)

    def grown(self, operation: OnnxOperation, stem: str, op: Op, shape: Shape, *inputs: int) -> Layers:
        """One more node, whose output is the operation's."""
        self.check_room(shape)
        _check_numbers(op)
        node = Node(self._name(stem), op, inputs, shape, f"{self.label}: {operation}")
        larger = replace(self, nodes=(*self.nodes, node), marks=self._with_scale(operation))
        return larger.with_values(operation, Map(len(self.nodes), self._view(operation, shape)))

    def _view(self, operation: OnnxOperation, shape: Shape) -> tuple[int, ...]:
        """The shape with as many sides as the operation's first input has."""
        values = [self.value(name) for name in operation.inputs if name]
        rank = next((len(value.shape) for value in values if isinstance(value, Map)), 4)
        sides = (1, shape.channels, shape.height, shape.width)
        return (*sides[:2], *sides[6 - rank :]) if rank < 4 and set(sides[2 : 6 - rank]) == {1} else sides

    def _with_scale(self, operation: OnnxOperation) -> Mapping[int, Mark]:
        """The new node's weights are the operation's second input."""
        scale = self.scales.get(operation.inputs[1]) if len(operation.inputs) > 1 else None
        return self.marks if scale is None else {**self.marks, len(self.nodes): Mark(scale=scale)}

    def mark(self, index: int) -> Mark:
        """What the file says of a node."""
        return self.marks.get(index, NO_MARK)

    def type_of(self, index: int) -> TensorType | None:
        """The type of a node's output: its own, or what it passes on; None where it has none, or several."""
        node = self.nodes[index]
        if self.mark(index).type or not node.op.passes_on:
            return self.mark(index).type
        types = {self.type_of(i) for i in node.inputs}
        return types.pop() if len(types) == 1 else None

    def typed(self, node: int, datatype: TensorType) -> Layers:
        """The node's output is quantised so."""
        return self.marked(node, replace(self.mark(node), type=datatype))

    def marked(self, node: int, mark: Mark) -> Layers:
        """The file says that of the node."""
        return replace(self, marks={**self.marks, node: mark})

    def check_room(self, shape: Shape) -> None:
        """Raise RangeError if there may be no further layer, or none of this shape."""
        for what, got, most in (
            ("the number of layers", len(self.nodes), MAX_LAYERS - 1),
            ("channels of its output", shape.channels, MAX_CHANNELS),
            ("the number of values of its output", shape.values, MAX_MAP),
        ):
            require(1 <= got <= most, RangeError(what, got, 1, most))

    def worked_out(self, size: int) -> Layers:
        """Return the layers with so many bytes less left; DoesNotFitError if a file of this size does not need them."""
        subject, resource = "what it computes of constants", "bytes of those that a file of this size may take"
        require(size <= self.left, DoesNotFitError(subject, resource, size, self.left))
        return replace(self, left=self.left - size)

    def _name(self, stem: str) -> str:
        """The next free name: conv1, conv2 …"""
        return f"{stem}{1 + sum(node.name.rstrip('0123456789') == stem for node in self.nodes)}"

    def changed(self, operation: OnnxOperation, source: Map, op: Op, stem: str = "") -> Layers:
        """The layer before does the operation too. stem: of its name, where it has another one then."""
        _check_numbers(op)
        nodes = list(self.nodes)
        node = nodes[source.node]
        nodes[source.node] = replace(node, op=op, name=self._name(stem) if stem else node.name)
        values = {
            name: replace(value, inside=True) if isinstance(value, Map) and value.node == source.node else value
            for name, value in self.values.items()
        }
        return replace(self, nodes=tuple(nodes), values=values).with_values(operation, source)

    def pruned(self, outputs: Sequence[str]) -> Layers:
        """Without the nodes that no output needs; the values that such nodes gave are unknown."""
        needed = {0, *(node for name in outputs for node in _nodes_of(self.value(name)))}
        for index in range(len(self.nodes) - 1, 0, -1):
            if index in needed:
                needed.update(self.nodes[index].inputs)
        places = {old: new for new, old in enumerate(sorted(needed))}
        nodes = [replace(self.nodes[i], inputs=tuple(places[j] for j in self.nodes[i].inputs)) for i in places]
        values = {name: _moved(value, places) for name, value in self.values.items()}
        marks = {places[i]: mark for i, mark in self.marks.items() if i in places}
        return replace(self, nodes=tuple(nodes), values=values, marks=marks)

    def with_values(self, operation: OnnxOperation, *values: Value) -> Layers:
        """The operation's outputs are these."""
        pairs = zip(operation.outputs, values, strict=False)
        named = {name: value for name, value in pairs if name and self.readers[name]}
        return replace(self, values={**self.values, **named})


def map_shape(sides: tuple[int, ...]) -> Shape:
    """Of a tensor: batch × channels × height × width; batch × channels × length, a map of one row; or batch × values,
    each a channel."""
    return Shape(sides[1], *(1,) * (4 - len(sides)), *sides[2:])


def _nodes_of(value: Value | None) -> tuple[int, ...]:
    """The nodes whose maps a tensor is made of."""
    return (value.node,) if isinstance(value, Map) else value.maps if isinstance(value, Tail) else ()


def _moved(value: Value, places: Mapping[int, int]) -> Value:
    """The value where nodes have other places, those that have none are gone."""
    if isinstance(value, Tail):
        kept = all(node in places for node in value.maps)
        return replace(value, maps=tuple(places[node] for node in value.maps)) if kept else Unknown()
    if not isinstance(value, Map):
        return value
    return replace(value, node=places[value.node]) if value.node in places else Unknown()


def _check_numbers(op: Op) -> None:
    """Raise RefusedError if a number of the layer is not a finite float32."""
    numbers: list[Array] = []
    if isinstance(op, (Convolution, Dense)):
        norm = op.batch_norm
        numbers = [op.weights, op.bias, *((norm.scale, norm.mean, norm.variance) if norm else ())]
    elif isinstance(op, Activate) and op.function != "clip":
        numbers = [np.array(op.parameters)]
    finite = all(np.isfinite(values).all() for values in numbers)
    require(finite, "some numbers of its layer would not be finite")


def bare_convolution(source: FloatArray | None, channels: int) -> Convolution:
    """A 1×1 convolution a channel by itself, its weights ``source`` or 1, to which other things are added."""
    weights = np.ones(channels, np.float32) if source is None else source
    bias = np.zeros(channels, np.float32)
    return Convolution(weights.reshape(channels, 1, 1, 1), bias, None, 1, Padding(), channels, "linear")
