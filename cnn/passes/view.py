"""A view of a network by the names of its tensors: producers, readers and types, and functions that replace them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Generic, TypeVar, cast

import numpy as np
import numpy.typing as npt

from boards.errors import (
    ChoiceError,
    ConflictError,
    InvalidValueError,
    MismatchError,
    ShapeError,
    UnsupportedError,
)
from cnn.datatype import DataType, TensorType
from cnn.maps import Shape
from cnn.network import Network, Node
from cnn.ops import Input, Op, QInput, QOp
from cnn.quantized import QNode, QuantizedNetwork
from cnn.quantized_check import check_quantized, expected_shape

N = TypeVar("N", Network, QuantizedNetwork)

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class View(Generic[N]):
    """A network with look-ups and replacements by tensor name; every node has one output tensor, named like the node.

    The arrays of a node are called NODE.FIELD: ``conv1.weights``, ``conv1.batch_norm.mean``,
    ``conv1.requantiser.bias``. The network itself does not change: each ``with_…`` returns another network, checked by
    ``checked``.
    """

    network: N

    def index(self, tensor: str) -> int:
        """Return the index of the node named ``tensor``; ChoiceError if there is none, ConflictError if several have
        it."""
        places = [i for i, node in enumerate(self.network.nodes) if node.name == tensor]
        if not places:
            names = [node.name for node in self.network.nodes]
            raise ChoiceError("the tensor", tensor, names, where=self.network.name)
        if len(places) > 1:
            nodes = [f"node {i}" for i in places]
            raise ConflictError(nodes, f"all of them are called {tensor!r}", where=self.network.name)
        return places[0]

    def producer(self, tensor: str) -> Node | QNode:
        """Return the node whose output the tensor is."""
        return self.network.nodes[self.index(tensor)]

    def consumers(self, tensor: str) -> tuple[Node | QNode, ...]:
        """Return the nodes that read the tensor, in order."""
        index = self.index(tensor)
        return tuple(node for node in self.network.nodes if index in node.inputs)

    def shape(self, tensor: str) -> Shape:
        """Return the shape of the tensor of that name."""
        return self.producer(tensor).shape

    def datatype(self, tensor: str) -> DataType | None:
        """Return the datatype of the tensor's integers; None if it holds float32."""
        node = self.producer(tensor)
        return node.type.datatype if isinstance(node, QNode) else None

    def initialisers(self) -> tuple[str, ...]:
        """Return the names of all weight and parameter arrays of the network, such as ``conv1.weights``."""
        return tuple(f"{node.name}.{field}" for node in self.network.nodes for field, _ in _arrays(node.op))

    def initialiser(self, tensor: str) -> Array:
        """Return the weight or parameter array of that name, such as ``conv1.weights``."""
        node, field = self._place(tensor)
        return dict(_arrays(self.producer(node).op))[field]

    def _place(self, tensor: str) -> tuple[str, str]:
        """Return the node name and the field path of an array's name, such as ("conv1", "batch_norm.mean")."""
        for node in self.network.nodes:
            for field, _ in _arrays(node.op):
                if tensor == f"{node.name}.{field}":
                    return node.name, field
        raise ChoiceError("the array", tensor, self.initialisers(), where=self.network.name)

    def with_initialiser(self, tensor: str, values: Array) -> N:
        """Return the network with the array of that name replaced by ``values`` of the same data type.

        Its shape may differ if all shapes of the network still agree.
        """
        array, (node, field) = self.initialiser(tensor), self._place(tensor)
        if values.dtype != array.dtype:
            raise ShapeError(tensor, values.dtype.name, f"the type {array.dtype.name}")
        if not np.isfinite(values).all():
            raise InvalidValueError(tensor, values, "finite numbers")
        return self.with_op(node, _with(self.producer(node).op, field.split("."), values))

    def with_datatype(self, tensor: str, datatype: DataType, scale: float | None = None, zero_point: int = 0) -> N:
        """Return the network with another datatype, scale and zero point for a tensor.

        Args:
            tensor: The tensor.
            datatype: Its new datatype.
            scale: Its new scale; None keeps the present one.
            zero_point: Its new zero point.

        Raises:
            UnsupportedError: The network is a float network.
        """
        node = self.producer(tensor)
        if not isinstance(node, QNode):
            subject, reason = f"a datatype of {tensor}", "the network holds floats"
            raise UnsupportedError(subject, reason, where=self.network.name, remedy="quantise it first")
        type_ = TensorType(datatype, node.type.scale if scale is None else scale, zero_point)
        return self._changed(self.index(tensor), replace(node, type=type_))

    def with_shape(self, tensor: str, shape: Shape) -> N:
        """Return the network with an input image of another shape; all other shapes are computed from it."""
        node = self.producer(tensor)
        if not isinstance(node.op, (Input, QInput)):
            remedy = f"set the shape of {self.network.nodes[0].name}"
            raise UnsupportedError(f"a shape of {tensor}", "it follows from its inputs", remedy=remedy)
        return self._changed(self.index(tensor), replace(node, shape=shape))

    def with_op(self, tensor: str, op: Op | QOp) -> N:
        """Return the network with ``op`` as the operation of the node named ``tensor``."""
        return self._changed(self.index(tensor), replace(self.producer(tensor), op=cast(Any, op)))

    def _changed(self, index: int, node: Node | QNode) -> N:
        nodes = [*self.network.nodes]
        nodes[index] = cast(Any, node)
        return checked(replace(self.network, nodes=_shaped(nodes)))


def _arrays(value: Any) -> Iterator[tuple[str, Array]]:
    """Yield the arrays in a frozen dataclass and in the dataclasses inside it, each with its dotted field path."""
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
    """Return the nodes with every shape recomputed from the node's operation and inputs."""
    shaped: list[Any] = []
    for node in nodes:
        inputs = tuple(shaped[i] for i in node.inputs)
        shaped.append(replace(node, shape=expected_shape(node, inputs)) if inputs else node)
    return tuple(shaped)


def checked(network: N) -> N:
    """Return the network itself if it is valid; otherwise raise an error that names the node.

    Nodes must follow their inputs, shapes must match them, and integers must keep the arithmetic contract.
    """
    if isinstance(network, QuantizedNetwork):
        return check_quantized(network)
    for index, node in enumerate(network.nodes):
        if bool(node.inputs) == (index == 0) or not all(0 <= i < index for i in node.inputs):
            required = "indices of nodes before it; only node 0 has no inputs"
            raise InvalidValueError("its inputs", node.inputs, required, where=f"{node.name!r} ({node.source})")
        shape = expected_shape(node, tuple(network.nodes[i] for i in node.inputs)) if index else node.shape
        if shape != node.shape:
            where = f"{node.name!r} ({node.source})"
            raise MismatchError("its shape", str(node.shape), str(shape), where=where)
    return network


def unread_nodes(network: N) -> tuple[int, ...]:
    """Return the indices of the nodes that no other node reads."""
    read = {i for node in network.nodes for i in node.inputs}
    return tuple(i for i in range(len(network.nodes)) if i not in read)


def without(network: N, *indices: int) -> N:
    """Return the network without these nodes; the others keep their order.

    Raises:
        ConflictError: A remaining node reads one of them.
    """
    places = {old: new for new, old in enumerate(i for i in range(len(network.nodes)) if i not in indices)}
    nodes = []
    for old in places:
        node: Any = network.nodes[old]
        for i in node.inputs:
            if i not in places:
                subjects = (f"the removal of {network.nodes[i].name!r}", f"{node.name!r}")
                raise ConflictError(subjects, "the second reads the first", where=network.name)
        nodes.append(replace(node, inputs=tuple(places[i] for i in node.inputs)))
    return checked(replace(network, nodes=cast(Any, tuple(nodes))))
