"""Writes a chain of convolutions, pools and linear layers as config.json and numbered arrays.

The chain is made of the integer network, so that config.json and the writer of param.h use the same walk over the
layers. Facts that the exporter's config.json has no key for are written under "network" and as w_bit, out_bit and
l_shift (cnn.exported.contest.config).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from boards.errors import UnsupportedError
from cnn.datatype import TensorType
from cnn.dilation import with_zeros
from cnn.exported.contest.config import L_SHIFT, NETWORK, VALUE_BITS, WEIGHT_BITS
from cnn.exported.layer_kinds import MAX_EXTRA_BITS
from cnn.exported.topology import Topology
from cnn.exported.topology_writer import head_options
from cnn.maps import FloatArray, Padding, Shape
from cnn.ops import Detection, MaxPool, QConvolution
from cnn.quantized import QNode, QuantizedNetwork
from cnn.requantise import UP, MultiplyShift
from cnn.stored.npz import write_arrays

AS_ONNX = "export it as ONNX"


@dataclass(frozen=True, eq=False)
class Link:
    """A layer of the chain that is written to UltraNet's config.json, with its name there and the layer that it reads.

    Attributes:
        name: conv_0, pool_0 or linear_0, counted per kind.
        node: The layer.
        source: The layer that it reads.
    """

    name: str
    node: QNode
    source: QNode

    @property
    def convolution(self) -> QConvolution:
        """The integer convolution that a conv or linear layer computes."""
        assert isinstance(self.node.op, QConvolution)
        return self.node.op

    @property
    def shifts(self) -> MultiplyShift | None:
        """The requantiser (inc, bias and shift) of a conv or linear layer; None if it outputs its accumulators."""
        by = self.convolution.requantiser
        return by if isinstance(by, MultiplyShift) else None

    @property
    def bits(self) -> tuple[int, int]:
        """The bits of a weight and the bits of an input value of the layer."""
        return self.convolution.weight_type.bits, self.source.type.datatype.bits

    @property
    def l_shift(self) -> int:
        """UltraNet's l_shift: the number of bits by which the layer's inc and bias are finer than its accumulators."""
        assert self.shifts is not None
        weight_bits, in_bits = self.bits
        return int(self.shifts.shift[0]) - (weight_bits - 1) - in_bits


@dataclass(frozen=True, eq=False)
class Chain:
    """A network whose layers form a chain, as UltraNet's files require: each layer reads only the layer before it.

    Attributes:
        network: The network.
        links: The layers in order, without the input and the head.
        head: The head, which the host computes; None if the network has none.
    """

    network: QuantizedNetwork
    links: tuple[Link, ...]
    head: QNode | None

    @property
    def kernels(self) -> tuple[Link, ...]:
        """The layers of the chain that have weights, which are the conv and linear ones."""
        return tuple(link for link in self.links if isinstance(link.node.op, QConvolution))


@dataclass(frozen=True)
class PictureReading:
    """The preparation of input images by the host: their channel order and the resizing method.

    Attributes:
        order: The order of the channels, "RGB" or "BGR".
        fit: One of the fits, the methods by which pictures are resized.
    """

    order: str
    fit: str


def chain_of(network: QuantizedNetwork) -> Chain:
    """Return an integer network as a chain of layers for UltraNet's files; UnsupportedError if it is not one.

    Raises:
        UnsupportedError: The files cannot express a layer; the error names the first one.
    """
    nodes = [_without_dilation(node) for node in network.nodes]
    head = nodes[-1] if isinstance(nodes[-1].op, Detection) else None
    links: list[Link] = []
    for number, node in enumerate(nodes[1 : len(nodes) - (head is not None)], 1):
        source = nodes[node.inputs[0]]
        kind = _kind(node, source)
        if kind is None or node.inputs != (number - 1,):
            subject = f"{node.name!r} in config.json and param.h"
            reason = (
                "they hold chains of convolutions with batch norm and values 0…1, plain max pools, and linear layers"
            )
            raise UnsupportedError(subject, reason, where=network.name, remedy=AS_ONNX)
        links.append(Link(f"{kind}_{sum(link.name.startswith(kind) for link in links)}", node, source))
    if head is not None and head.inputs != (len(nodes) - 2,):
        reason = "config.json and param.h are a chain of layers that ends in it"
        raise UnsupportedError("a head of another layer than the last", reason, where=network.name, remedy=AS_ONNX)
    chain = Chain(network, tuple(links), head)
    if not chain.kernels or any(link.shifts is None for link in chain.kernels[:-1]):
        reason = "every layer but the last has inc, bias and shift, as networks trained with 'multiply_shift' have"
        raise UnsupportedError("such a network in param.h", reason, where=network.name, remedy=AS_ONNX)
    return chain


def _without_dilation(node: QNode) -> QNode:
    """Return the node with a dilated kernel written out with zeros, because UltraNet's files have no dilation."""
    if not isinstance(node.op, QConvolution):
        return node
    return replace(node, op=replace(node.op, weights=with_zeros(node.op.weights, node.op.dilation), dilation=(1, 1)))


def _kind(node: QNode, source: QNode) -> str | None:
    """Return the node's kind in config.json: "conv", "pool" or "linear"; None if UltraNet's files cannot express it."""
    op = node.op
    if isinstance(op, MaxPool):
        return "pool" if op.window == (op.stride, op.stride) and op.padding == Padding() else None
    if not isinstance(op, QConvolution) or not _is_square(op) or not _is_unit(source.type):
        return None
    if isinstance(op.requantiser, MultiplyShift) and not _is_one_shift(node, op.requantiser, source):
        return None
    covers_map = op.weights.shape[2:] == (source.shape.height, source.shape.width) and op.padding == Padding()
    return "linear" if covers_map else "conv"


def _is_unit(values: TensorType) -> bool:
    """Return whether a tensor's integers are unsigned and represent real values of 0…1."""
    plain = not values.datatype.signed and not values.zero_point
    return plain and bool(np.isclose(values.scale * values.datatype.high, 1))


def _is_square(op: QConvolution) -> bool:
    """Return whether a convolution has one group, a square kernel, and equal padding on all sides."""
    return op.groups == 1 and len(set(_sides(op.padding))) == 1 and op.weights.shape[2] == op.weights.shape[3]


def _is_one_shift(node: QNode, by: MultiplyShift, source: QNode) -> bool:
    """Return whether all channels of a requantiser have one shift, which an l_shift can express, and outputs 0…1."""
    assert isinstance(node.op, QConvolution)
    l_shift = int(by.shift[0]) - (node.op.weight_type.bits - 1) - source.type.datatype.bits
    is_one = len(set(by.shift.tolist())) == 1 and by.halves == UP
    return _is_unit(node.type) and is_one and 0 <= l_shift <= MAX_EXTRA_BITS


def _sides(padding: Padding) -> tuple[int, int, int, int]:
    return padding.top, padding.left, padding.bottom, padding.right


def config_text(chain: Chain, reading: PictureReading, trained: Topology | None) -> str:
    """Return the text of UltraNet's config.json for a chain of layers.

    Args:
        chain: The layers.
        reading: How the host reads pictures.
        trained: The topology whose arrays are written with the file; it says how batch norms are computed.

    Raises:
        UnsupportedError: The exported form does not have this kind of head.
    """
    network: dict[str, Any] = {"name": chain.network.name, "input": {"order": reading.order}, "fit": reading.fit}
    if trained is not None:
        network["batch_norm"] = {"epsilon": trained.epsilon, "added_to": trained.epsilon_of}
        network["input"] |= {} if trained.plain_pixels else {"mean": list(trained.mean), "std": trained.std}
    if chain.network.labels:
        network["labels"] = list(chain.network.labels)
    scale = _scale(chain.kernels[-1])
    if scale is not None:
        network["scale"] = scale
    if chain.head is not None:
        assert isinstance(chain.head.op, Detection)
        kind, options = head_options(chain.head.op, chain.head.source)
        network["head"] = {"type": kind, **options}
    return json.dumps({**{link.name: _entry(link) for link in chain.links}, NETWORK: network}, indent=4) + "\n"


def _scale(link: Link) -> float | None:
    """Return the key "scale" of config.json, by which the last layer's sums are multiplied; None if it is 1 or
    unused."""
    if link.shifts is not None:
        return None
    scale = link.node.type.scale * link.convolution.weight_type.high / link.source.type.scale
    return None if np.isclose(scale, 1) else float(scale)


def _entry(link: Link) -> dict[str, Any]:
    reads, gives = link.source.shape, link.node.shape
    if link.name.startswith("linear"):
        return {"in_len": reads.values, "out_len": gives.channels, **_bits(link)}
    if isinstance(link.node.op, MaxPool):
        return {"in_shape": _listed(reads), "p": link.node.op.size, "out_shape": _listed(gives)}
    op = link.convolution
    sides = {"k": op.weights.shape[2], "s": op.stride, "p": op.padding.top}
    return {"in_shape": _listed(reads), "out_shape": _listed(gives), **sides, **_bits(link)}


def _bits(link: Link) -> dict[str, int]:
    """Return a layer's keys w_bit, out_bit and l_shift for config.json, if they differ from the exporter's defaults."""
    bits, standard = {"w_bit": link.bits[0]}, {"w_bit": WEIGHT_BITS, "out_bit": VALUE_BITS, "l_shift": L_SHIFT}
    if link.shifts is not None:
        bits |= {"out_bit": link.node.type.datatype.bits, "l_shift": link.l_shift}
    return {key: value for key, value in bits.items() if value != standard[key]}


def _listed(shape: Shape) -> list[int]:
    return [shape.channels, shape.height, shape.width]


def last_bias(chain: Chain) -> FloatArray | None:
    """Return the float bias of the last layer, [filters]; None if the last layer requantises its sums."""
    last = chain.kernels[-1]
    if last.shifts is not None:
        return None
    if chain.head is not None and isinstance(chain.head.op, Detection) and chain.head.op.bias:
        return np.array(chain.head.op.bias, np.float32)
    return np.asarray(last.convolution.requantiser.bias * last.node.type.scale, np.float32)  # type: ignore[union-attr]


def numbered_arrays(chain: Chain, topology: Topology, arrays: Mapping[str, FloatArray]) -> bytes | None:
    """Return the bytes of UltraNet's .npz with the arrays arr_0, arr_1 …; None if it cannot express the network.

    Return None if the file holds integers, or requantises by another form than inc, bias and shift.

    Args:
        chain: The layers.
        topology: The topology that the chain was made of.
        arrays: The topology's arrays by name.
    """
    floats = [
        not kernel.integers and (kernel.output_bits is None or topology.requantise_of(kernel) == "multiply_shift")
        for _, kernel in topology.kernels
    ]
    if not all(floats):
        return None
    linear = {f"conv{number}_w" for number, link in enumerate(chain.kernels) if link.name.startswith("linear")}
    numbered: list[FloatArray] = []
    for name, values in arrays.items():
        numbered.append(values.reshape(len(values), -1) if name in linear else values)
        if name.endswith("_var"):
            numbered.append(np.asarray(topology.epsilon))
    return write_arrays({f"arr_{number}": values for number, values in enumerate(numbered)})
