"""A network by the names of its tensors: who makes one, who reads it, what it holds, and the network with another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Generic, TypeVar, cast

import numpy as np
import numpy.typing as npt

from boards.errors import NetworkError, QuantiseError, listed, shown
from cnn.datatype import DataType
from cnn.network import Input, Network, Node, Op, Shape
from cnn.quantized import QInput, QNode, QOp, QuantizedNetwork, TensorType
from cnn.quantized_check import check_quantized
from cnn.quantized_shape import expected_shape

N = TypeVar("N", Network, QuantizedNetwork)

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class View(Generic[N]):
    """Every node gives one tensor, which has its name. Arrays of a node are NODE.FIELD: ``conv1.weights``,
    ``conv1.batch_norm.mean``, ``conv1.requantiser.bias``.

    Nothing is changed: ``with_…`` gives another network, checked. NetworkError, of integers QuantiseError, says what
    does not fit.
    """

    network: N

    def index(self, tensor: str) -> int:
        """Place of the node. NetworkError where none, or several, have that name."""
        places = [i for i, node in enumerate(self.network.nodes) if node.name == tensor]
        if len(places) != 1:
            names = listed(node.name for node in self.network.nodes)
            raise NetworkError(f"{self.network.name!r} has {len(places)} tensors {shown(tensor)}; there are {names}")
        return places[0]

    def producer(self, tensor: str) -> Node | QNode:
        """The node that gives the tensor."""
        return self.network.nodes[self.index(tensor)]

    def consumers(self, tensor: str) -> tuple[Node | QNode, ...]:
        """The nodes that read the tensor, in order."""
        index = self.index(tensor)
        return tuple(node for node in self.network.nodes if index in node.inputs)

    def shape(self, tensor: str) -> Shape:
        """Channels × height × width."""
        return self.producer(tensor).shape

    def datatype(self, tensor: str) -> DataType | None:
        """Of the tensor's integers; None where it holds float32."""
        node = self.producer(tensor)
        return node.type.datatype if isinstance(node, QNode) else None

    def initialisers(self) -> tuple[str, ...]:
        """The names of all arrays."""
        return tuple(f"{node.name}.{field}" for node in self.network.nodes for field, _ in _arrays(node.op))

    def initialiser(self, tensor: str) -> Array:
        """An array by its name."""
        node, field = self._place(tensor)
        return dict(_arrays(self.producer(node).op))[field]

    def _place(self, tensor: str) -> tuple[str, str]:
        """The node and the field of an array."""
        for node in self.network.nodes:
            for field, _ in _arrays(node.op):
                if tensor == f"{node.name}.{field}":
                    return node.name, field
        raise NetworkError(
            f"{self.network.name!r} has no array {shown(tensor)}; there are {listed(self.initialisers())}"
        )

    def with_initialiser(self, tensor: str, values: Array) -> N:
        """With another array of the same type, finite; its shape may be another where all shapes still agree."""
        array, (node, field) = self.initialiser(tensor), self._place(tensor)
        if values.dtype != array.dtype or not np.isfinite(values).all():
            raise NetworkError(f"{tensor} must be finite numbers of {array.dtype}, not {values.dtype}")
        return self.with_op(node, _with(self.producer(node).op, field.split("."), values))

    def with_datatype(self, tensor: str, datatype: DataType, scale: float | None = None, zero_point: int = 0) -> N:
        """With other integers in a tensor; scale: its own where there is none. NetworkError for a float network."""
        node = self.producer(tensor)
        if not isinstance(node, QNode):
            raise NetworkError(f"{self.network.name!r} holds floats: quantise it, then {tensor} has a datatype")
        type_ = TensorType(datatype, node.type.scale if scale is None else scale, zero_point)
        return self._changed(self.index(tensor), replace(node, type=type_))

    def with_shape(self, tensor: str, shape: Shape) -> N:
        """With an input of another size; the shapes behind it follow. Of other tensors shapes follow alone."""
        node = self.producer(tensor)
        if not isinstance(node.op, (Input, QInput)):
            raise NetworkError(
                f"the shape of {tensor} follows from its inputs: set that of {self.network.nodes[0].name}"
            )
        return self._changed(self.index(tensor), replace(node, shape=shape))

    def with_op(self, tensor: str, op: Op | QOp) -> N:
        """With another operation in the node that gives the tensor."""
        return self._changed(self.index(tensor), replace(self.producer(tensor), op=cast(Any, op)))

    def _changed(self, index: int, node: Node | QNode) -> N:
        nodes = [*self.network.nodes]
        nodes[index] = cast(Any, node)
        return checked(replace(self.network, nodes=_shaped(nodes)))


def _arrays(value: Any) -> Iterator[tuple[str, Array]]:
    """The arrays in a frozen value and in those that it holds, with their paths."""
    for field in fields(value):
        part = getattr(value, field.name)
        if isinstance(part, np.ndarray):
            yield field.name, part
        elif is_dataclass(part):
            yield from ((f"{field.name}.{path}", array) for path, array in _arrays(part))


def _with(value: Any, path: list[str], array: Array) -> Any:
    first, *inner = path
    return replace(value, **{first: _with(getattr(value, first), inner, array) if inner else array})


def _shaped(nodes: list[Any]) -> tuple[Any, ...]:
    """The nodes with the shapes that follow from their inputs."""
    shaped: list[Any] = []
    for node in nodes:
        inputs = tuple(shaped[i] for i in node.inputs)
        shaped.append(replace(node, shape=_shape_of(node, inputs)) if inputs else node)
    return tuple(shaped)


def _shape_of(node: Any, inputs: tuple[Any, ...]) -> Shape:
    try:
        return expected_shape(node, inputs)
    except QuantiseError as error:
        raise error if isinstance(node, QNode) else NetworkError(str(error)) from error


def checked(network: N) -> N:
    """The network itself, where it is one: inputs come before what reads them, shapes follow, integers keep the
    contract. NetworkError or QuantiseError names the node."""
    if isinstance(network, QuantizedNetwork):
        return check_quantized(network)
    for index, node in enumerate(network.nodes):
        if bool(node.inputs) == (index == 0) or not all(0 <= i < index for i in node.inputs):
            raise NetworkError(
                f"{node.name!r} ({node.source}): node 0 is the input, and inputs come before their readers"
            )
        shape = _shape_of(node, tuple(network.nodes[i] for i in node.inputs)) if index else node.shape
        if shape != node.shape:
            raise NetworkError(f"{node.name!r} ({node.source}): its inputs give the shape {shape}, not {node.shape}")
    return network


def ends(network: N) -> tuple[int, ...]:
    """Indices of the nodes that no other node reads."""
    read = {i for node in network.nodes for i in node.inputs}
    return tuple(i for i in range(len(network.nodes)) if i not in read)


def without(network: N, *indices: int) -> N:
    """Without these nodes, which nothing reads any more; the others keep their order. NetworkError names a reader."""
    places = {old: new for new, old in enumerate(i for i in range(len(network.nodes)) if i not in indices)}
    nodes = []
    for old in places:
        node: Any = network.nodes[old]
        for i in node.inputs:
            if i not in places:
                raise NetworkError(f"{network.nodes[i].name!r} is read by {node.name!r}: it cannot be left out")
        nodes.append(replace(node, inputs=tuple(places[i] for i in node.inputs)))
    return checked(replace(network, nodes=cast(Any, tuple(nodes))))
