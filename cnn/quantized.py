"""The integer network, which the golden models, the scheduler and the generator share.

The value of a tensor's element is (integer − zero point) × scale; the zero point is 0 unless a file brings its own
quantisation. Every operation that computes carries its own requantiser (``cnn.requantise``).
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
    """One layer; ``shape`` and ``type`` are those of its output, ``source`` as in cnn.network.Node."""

    name: str
    op: QOp
    inputs: tuple[int, ...]
    shape: Shape
    type: TensorType
    source: str

    @property
    def place(self) -> str:
        """The name and the source, as errors give them."""
        return f"{self.name!r} ({self.source})"

    @property
    def requantiser(self) -> Requantising | None:
        """What turns its sums into values; None of a node that adds nothing up."""
        return self.op.requantiser if isinstance(self.op, Accumulating) else None


@dataclass(frozen=True, eq=False)
class QuantizedNetwork:
    """``nodes`` have the indices of the float network that it came from.

    From a Softmax, TopK, Output or Detection on, nodes run on the host: their ``type`` is that of their first input,
    and they hold no integers of their own. But what a TopK chooses among integers is integers, labels of
    ``label_type``: a pipeline does it too. ``named_outputs`` are the float network's.
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
        """Of the picture."""
        return self.nodes[0].shape


def has_integers(nodes: Sequence[QNode] | Sequence[Node], index: int) -> bool:
    """Return whether a node has integers: it does not run on the host, or it chooses among the integers of another."""
    node = nodes[index]
    return not node.op.on_host or (isinstance(node.op, TopK) and not nodes[node.inputs[0]].op.on_host)
