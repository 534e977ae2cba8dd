"""The network of an ONNX graph while it grows. Every operator's function takes and returns a Layers value."""

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
"""The dtype kinds that hold numbers. V is the kind of bfloat16 and of 4-bit integers, which numpy does not have."""

LAST = "its input has the channels last; a Transpose must move them to the front first"

MAX_WORKED_OUT, EACH_WORKED_OUT = 1 << 27, 5
"""Limit for the bytes of arrays that are computed from constants while a file is read.

The limit is MAX_WORKED_OUT bytes plus EACH_WORKED_OUT times the size of the file's constants. The second term is for
constants that are converted from integers to floats, or transposed."""


Crop: TypeAlias = tuple[tuple[int, int, int], tuple[int, int, int]]
"""Rows and columns to take from a map, each as (first, step, count)."""


@dataclass(frozen=True)
class Map:
    """A tensor that depends on the network's input: a node's output, perhaps reshaped, padded, cropped or reordered.

    Padding, crop and moves are postponed: the next operation includes them, or a layer is appended for them.

    Attributes:
        node: The index of the node whose output the tensor holds.
        shape: The shape in the graph, with a batch of 1 first; it may be flattened.
        padding: The postponed padding.
        edge: Whether the padding repeats the outermost values instead of zeros.
        inside: Whether the node includes the operation after it too (``Layers.changed``), so that the file's tensor
            is no longer the output of the node.
        last: Whether the channels are the last side, or were when the tensor was flattened (cnn.onnx.channels_last).
        crop: The rows and columns of the node's map that are to be taken; None for all.
        integers: Whether the values are integers, because the file's input holds integers (cnn.onnx.quantised.cast).
        moves: The postponed reordering of the node's values (cnn.onnx.digits); None if there is none.
    """

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
    """Return the channels-last tensor viewed with its channels directly after the batch."""
    sides = value.shape
    return replace(value, shape=(sides[0], sides[-1], *sides[1:-1]) if len(sides) > 2 else sides, last=False)


def last_of(value: Map) -> Map:
    """Return the channels-first tensor viewed with its channels as the last side."""
    sides = value.shape
    return replace(value, shape=(sides[0], *sides[2:], sides[1]) if len(sides) > 2 else sides, last=True)


@dataclass(frozen=True)
class Unknown:
    """A tensor of the ONNX graph whose operation could not become a layer."""


@dataclass(frozen=True)
class Tail:
    """A tensor at the end of the network that the host computes from outputs of the accelerator (cnn.onnx.tails).

    Attributes:
        shape: The tensor's shape.
        maps: The indices of the nodes whose outputs it is computed from.
        steps: The host's computation; it names these nodes by their places in ``maps``.
        refusals: Why the operations of the tail cannot be layers. They are reported if a layer must read the tensor.
    """

    shape: tuple[int, ...]
    maps: tuple[int, ...]
    steps: tuple[OutputStep, ...]
    refusals: tuple[SystolicError, ...]


Value: TypeAlias = Map | Tail | Unknown | Array


@dataclass(frozen=True, eq=False)
class Annotated:
    """A tensor for which the ONNX file states a data type, with the node that computes it.

    Attributes:
        name: The tensor's name.
        annotation: Its data type.
        index: The index of the node that computes it.
        node: That node as it was when the tensor was read. A later operation may become part of the node.
        mark: The mark of the node at that time.
    """

    name: str
    annotation: Annotation
    index: int
    node: Node
    mark: Mark


@dataclass(frozen=True, eq=False)
class Layers:
    """The network built so far from an ONNX graph: its nodes, the tensors read so far, and facts of the file.

    Attributes:
        label: The file's name in errors.
        nodes: The nodes in topological order; node 0 is the input.
        constants: The constants of the file, by tensor name.
        values: The outputs of the operations read so far, by tensor name.
        readers: The number of operations that read each tensor.
        opset: The version of the operators.
        left: Bytes of arrays that may still be computed from constants.
        lowest: As in ``Graph``.
        batch: As in ``Graph``.
        marks: The facts that a quantised file states about a node, by the node's index.
        scales: The scales of the constants of a quantised file that hold weights, by tensor name.
        annotated: The annotated tensors that layers compute.
    """

    label: str
    nodes: tuple[Node, ...]
    constants: Mapping[str, Array]
    values: Mapping[str, Value]
    readers: Mapping[str, int]
    opset: int
    left: int = MAX_WORKED_OUT
    lowest: int | None = None
    batch: int = 1
    marks: Mapping[int, Mark] = field(default_factory=dict)
    scales: Mapping[str, FloatArray] = field(default_factory=dict)
    annotated: tuple[Annotated, ...] = ()

    def map(self, operation: OnnxOperation, position: int = 0) -> Map:
        """Return an input of the operation as a ``Map``; RefusedError if it is constant or its padding is postponed."""
        value = self.padded(operation, position)
        require(value.padding == NO_PADDING, "padding must be in a convolution or directly before it")
        return value

    def padded(self, operation: OnnxOperation, position: int = 0, edge: bool = False) -> Map:
        """Return an input of the operation as a ``Map``, which may have postponed padding from a Pad before it.

        Args:
            operation: The operation.
            position: The place of the input among the operation's inputs.
            edge: Whether the operation accepts postponed padding that repeats the edges.

        Raises:
            RefusedError: The input is a constant, or has its channels last.
        """
        value = self.optional(operation, position)
        if not isinstance(value, Map):
            raise RefusedError(f"input {position} must depend on the network's input")
        require(not value.last, LAST)
        assert edge or not value.edge  # cnn.onnx.network appends layers that repeat edges before other operations
        return value

    def picture(self, operation: OnnxOperation, position: int = 0) -> tuple[Map, Shape]:
        """Return an input of the operation as a ``Map``, and its shape as channels × height × width.

        The errors are the same as for ``map`` and ``shape_of``.
        """
        value = self.map(operation, position)
        return value, self.shape_of(value)

    def shape_of(self, value: Map) -> Shape:
        """Return the shape of the node whose output a tensor is; ShapeError if the graph views it with other sides."""
        shape = self.nodes[value.node].shape
        fits = 2 <= len(value.shape) <= 4 and map_shape(value.shape) == shape
        view = (1, shape.channels, shape.height, shape.width)
        require(fits, ShapeError("its input", value.shape, view))
        return shape

    def positions_of(self, value: Map) -> Shape:
        """Return the shape of the node whose output a tensor is; ShapeError if side 1 is not the channels.

        The other sides may differ from the node's height and width, because the order of the positions is the same.
        """
        shape, sides = self.nodes[value.node].shape, value.shape
        over = sides[1] if len(sides) > 1 else 0
        require(
            over == shape.channels, ShapeError("side 1 of its input", f"{over} values", f"{shape.channels} channels")
        )
        return shape

    def constant(self, operation: OnnxOperation, position: int) -> Array:
        """Return an input of the operation as a constant array; RefusedError if it is left out or not constant."""
        value = self.optional(operation, position)
        if not isinstance(value, np.ndarray):
            raise RefusedError(f"input {position} must be a constant")
        require(value.dtype.kind in NUMBERS, ShapeError(f"input {position}", value.dtype.name, "numbers"))
        return value

    def scalar(self, operation: OnnxOperation, position: int) -> float:
        """Return an input of the operation as one constant number; ShapeError if it has several values."""
        value = self.constant(operation, position)
        require(value.size == 1, ShapeError(f"input {position}", f"{value.size:,} values", "one value"))
        return float(value.ravel()[0])

    def optional(self, operation: OnnxOperation, position: int) -> Value | None:
        """Return an input of the operation, a tensor or constant; None if the operation leaves it out."""
        named = operation.inputs[position] if position < len(operation.inputs) else ""
        return self.value(named) if named else None

    def value(self, name: str) -> Value | None:
        """Return the tensor or constant named ``name``; None if no operation has computed it yet."""
        return self.values[name] if name in self.values else self.constants.get(name)

    def can_merge(self, operation: OnnxOperation, position: int = 0) -> bool:
        """Return whether the operation can be merged into the layer before it, which nothing else reads.

        It may if nothing else reads the layer's output and the file does not give this output a quantised type.
        """
        source = self.padded(operation, position).node
        return self.mark(source).type is None and self.read_once(source)

    def read_once(self, index: int) -> bool:
        """Return whether exactly one operation reads the node's output, under any of its names."""
        values = self.values.items()
        names = [name for name, value in values if isinstance(value, Map) and value.node == index]
        return all(self.readers[name] == 1 for name in names)

    def with_node(self, operation: OnnxOperation, stem: str, op: Op, shape: Shape, *inputs: int) -> Layers:
        """Return the network with a node appended that computes the operation's output.

        Args:
            operation: The operation of the file.
            stem: The start of the node's name, which a number follows.
            op: The operation of the node.
            shape: The shape of the node's output.
            *inputs: The indices of the nodes that it reads.
        """
        self.check_room(shape)
        _check_numbers(op)
        node = Node(self._name(stem), op, inputs, shape, f"{self.label}: {operation}")
        larger = replace(self, nodes=(*self.nodes, node), marks=self._with_scale(operation))
        return larger.with_values(operation, Map(len(self.nodes), self._view(operation, shape)))

    def _view(self, operation: OnnxOperation, shape: Shape) -> tuple[int, ...]:
        """Return a new output's shape, the batch first, with as few sides as the operation's input map: 2, 3 or 4."""
        values = [self.value(name) for name in operation.inputs if name]
        rank = next((len(value.shape) for value in values if isinstance(value, Map)), 4)
        sides = (1, shape.channels, shape.height, shape.width)
        return (*sides[:2], *sides[6 - rank :]) if rank < 4 and set(sides[2 : 6 - rank]) == {1} else sides

    def _with_scale(self, operation: OnnxOperation) -> Mapping[int, Mark]:
        """Return the file's facts per node, with the weight scale of the node that is about to be appended."""
        scale = self.scales.get(operation.inputs[1]) if len(operation.inputs) > 1 else None
        return self.marks if scale is None else {**self.marks, len(self.nodes): Mark(scale=scale)}

    def mark(self, index: int) -> Mark:
        """Return what the quantised file states about the node ``index``, such as its output's type."""
        return self.marks.get(index, NO_MARK)

    def type_of(self, index: int) -> TensorType | None:
        """Return the quantised type that the file states for a node's output; None if it states none.

        A node that only moves or selects values has the type of its inputs, if all inputs have the same.
        """
        node = self.nodes[index]
        if self.mark(index).type or not node.op.passes_on:
            return self.mark(index).type
        types = {self.type_of(i) for i in node.inputs}
        return types.pop() if len(types) == 1 else None

    def typed(self, node: int, datatype: TensorType) -> Layers:
        """Return the network with ``datatype`` as the quantised type of a node's output."""
        return self.marked(node, replace(self.mark(node), type=datatype))

    def marked(self, node: int, mark: Mark) -> Layers:
        """Return the network with ``mark`` as what the file states about a node."""
        return replace(self, marks={**self.marks, node: mark})

    def check_room(self, shape: Shape) -> None:
        """Raise RangeError if the network cannot have one more layer, or if an output of this shape is too large."""
        for what, got, most in (
            ("the number of layers", len(self.nodes), MAX_LAYERS - 1),
            ("channels of its output", shape.channels, MAX_CHANNELS),
            ("the number of values of its output", shape.values, MAX_MAP),
        ):
            require(1 <= got <= most, RangeError(what, got, 1, most))

    def with_bytes_spent(self, size: int) -> Layers:
        """Return the network with its remaining budget of bytes for computed arrays reduced by ``size``.

        The limit stops a small file from making the reader compute very large arrays.
        """
        subject, resource = "the result that it computes from constants", "bytes of the limit for a file of this size"
        require(size <= self.left, DoesNotFitError(subject, resource, size, self.left))
        return replace(self, left=self.left - size)

    def _name(self, stem: str) -> str:
        """Return the next unused node name with this stem: conv1, conv2 …"""
        return f"{stem}{1 + sum(node.name.rstrip('0123456789') == stem for node in self.nodes)}"

    def changed(self, operation: OnnxOperation, source: Map, op: Op, stem: str = "") -> Layers:
        """Return the network with the operation merged into the node of its input, which now computes ``op``.

        Args:
            operation: The operation, whose output is then ``source``.
            source: The input of the operation.
            op: The new operation of the layer.
            stem: The start of the layer's new name; empty to keep its name.
        """
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
        """Return the network without nodes that no output depends on; their tensors become ``Unknown``."""
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
        """Return the network with ``values`` recorded as the operation's output tensors."""
        pairs = zip(operation.outputs, values, strict=False)
        named = {name: value for name, value in pairs if name and self.readers[name]}
        return replace(self, values={**self.values, **named})


def map_shape(sides: tuple[int, ...]) -> Shape:
    """Return the shape channels × height × width of a tensor with the sides (batch, channels, …), channels first.

    (batch, channels, length) is a map of one row, and (batch, values) a map with one channel per value.
    """
    return Shape(sides[1], *(1,) * (4 - len(sides)), *sides[2:])


def _nodes_of(value: Value | None) -> tuple[int, ...]:
    """Return the indices of the nodes from whose outputs a tensor is computed."""
    return (value.node,) if isinstance(value, Map) else value.maps if isinstance(value, Tail) else ()


def _moved(value: Value, places: Mapping[int, int]) -> Value:
    """Return the tensor with its node indices replaced by the new ones; ``Unknown`` if a node was removed.

    Args:
        value: The tensor.
        places: The new index of each node that is kept.
    """
    if isinstance(value, Tail):
        kept = all(node in places for node in value.maps)
        return replace(value, maps=tuple(places[node] for node in value.maps)) if kept else Unknown()
    if not isinstance(value, Map):
        return value
    return replace(value, node=places[value.node]) if value.node in places else Unknown()


def _check_numbers(op: Op) -> None:
    """Raise RefusedError if a weight or parameter of the layer is not a finite float32."""
    numbers: list[Array] = []
    if isinstance(op, (Convolution, Dense)):
        norm = op.batch_norm
        numbers = [op.weights, op.bias, *((norm.scale, norm.mean, norm.variance) if norm else ())]
    elif isinstance(op, Activate) and op.function != "clip":
        numbers = [np.array(op.parameters)]
    finite = all(np.isfinite(values).all() for values in numbers)
    require(finite, "some numbers of its layer would not be finite")


def bare_convolution(source: FloatArray | None, channels: int) -> Convolution:
    """Return a depthwise 1×1 convolution with one weight per channel (``source``, or 1) and a bias of 0.

    Callers replace its bias, activation or other fields.
    """
    weights = np.ones(channels, np.float32) if source is None else source
    bias = np.zeros(channels, np.float32)
    return Convolution(weights.reshape(channels, 1, 1, 1), bias, None, 1, Padding(), channels, "linear")
