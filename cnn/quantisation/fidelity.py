"""How near the integers come to the floats, layer by layer, as a signal-to-quantisation-noise ratio (SQNR)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
import numpy.typing as npt

from boards.errors import MismatchError
from cnn.float_model import run_float
from cnn.integer_model import dequantise, run_integer
from cnn.maps import FloatArray, Integers, Shape
from cnn.network import Network
from cnn.ops import Activate, QActivate
from cnn.quantisation.quantise import values_of_function
from cnn.quantized import QNode, QuantizedNetwork
from cnn.tables import worst_step


@dataclass(frozen=True)
class LayerFidelity:
    """One node that has integers.

    values: how many. sqnr_db: 10·log10(Σ float² / Σ (float − dequantised)²), inf where they are equal.
    worst: the greatest |float − dequantised|. saturated: the share of values at an end of the datatype.
    """

    name: str
    values: int
    sqnr_db: float
    worst: float
    saturated: float


def fidelity(
    network: Network, quantized: QuantizedNetwork, picture: npt.NDArray[np.uint8]
) -> tuple[LayerFidelity, ...]:
    """One entry a node that no host runs, in order, for one picture uint8 [C, H, W].

    MismatchError if the two are not the same network.
    """
    floats_of = origins(network, quantized)
    integers = run_integer(quantized, picture)
    floats = run_float(network, picture.astype(np.float32) / np.float32(255))
    pixel = quantized.nodes[0].type
    floats[0] -= np.float32(pixel.zero_point * pixel.scale)  # what the integers of a picture are worth begins there
    return tuple(
        _layer(node, floats[origin], array)
        for node, origin, array in zip(quantized.nodes, floats_of, integers, strict=True)
        if array is not None and not node.op.on_host
    )


def origins(network: Network, quantized: QuantizedNetwork) -> tuple[int, ...]:
    """Of each quantised node the float node whose values it has: the one of its name, or, of a copy that a mapping has
    put between, the one that it copies. MismatchError if the two are not the same network."""
    index_of = {node.name: index for index, node in enumerate(network.nodes)}
    _check_same(network, quantized)
    if len(network.nodes) == len(quantized.nodes):
        return tuple(range(len(network.nodes)))
    nodes: list[int] = []
    for node in quantized.nodes:
        nodes.append(index_of[node.name] if node.name in index_of else nodes[node.inputs[0]])
    return tuple(nodes)


def heads(network: QuantizedNetwork) -> tuple[int, ...]:
    """Nodes whose integers leave the accelerator: the host reads them, or nobody does."""
    left_to_host = {i for node in network.nodes if node.op.on_host for i in node.inputs}
    read = {i for node in network.nodes for i in node.inputs}
    return tuple(
        i for i, node in enumerate(network.nodes) if not node.op.on_host and (i in left_to_host or i not in read)
    )


def heads_sqnr_db(
    network: Network, quantized: QuantizedNetwork, pictures: Iterable[npt.NDArray[np.uint8]]
) -> dict[str, float]:
    """The ratio at every head, by the node's name, over all pictures uint8 [C, H, W] together.

    inf where a head is exact, −inf where it is all zeros. MismatchError if the two are not the same network.
    """
    floats_of, outputs = origins(network, quantized), heads(quantized)
    exact: dict[int, list[FloatArray]] = {i: [] for i in outputs}
    dequantised: dict[int, list[FloatArray]] = {i: [] for i in outputs}
    for picture in pictures:
        integers = run_integer(quantized, picture)
        floats = run_float(network, picture.astype(np.float32) / np.float32(255))
        for i in outputs:
            array = integers[i]
            assert array is not None
            exact[i].append(floats[floats_of[i]])
            dequantised[i].append(dequantise(array, quantized.nodes[i].type))
    return {quantized.nodes[i].name: sqnr_db(np.stack(exact[i]), np.stack(dequantised[i])) for i in outputs}


def steps_off(network: Network, quantized: QuantizedNetwork) -> dict[str, int]:
    """By the name of each function in pieces of lines (cnn.quantisation.tables) the most steps of its output that any
    value of its input is off the function itself, rounded. MismatchError if the two are not the same network."""
    off = {}
    for node, origin in zip(quantized.nodes, origins(network, quantized), strict=True):
        op = network.nodes[origin].op
        if isinstance(node.op, QActivate) and node.op.table.slopes is not None and isinstance(op, Activate):
            source = quantized.nodes[node.inputs[0]].type
            exact = values_of_function(op, source, node.type)
            off[node.name] = worst_step(node.op.table, exact, source.datatype)
    return off


def sqnr_db(exact: FloatArray, approximate: FloatArray) -> float:
    """10·log10(Σ exact² / Σ (exact − approximate)²) in dB; arrays of one shape. inf where they are equal."""
    signal = float(np.sum(exact.astype(np.float64) ** 2))
    noise = float(np.sum((exact.astype(np.float64) - approximate) ** 2))
    if noise == 0:
        return math.inf
    return 10 * math.log10(signal / noise) if signal > 0 else -math.inf


def table(layers: Sequence[LayerFidelity]) -> str:
    """The report as text, one line a layer."""
    width = max([len("layer"), *(len(layer.name) for layer in layers)])
    head = f"{'layer':{width}}  {'values':>9}  {'SQNR dB':>8}  {'worst':>10}  {'saturated':>9}"
    rows = [
        f"{layer.name:{width}}  {layer.values:9d}  {layer.sqnr_db:8.2f}  {layer.worst:10.4g}  {layer.saturated:9.3%}"
        for layer in layers
    ]
    return "\n".join([head, *rows])


def _layer(node: QNode, exact: FloatArray, integers: Integers) -> LayerFidelity:
    approximate = dequantise(integers, node.type)
    datatype = node.type.datatype
    ends = (integers <= datatype.low) & datatype.signed | (integers >= datatype.high)
    return LayerFidelity(
        node.name,
        int(integers.size),
        sqnr_db(exact, approximate),
        float(np.max(np.abs(exact - approximate))),
        float(np.mean(ends)),
    )


def _check_same(network: Network, quantized: QuantizedNetwork) -> None:
    ours = [(node.name, node.shape) for node in network.nodes]
    names = {node.name for node in network.nodes}
    theirs = [(node.name, node.shape) for node in quantized.nodes if node.name in names or not node.inputs]
    if ours != theirs:
        one, other = next(pair for pair in zip_longest(ours, theirs, fillvalue=("no layer", "")) if pair[0] != pair[1])
        raise MismatchError(
            f"a layer of {quantized.name!r}, compared with {network.name!r},",
            _told(*other),
            _told(*one),
            remedy="quantise this network again",
        )


def _told(name: str, shape: Shape | str) -> str:
    return f"{name} {shape}".rstrip()
