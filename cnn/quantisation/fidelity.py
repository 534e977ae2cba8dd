"""The error of the integers compared with the floats, per layer, as a signal-to-quantisation-noise ratio (SQNR)."""

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
from cnn.network import Network, Node
from cnn.ops import Activate, QActivate
from cnn.quantisation.quantise import values_of_function
from cnn.quantized import QNode, QuantizedNetwork
from cnn.tables import worst_step


@dataclass(frozen=True)
class LayerFidelity:
    """The quantisation error of one node's output compared with the float network: SQNR, greatest error, saturation.

    Attributes:
        values: The number of values.
        sqnr_db: 10·log10(Σ float² / Σ (float − dequantised)²) in dB; inf if they are equal.
        worst: The greatest |float − dequantised|.
        saturated: The share of values at an end of the datatype.
    """

    name: str
    values: int
    sqnr_db: float
    worst: float
    saturated: float


def fidelity(
    network: Network, quantized: QuantizedNetwork, picture: npt.NDArray[np.uint8]
) -> tuple[LayerFidelity, ...]:
    """Return the quantisation error of each node that the accelerator computes, in node order, for one image.

    Args:
        network: The float network.
        quantized: The quantised network.
        picture: uint8 [channels, height, width].

    Raises:
        MismatchError: The two are not the same network.
    """
    floats_of = origins(network, quantized)
    integers = run_integer(quantized, picture)
    floats = run_float(network, picture.astype(np.float32) / np.float32(255))
    pixel = quantized.nodes[0].type
    floats[0] -= np.float32(pixel.zero_point * pixel.scale)  # the float of an integer pixel is relative to this offset
    return tuple(
        _layer(node, floats[origin], array)
        for node, origin, array in zip(quantized.nodes, floats_of, integers, strict=True)
        if array is not None and not node.op.on_host
    )


def origins(network: Network, quantized: QuantizedNetwork) -> tuple[int, ...]:
    """Return, for each quantised node, the index of the float node whose values it holds.

    That is the float node of the same name. A node that a mapping inserted as a copy has the float node of its input.

    Raises:
        MismatchError: The two are not the same network.
    """
    index_of = {node.name: index for index, node in enumerate(network.nodes)}
    _check_same(network, quantized)
    if len(network.nodes) == len(quantized.nodes):
        return tuple(range(len(network.nodes)))
    nodes: list[int] = []
    for node in quantized.nodes:
        nodes.append(index_of[node.name] if node.name in index_of else nodes[node.inputs[0]])
    return tuple(nodes)


def heads(network: Network | QuantizedNetwork) -> tuple[int, ...]:
    """Return the indices of the nodes whose integers the accelerator outputs: the host reads them, or no node does."""
    nodes: Sequence[Node | QNode] = network.nodes
    left_to_host = {i for node in nodes if node.op.on_host for i in node.inputs}
    read = {i for node in nodes for i in node.inputs}
    return tuple(i for i, node in enumerate(nodes) if not node.op.on_host and (i in left_to_host or i not in read))


def heads_sqnr_db(
    network: Network, quantized: QuantizedNetwork, pictures: Iterable[npt.NDArray[np.uint8]]
) -> dict[str, float]:
    """Return the SQNR in dB of every accelerator output, by its node's name, over all images together.

    It is inf if a head is exact, and −inf if its floats are all zeros.

    Args:
        network: The float network.
        quantized: The quantised network.
        pictures: uint8 [channels, height, width] each.

    Raises:
        MismatchError: The two are not the same network.
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


def table_errors(network: Network, quantized: QuantizedNetwork) -> dict[str, int]:
    """Return the greatest error of each piecewise-linear lookup table, in output integers, by the name of its node.

    The error is counted in steps of the output, over every value of the input, against the rounded function.

    Raises:
        MismatchError: The two are not the same network.
    """
    off = {}
    for node, origin in zip(quantized.nodes, origins(network, quantized), strict=True):
        op = network.nodes[origin].op
        if isinstance(node.op, QActivate) and node.op.table.slopes is not None and isinstance(op, Activate):
            source = quantized.nodes[node.inputs[0]].type
            exact = values_of_function(op, source, node.type)
            off[node.name] = worst_step(node.op.table, exact, source.datatype)
    return off


def sqnr_db(exact: FloatArray, approximate: FloatArray) -> float:
    """Return 10·log10(Σ exact² / Σ (exact − approximate)²) in dB for arrays of one shape; inf if they are equal."""
    signal = float(np.sum(exact.astype(np.float64) ** 2))
    noise = float(np.sum((exact.astype(np.float64) - approximate) ** 2))
    if noise == 0:
        return math.inf
    return 10 * math.log10(signal / noise) if signal > 0 else -math.inf


def table(layers: Sequence[LayerFidelity]) -> str:
    """Return a text table of layers' quantisation errors, one line per layer."""
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
