"""The float network: a frozen graph of nodes, each with one operation.

A network is a tuple of nodes in topological order. A node refers to its inputs by their index in that tuple. Node 0 is
the input picture. Shapes are channels × height × width.
"""

from __future__ import annotations

from dataclasses import dataclass

from cnn.maps import Shape
from cnn.named_outputs import NamedOutput
from cnn.ops import Convolution, Dense, Op


@dataclass(frozen=True, eq=False)
class Node:
    """One layer of a float network.

    Attributes:
        name: The layer's name.
        op: Its operation.
        inputs: The indices of the nodes that it reads.
        shape: The shape of its output.
        source: The place where it was declared ("yolo.cfg:35"), for errors.
    """

    name: str
    op: Op
    inputs: tuple[int, ...]
    shape: Shape
    source: str

    @property
    def place(self) -> str:
        """The layer's name and where it was declared ("yolo.cfg:35"), as error messages show them."""
        return f"{self.name!r} ({self.source})"


@dataclass(frozen=True, eq=False)
class Network:
    """A float network: a tuple of nodes in topological order, of which node 0 is the input image.

    Attributes:
        name: The network's name: letters, digits and underscores, beginning with a letter.
        nodes: The nodes in topological order; node 0 is the input.
        labels: The names of the classes; may be empty.
        named_outputs: The outputs of the network's file; empty if the format does not name outputs.
    """

    name: str
    nodes: tuple[Node, ...]
    labels: tuple[str, ...] = ()
    named_outputs: tuple[NamedOutput, ...] = ()

    def __repr__(self) -> str:
        shape = self.input_shape
        size = f"{shape.width} × {shape.height} pixels of {shape.channels} channels"
        return f"<{self.name}: {len(self.nodes)} nodes, {size}>"

    @property
    def input_shape(self) -> Shape:
        """The shape of the input image."""
        return self.nodes[0].shape

    @property
    def outputs(self) -> tuple[int, ...]:
        """Indices of the nodes that no other node reads."""
        read = {i for node in self.nodes for i in node.inputs}
        return tuple(i for i in range(len(self.nodes)) if i not in read)


def is_label(value: object) -> bool:
    """Return whether a value can be a class label: any text that UTF-8 can encode.

    JSON text may contain single surrogates, which UTF-8 cannot encode.
    """
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)


def macs(node: Node) -> int:
    """Return the multiply-accumulates that a convolution or dense node needs per image; 0 for other nodes."""
    if isinstance(node.op, Convolution):
        return int(node.op.weights.size) * node.shape.height * node.shape.width
    return int(node.op.weights.size) if isinstance(node.op, Dense) else 0
