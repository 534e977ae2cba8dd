"""The engine's formats: the narrowest one for a network, checks that a network fits a format, and packed bytes."""

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
    """Return the narrowest lane width (4, 8 or 16 bits) that holds all weights and all feature maps that the layers
    read.

    The picture has no influence, because it fits lanes of any format.

    Raises:
        RangeError: Lanes of 16 bits are too narrow.
    """
    return lane_bits(network, workload_of(network).layers)


def lane_bits(network: QuantizedNetwork, layers: Sequence[Layer]) -> int:
    """Return the narrowest lane width (4, 8 or 16 bits) for a network that is already lowered to ``layers``."""
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
    """Raise SeveralFaultsError if weights or inputs of the network's ``layers`` have more bits than the array's lanes.

    Weights must be narrow (−7…7 at 4 bits), because the lowest value would break the bound of packed products.
    """
    too_wide = _wider(network, layers, array.bits)
    if too_wide:
        raise SeveralFaultsError(
            too_wide,
            f"{network.name} does not fit the lanes of the array {array}",
            remedy=f"quantise it to {array.bits} bits, or take an array of {lane_bits(network, layers)} bits",
        )


def check_products(network: QuantizedNetwork, layers: Sequence[Layer], dsp: str, products: int) -> None:
    """Raise an error if six products per DSP are asked for (``products`` is 6) but the DSP or the layers' bits do not
    allow it.

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
    """Raise InvalidValueError if layers add or multiply maps and ``columns`` is not a whole number of ``lanes``.

    Each channel tile of such a layer reads only whole channel blocks.
    """
    of_two = [layer.name for layer in layers if layer.combines_maps]
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
    """Return an error for each layer's weights and each layer's input that have more bits than lanes of ``lanes``
    bits."""
    return [
        RangeError(f"the number of bits of {kind}", bits, high=lanes, where=layer.name)
        for layer in layers
        for kind, bits in (("weights", _weight_bits(layer)), ("the input", _map_bits(network, layer)))
        if bits > lanes
    ]


def _weight_bits(layer: Layer) -> int:
    """Return the bits of the layer's largest weight: its magnitude and a sign."""
    return int(np.abs(layer.weights.astype(np.int64)).max(initial=0)).bit_length() + 1


def _map_bits(network: QuantizedNetwork, layer: Layer) -> int:
    """Return the lane width in bits that the layer's input map and the map of its residual add need.

    Lanes are signed. Therefore values of an unsigned type take one bit more.
    """
    nodes = [] if layer.reads_pixels else [layer.input]
    nodes += [layer.added.own_node, layer.added.other_node] if layer.added else []
    datatypes = [network.nodes[node].type.datatype for node in nodes]
    return max((datatype.bits + (0 if datatype.signed else 1) for datatype in datatypes), default=BITS[0])


def pack_values(values: npt.NDArray[np.signedinteger], bits: int) -> npt.NDArray[np.int8]:
    """Return integers packed as the bytes that DDR stores: little-endian; at 4 bits two values per byte, low nibble
    first.

    Args:
        values: Integers, [..., n].
        bits: Bits of each value.

    Returns:
        [..., n · bits / 8].
    """

    if bits == 4:
        low, high = values[..., 0::2] & 15, values[..., 1::2] & 15
        return np.ascontiguousarray((low | (high << 4)).astype(np.uint8)).view(np.int8)
    return np.ascontiguousarray(values, np.dtype(f"<i{bits // 8}")).view(np.int8)
