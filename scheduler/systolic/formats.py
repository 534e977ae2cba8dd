"""Which of the engine's formats a network asks for, and how values of a format lie in bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from boards.errors import InvalidValueError, RangeError, SeveralFaultsError, UnsupportedError, listed
from cnn.quantized import QuantizedNetwork
from scheduler.systolic.array import BITS, SIX, Array
from scheduler.systolic.network.layer import Layer
from scheduler.systolic.workload import workload_of


def least_bits(network: QuantizedNetwork) -> int:
    """Return 4, 8 or 16: the narrowest lanes that hold every weight and every map that a layer reads.

    The picture fits all of them. Raises RangeError if 16 bits are too few.
    """
    return lane_bits(network, workload_of(network).layers)


def lane_bits(network: QuantizedNetwork, layers: Sequence[Layer]) -> int:
    """``least_bits`` where the network is lowered already."""
    needed = max((max(_weight_bits(layer), _map_bits(network, layer)) for layer in layers), default=BITS[0])
    fitting = [bits for bits in BITS if bits >= needed]
    if not fitting:
        raise RangeError(
            "the number of bits of weights and maps",
            needed,
            high=BITS[-1],
            where=network.name,
            remedy="quantise the network to fewer bits",
        )
    return fitting[0]


def check_format(network: QuantizedNetwork, layers: Sequence[Layer], array: Array) -> None:
    """Raise SeveralFaultsError if the weights or the input of ``layers``, those of the network, are too wide for lanes.

    Weights are narrow (−7…7 at 4 bits): the least value would break the bound of packed products.
    """
    too_wide = _wider(network, layers, array.bits)
    if too_wide:
        raise SeveralFaultsError(
            too_wide,
            f"{network.name} does not fit the lanes of the array {array}",
            remedy=f"quantise it to {array.bits} bits, or take an array of {lane_bits(network, layers)} bits",
        )


def check_products(network: QuantizedNetwork, layers: Sequence[Layer], dsp: str, products: int) -> None:
    """Raise an error if ``products`` are 6 and a DSP cannot compute them at once. layers: of the network.

    Raises:
        UnsupportedError: The DSP is not a DSP48E2.
        SeveralFaultsError: Weights or inputs of layers have more than 4 bits; a weight of −8 counts as 5 bits.
    """
    if products != SIX.products:
        return
    if dsp != "DSP48E2":
        raise UnsupportedError(
            f"{products} products per {dsp}",
            "they need the ports of a DSP48E2, 27 × 18 bits",
            remedy="take a board with DSP48E2s, or leave out --dsp-products, and a DSP computes four products",
        )
    too_wide = _wider(network, layers, 4)
    if too_wide:
        raise SeveralFaultsError(
            too_wide,
            f"{network.name} does not fit {products} products per DSP, of weights −7…7 and inputs −8…7",
            remedy="quantise it to 4 bits with narrow weights (without −8), or leave out --dsp-products",
        )


def check_blocks(layers: Sequence[Layer], columns: int, lanes: int) -> None:
    """Raise InvalidValueError if layers join two maps and channel tiles end in the middle of a channel block.

    Each tile of such a layer reads its own blocks.
    """
    of_two = [layer.name for layer in layers if layer.of_two_maps]
    if columns % lanes and of_two:
        below = columns // lanes * lanes
        raise InvalidValueError(
            "columns",
            columns,
            f"a multiple of the {lanes} lanes, because layers that add or multiply maps read whole blocks of channels",
            tuple(filter(None, (below, below + lanes))),
            where=listed(of_two),
        )


def _wider(network: QuantizedNetwork, layers: Sequence[Layer], lanes: int) -> list[RangeError]:
    """Return an error for the weights and for the input of each layer that lanes of so many bits do not hold."""
    return [
        RangeError(f"the number of bits of {kind}", bits, high=lanes, where=layer.name)
        for layer in layers
        for kind, bits in (("weights", _weight_bits(layer)), ("the input", _map_bits(network, layer)))
        if bits > lanes
    ]


def _weight_bits(layer: Layer) -> int:
    return int(np.abs(layer.weights.astype(np.int64)).max(initial=0)).bit_length() + 1


def _map_bits(network: QuantizedNetwork, layer: Layer) -> int:
    """Lanes are signed: values of an unsigned type take a bit more. Of the maps that the layer reads and those that its
    Saver adds."""
    nodes = [] if layer.reads_pixels else [layer.input]
    nodes += [layer.added.own_node, layer.added.other_node] if layer.added else []
    datatypes = [network.nodes[node].type.datatype for node in nodes]
    return max((datatype.bits + (0 if datatype.signed else 1) for datatype in datatypes), default=BITS[0])


def pack_values(values: npt.NDArray[np.signedinteger], bits: int) -> npt.NDArray[np.int8]:
    """Integers [..., n] of ``bits`` → bytes [..., n · bits / 8] as they lie in DDR: little-endian, at 4 bits two values
    a byte, the first in the low nibble."""
    if bits == 4:
        low, high = values[..., 0::2] & 15, values[..., 1::2] & 15
        return np.ascontiguousarray((low | (high << 4)).astype(np.uint8)).view(np.int8)
    return np.ascontiguousarray(values, np.dtype(f"<i{bits // 8}")).view(np.int8)
