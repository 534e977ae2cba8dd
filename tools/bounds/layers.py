"""The products, weights and values of each layer of a network, for any engine.

A layer is a convolution or a dense layer, with the operations that follow it up to the next ones: activations, pools,
additions and multiplications. Concats, slices and other moves of values cost nothing. The host computes the heads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cnn.network import Network, Node, macs
from cnn.ops import Convolution, Dense, Input
from cnn.ops.operation import Move


@dataclass(frozen=True)
class Layer:
    """The needs of one layer per frame. Maps are counted in values, each map once.

    Attributes:
        name: The name of its convolution or dense layer.
        macs: Multiply-accumulates.
        weights: Weights, without biases.
        picture: Values of the input picture that it reads.
        reads: Values that it reads from maps of other layers.
        writes: Values that it writes for other layers.
        results: Values that it writes for the host.
    """

    name: str
    macs: int
    weights: int
    picture: int = 0
    reads: int = 0
    writes: int = 0
    results: int = 0


def layers_of(network: Network) -> tuple[Layer, ...]:
    """Return the layers of a network in order."""
    return _Reader(network).layers()


class _Reader:
    """The nodes of a network by the layers that compute them. A layer is the index of its node with weights."""

    def __init__(self, network: Network) -> None:
        self.nodes = network.nodes
        self.owners: list[int] = []
        for index, node in enumerate(self.nodes):
            own = isinstance(node.op, (Convolution, Dense, Input))
            self.owners.append(index if own else max(self.owners[i] for i in node.inputs))
        self.computed = [index for index, node in enumerate(self.nodes) if _is_computed(node)]

    def layers(self) -> tuple[Layer, ...]:
        owners = [index for index in self.computed if isinstance(self.nodes[index].op, (Convolution, Dense))]
        read = {owner: self._values_read(owner) for owner in owners}
        shared = {source for index in self.computed for source in self._entering(index)}
        results = {source for index in self._last_nodes() for source in self._sources(index)}
        return tuple(
            Layer(
                name=self.nodes[owner].name,
                macs=macs(self.nodes[owner]),
                weights=self._weights(owner),
                picture=read[owner][0],
                reads=read[owner][1],
                writes=self._size(shared - results, owner),
                results=self._size(results, owner),
            )
            for owner in owners
        )

    def _weights(self, owner: int) -> int:
        op = self.nodes[owner].op
        return int(op.weights.size) if isinstance(op, (Convolution, Dense)) else 0

    def _size(self, chosen: set[int], owner: int) -> int:
        return sum(_values(self.nodes[index]) for index in chosen if self.owners[index] == owner)

    def _last_nodes(self) -> Iterator[int]:
        """Yield the nodes that the host reads, and the outputs of the network."""
        for index, node in enumerate(self.nodes):
            readers = [other for other in self.nodes if index in other.inputs]
            if not node.op.on_host and (not readers or any(reader.op.on_host for reader in readers)):
                yield index

    def _sources(self, index: int) -> set[int]:
        """Return the computed maps of which a node consists: itself, or the sources of the values that it moves."""
        node = self.nodes[index]
        return set().union(*map(self._sources, node.inputs)) if isinstance(node.op, Move) else {index}

    def _entering(self, index: int) -> set[int]:
        """Return the computed maps that a node reads from other layers."""
        sources = set().union(*map(self._sources, self.nodes[index].inputs))
        return {source for source in sources if self.owners[source] != self.owners[index]}

    def _values_read(self, owner: int) -> tuple[int, int]:
        """Return the values of the picture and of maps that a layer reads, each map once."""
        maps = {i for index in self.computed if self.owners[index] == owner for i in self.nodes[index].inputs}
        picture = others = 0
        for index in sorted(maps):
            outside = {source for source in self._sources(index) if self.owners[source] != owner}
            values = min(_values(self.nodes[index]), sum(_values(self.nodes[source]) for source in outside))
            if index in self.nodes[owner].inputs:
                values = min(values, _window_values(self.nodes[owner], self.nodes[index]))
            if any(isinstance(self.nodes[source].op, Input) for source in outside):
                picture += values
            else:
                others += values
        return picture, others


def _is_computed(node: Node) -> bool:
    return not (node.op.on_host or isinstance(node.op, (Move, Input)))


def _values(node: Node) -> int:
    return node.shape.channels * node.shape.height * node.shape.width


def _window_values(node: Node, source: Node) -> int:
    """Return the greatest number of values of ``source`` that the windows of a convolution cover together."""
    if not isinstance(node.op, Convolution):
        return _values(source)
    rows, columns = node.op.weights.shape[2:]
    return int(source.shape.channels * node.shape.height * rows * node.shape.width * columns)
