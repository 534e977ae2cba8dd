"""The integer network, which the golden models, the scheduler and the generator share.

The value of a tensor's element is (integer − zero point) × scale. The zero point is 0 unless the network's file has its
own quantisation, or asymmetric quantisation is requested. Every operation that computes sums has its own requantiser
(``cnn.requantise``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cnn.datatype import TensorType
from cnn.maps import Shape
from cnn.named_outputs import NamedOutput
from cnn.network import Node
from cnn.ops import Accumulating, QOp, TopK
from cnn.requantise import Requantising


@dataclass(frozen=True, eq=False)
class QNode:
    """One layer of an integer network.

    Attributes:
        name: The layer's name.
        op: Its operation.
        inputs: The indices of the nodes that it reads.
        shape: The shape of its output.
        type: The type of its output.
        source: The place where it was declared, as in cnn.network.Node.
    """

    name: str
    op: QOp
    inputs: tuple[int, ...]
    shape: Shape
    type: TensorType
    source: str

    @property
    def place(self) -> str:
        """The layer's name and where it was declared ("yolo.cfg:35"), as error messages show them."""
        return f"{self.name!r} ({self.source})"

    @property
    def requantiser(self) -> Requantising | None:
        """The arithmetic that turns the layer's accumulators into outputs; None if it does not accumulate."""
        return self.op.requantiser if isinstance(self.op, Accumulating) else None


@dataclass(frozen=True, eq=False)
class QuantizedNetwork:
    """An integer network: a tuple of nodes in topological order, of which node 0 is the input image.

    The first Softmax, TopK, Output or Detection and all nodes after it run on the host. Their ``type`` is their first
    input's type, and they have no integers of their own. A TopK of integers is the exception: its output is integers,
    and labels have the type ``label_type``, because a pipeline can compute it too.

    Attributes:
        name: The network's name, as in the float network.
        nodes: The nodes in topological order; node 0 is the input.
        labels: The names of the classes; may be empty.
        named_outputs: The outputs of the network's file, as in the float network.
    """

    name: str
    nodes: tuple[QNode, ...]
    labels: tuple[str, ...] = ()
    named_outputs: tuple[NamedOutput, ...] = ()

    def __repr__(self) -> str:
        shape = self.input_shape
        size = f"{shape.width} × {shape.height} pixels of {shape.channels} channels"
        return f"<quantised {self.name}: {len(self.nodes)} nodes, {size}>"

    @property
    def input_shape(self) -> Shape:
        """The shape of the input image."""
        return self.nodes[0].shape


def has_integers(nodes: Sequence[QNode] | Sequence[Node], index: int) -> bool:
    """Return whether a node's output is integers: it runs on the accelerator, or it is a TopK that reads integers."""
    node = nodes[index]
    return not node.op.on_host or (isinstance(node.op, TopK) and not nodes[node.inputs[0]].op.on_host)
