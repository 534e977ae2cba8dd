"""Transformations of networks. Each is repeated until nothing changes, and golden results are compared every time.

``fold_pointwise`` and ``merge_tables`` merge a layer with another one. cnn.quantisation.batch_norm folds batch norms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from boards.errors import InvalidValueError, MismatchError, RangeError, StateError, shown
from cnn.extending.registry import Registry
from cnn.float_model import run_float
from cnn.integer_model import run_integer
from cnn.maps import FloatArray, Padding
from cnn.network import Network, Node
from cnn.ops import Activate, AveragePool, Convolution, Dense, QActivate
from cnn.passes.view import N, checked, unread_nodes, without
from cnn.quantisation.batch_norm import fold_batch_norms
from cnn.quantized import QuantizedNetwork
from cnn.tables import Table, looked_up

OF_PIXELS = (Activate, AveragePool, Convolution, Dense)
"""Operations that may read the picture directly, because they compute new values from its pixels."""


def fold_pointwise(network: Network) -> Network:
    """Return the network with each 1×1 depthwise convolution merged with the convolution or dense layer before it.

    A 1×1 depthwise convolution is a factor and an offset per channel. The layer before must have no activation and no
    other reader. Batch norms of both are folded first. The merged node has the name of the second.
    """
    for index, node in enumerate(network.nodes):
        source = _read_alone(network, index)
        if source is None or not (_is_factor(node) and isinstance(source, Node) and _is_open(source)):
            continue
        plain = fold_batch_norms(replace(network, nodes=(source, node)))
        first, second = (cast("Convolution | Dense", each.op) for each in plain.nodes)
        factor: FloatArray = second.weights.ravel()
        op = replace(
            first,
            weights=first.weights * factor.reshape(-1, *(1,) * (first.weights.ndim - 1)),
            bias=first.bias * factor + second.bias,
            activation=second.activation,
        )
        return _merged(network, index, op)
    return network


def convolve_picture(network: Network) -> Network:
    """Return the network with a 1×1 identity convolution between the input image and layers that only move or join it.

    This convolution changes no value. It is needed because the systolic array does not store the picture as a map.
    """
    moving = {i for i, node in enumerate(network.nodes) if 0 in node.inputs and not isinstance(node.op, OF_PIXELS)}
    if not moving:
        return network
    channels = network.input_shape.channels
    weights, bias = np.ones((channels, 1, 1, 1), np.float32), np.zeros(channels, np.float32)
    same = Convolution(weights, bias, None, 1, Padding(), channels, "linear")
    name = next(name for name in map("picture{}".format, count(1)) if name not in {node.name for node in network.nodes})
    nodes = [network.nodes[0], Node(name, same, (0,), network.input_shape, f"{network.name}: its picture")]
    for index, node in enumerate(network.nodes[1:], 1):
        inputs = tuple(i + 1 if i else int(index in moving) for i in node.inputs)
        nodes.append(replace(node, inputs=inputs))
    return replace(network, nodes=tuple(nodes))


def merge_tables(network: QuantizedNetwork) -> QuantizedNetwork:
    """Return the network with each two successive lookup-table layers merged into one: y = second[first[x]].

    The first table must be exact and have no other reader.
    """
    for index, node in enumerate(network.nodes):
        source = _read_alone(network, index)
        if source is None or not (isinstance(node.op, QActivate) and isinstance(source.op, QActivate)):
            continue
        if source.op.table.slopes is not None:
            continue  # a piecewise-linear table could not give the same integers as both tables
        values = looked_up(node.op.table, source.op.table.values, network.nodes[node.inputs[0]].type.datatype)
        return _merged(network, index, QActivate(Table(values)))
    return network


def _read_alone(network: Network | QuantizedNetwork, index: int) -> Any:
    """Return the node's only input node if no other node reads that; None if it has several inputs or readers."""
    inputs = network.nodes[index].inputs
    readers = sum(node.inputs.count(inputs[0]) for node in network.nodes) if len(inputs) == 1 else 0
    return network.nodes[inputs[0]] if readers == 1 else None


def _merged(network: N, index: int, op: Any) -> N:
    """Return the network without the input of node ``index``, which gets the operation ``op`` and that input's
    inputs."""
    nodes: list[Any] = [*network.nodes]
    source = nodes[index].inputs[0]
    nodes[index] = replace(nodes[index], op=op, inputs=nodes[source].inputs)
    return without(replace(network, nodes=cast(Any, tuple(nodes))), source)


def _is_factor(node: Node) -> bool:
    op = node.op
    if not isinstance(op, Convolution) or op.stride != 1 or op.padding != Padding():
        return False
    return op.weights.shape == (op.groups, 1, 1, 1)


def _is_open(node: Node) -> bool:
    return isinstance(node.op, (Convolution, Dense)) and node.op.activation == "linear"


Transformation: TypeAlias = Callable[[Any], Any]
"""A function network → network, or quantised network → quantised network.

It returns its argument itself if nothing changes.
"""

PASSES: Registry[Transformation] = Registry(
    "systolic.passes",
    {
        "fold_batch_norms": fold_batch_norms,
        "fold_pointwise": fold_pointwise,
        "merge_tables": merge_tables,
        "convolve_picture": convolve_picture,
    },
)
"""The passes by name. A package adds its own by the entry points systolic.passes."""

MAX_ROUNDS = 100
"""The most repetitions of a pass; a pass that still changes something after them is refused."""

TOLERANCE = 1e-4
"""The greatest change of a float output, as a share of its greatest value. Integer outputs must not change."""

Pixels = npt.NDArray[np.uint8]


def transformed(network: N, *passes: str | Transformation, picture: Pixels | None = None) -> N:
    """Return the network after each pass (transformation) in turn, every one repeated until it changes nothing.

    Args:
        network: The network.
        passes: Names of PASSES, or functions.
        picture: uint8 [channels, height, width], for the comparison of golden results; noise if it is missing.

    Raises:
        ChoiceError: There is no pass of a name.
        InvalidValueError: A pass returns something else than a network.
        StateError: A pass never ends.
        MismatchError: A pass changes the input or the number of outputs.
        RangeError: A pass changes an output: floats by more than 1e-4 of its greatest value, integers at all.
    """
    for each in passes:
        run = PASSES.named(each, "pass") if isinstance(each, str) else each
        network = _settled(network, run, each if isinstance(each, str) else name_of(run), picture)
    return network


def name_of(run: Transformation) -> str:
    """Return the name of a transformation function, as errors show it."""
    return str(getattr(run, "__name__", run))


def _settled(network: N, run: Callable[[N], N], name: str, picture: Pixels | None) -> N:
    for _ in range(MAX_ROUNDS):
        changed = run(network)
        if changed is network:
            break
        if type(changed) is not type(network):
            required = f"a {type(network).__name__} of {network.name!r}, or its argument"
            raise InvalidValueError("the result", changed, required, where=f"the pass {shown(name)}")
        _compare(network, checked(changed), name, picture)
        network = changed
    else:
        state = f"still changes {network.name!r} after {MAX_ROUNDS} rounds"
        remedy = "return the argument itself if nothing is left to do"
        raise StateError(f"the pass {shown(name)}", state, remedy=remedy)
    return network


def _compare(source: N, network: N, name: str, picture: Pixels | None) -> None:
    """Raise an error if two networks, before and after a pass, give different outputs for one image."""
    shape, where = source.input_shape, f"the pass {shown(name)}"
    if network.input_shape != shape:
        raise MismatchError("the shape of the input", str(network.input_shape), str(shape), where=where)
    sides = (shape.channels, shape.height, shape.width)
    frame = np.random.default_rng(0).integers(0, 256, sides, np.uint8) if picture is None else picture
    results, expected = results_of(network, frame), results_of(source, frame)
    if len(results) != len(expected):
        raise MismatchError("the number of outputs", len(results), len(expected), where=where)
    exact = isinstance(source, QuantizedNetwork)
    for number, (result, golden) in enumerate(zip(results, expected, strict=True)):
        fits = result.shape == golden.shape
        error = float(np.abs(result.astype(np.float64) - golden).max(initial=0)) if fits else np.inf
        most = 0 if exact else TOLERANCE * float(np.abs(golden).max(initial=1e-6))
        if not error <= most:
            raise RangeError(f"the change of output {number} of {source.name!r}", error, 0, most, where=where)


def results_of(network: Network | QuantizedNetwork, picture: Pixels) -> list[npt.NDArray[Any]]:
    """Return the outputs of a network for an image, uint8 [channels, height, width], in the order of its nodes.

    They are floats, or the integers that the host reads.
    """
    if isinstance(network, Network):
        floats = run_float(network, picture.astype(np.float32) / np.float32(255))
        return [floats[i] for i in unread_nodes(network)]
    read = {i for node in network.nodes if node.op.on_host for i in node.inputs if not network.nodes[i].op.on_host} | {
        i for i in unread_nodes(network) if not network.nodes[i].op.on_host
    }
    integers = run_integer(network, picture)
    return [cast("npt.NDArray[Any]", integers[i]) for i in sorted(read)]
