"""Layers and functions of installed packages (docs/how-to/extend.md), added to a network that was drawn.

A package checks which maps and parameters its layer accepts, and refuses all others. Parameters are therefore drawn
until the layer accepts them, and a package needs no code for the fuzzer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from boards.errors import SystolicError
from cnn.activations import FUNCTIONS
from cnn.extending.layers import LAYERS
from cnn.maps import Shape
from cnn.network import Network, Node
from cnn.ops import Activate, Custom, Detection, Output, Softmax, TopK
from cnn.quantized import QNode, QuantizedNetwork
from scheduler.streaming.blocks.packages import BLOCKS
from systolic.model import Model
from tests.fuzz.networks.dice import Dice

OFTEN = 0.8
"""The share of the networks that get added layers, if an installed package has a layer or function for them."""

MAX_ADDED, TRIES = 3, 40
"""Limits for the number of layers that are added to a network, and for the parameters that are tried per layer."""

MAX_CHANNELS, MAX_VALUES = 64, 1 << 13
"""Limits for the channels and the values of an added layer's output."""

ON_HOST = (Detection, Output, Softmax, TopK)

AnyNode = TypeVar("AnyNode", Node, QNode)


def drawn_added(dice: Dice, style: str, exported: bool) -> dict[str, Any]:
    """Return {"added": {"layers": names, "seed"}} for a case, or {} if no installed package fits or none is drawn.

    The streaming style takes the layers that have a streaming block; both styles take functions.

    Args:
        exported: Whether the network has its own integers. No function can be added to such a network.
    """
    names = [name for name in LAYERS if name in BLOCKS] if style == "streaming" else []
    names += [] if exported else FUNCTIONS.added
    if not names or not dice.chance(OFTEN):
        return {}
    layers = [dice.pick(sorted(names)) for _ in range(dice.whole(1, MAX_ADDED))]
    return {"added": {"layers": layers, "seed": dice.seed()}}


def with_added(model: Model, added: Mapping[str, Any] | None) -> Model:
    """Return the model with these layers, except those whose inputs are not found in the network."""
    network, quantized = model.network, model.quantized
    for number, name in enumerate(added["layers"] if added else ()):
        dice = Dice(added["seed"], number) if added else Dice(0)
        network, quantized = _with_one(network, quantized, name, dice)
    return replace(model, network=network, quantized=quantized)


def _with_one(
    network: Network, quantized: QuantizedNetwork | None, name: str, dice: Dice
) -> tuple[Network, QuantizedNetwork | None]:
    places = [i for i, node in enumerate(network.nodes) if i and not isinstance(node.op, ON_HOST)]
    for place in _shuffled(places, dice):
        op = Custom(name) if name in LAYERS else Activate(name)
        reads = _sources(network, quantized, place, op.definition.inputs if isinstance(op, Custom) else 1, dice)
        fitting = _fitting(op, [network.nodes[i].shape for i in reads], dice) if isinstance(op, Custom) else op
        if fitting is None:
            continue
        shape = network.nodes[place].shape
        if isinstance(fitting, Custom):
            shape = fitting.output_shape([network.nodes[i].shape for i in reads])
        node = Node(f"added{len(network.nodes)}", fitting, tuple(reads), shape, "drawn")
        if quantized is not None and isinstance(fitting, Custom):
            like = quantized.nodes[place]
            integers = QNode(node.name, fitting, node.inputs, shape, like.type, like.source)
            quantized = replace(quantized, nodes=_behind(quantized.nodes, place, integers))
        return replace(network, nodes=_behind(network.nodes, place, node)), quantized
    return network, quantized


def _shuffled(places: Sequence[int], dice: Dice) -> Iterator[int]:
    left = list(places)
    while left:
        yield left.pop(dice.whole(0, len(left) - 1))


def _sources(
    network: Network, quantized: QuantizedNetwork | None, place: int, count: int, dice: Dice
) -> tuple[int, ...]:
    """Return the ``count`` nodes that an added layer reads: ``place``, and earlier nodes of its shape and type."""
    nodes = network.nodes
    alike = [i for i in range(1, place + 1) if nodes[i].shape == nodes[place].shape]
    alike = [i for i in alike if not isinstance(nodes[i].op, ON_HOST)]
    if quantized is not None:
        alike = [i for i in alike if quantized.nodes[i].type == quantized.nodes[place].type]
    return (place, *(dice.pick(alike) for _ in range(count - 1)))


def _fitting(op: Custom, read: Sequence[Shape], dice: Dice) -> Custom | None:
    """Return the layer with parameters that it accepts, or None if it refuses all that are tried."""
    for _ in range(TRIES):
        tried = replace(op, parameters=tuple(dice.whole(1, 6) for _ in range(dice.pick((0, 1, 1, 2)))))
        try:
            shape = tried.output_shape(read)
            if shape.channels <= MAX_CHANNELS and shape.values <= MAX_VALUES:
                tried.run([np.zeros((s.channels, s.height, s.width), np.float32) for s in read], shape)
                return tried
        except SystolicError:
            continue
    return None


def _behind(nodes: tuple[AnyNode, ...], place: int, added: AnyNode) -> tuple[AnyNode, ...]:
    """Insert ``added`` after the node ``place``.

    If both have the same shape, the nodes that read ``place`` read ``added`` instead.
    """
    takes_over = added.shape == nodes[place].shape

    def moved(index: int) -> int:
        return index + (index > place or (index == place and takes_over))

    larger: list[AnyNode] = list(nodes[: place + 1])
    larger.append(added)
    larger += [replace(node, inputs=tuple(moved(i) for i in node.inputs)) for node in nodes[place + 1 :]]
    return tuple(larger)
