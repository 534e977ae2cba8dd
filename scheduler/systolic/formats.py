"""Which of the engine's formats a network asks for, and how values of a format lie in bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from boards.errors import ScheduleError, faults
from cnn.quantized import QuantizedNetwork
from scheduler.systolic.array import BITS, SIX, Array
from scheduler.systolic.layers import lower
from scheduler.systolic.network.layer import Layer


def least_bits(network: QuantizedNetwork) -> int:
    """4, 8 or 16: the narrowest lanes that hold every weight and every map that a layer reads (the picture fits all).

    ScheduleError where 16 bits do not.
    """
    return lane_bits(network, lower(network))


def lane_bits(network: QuantizedNetwork, layers: Sequence[Layer]) -> int:
    """``least_bits`` where the network is lowered already."""
    needed = max((max(_weight_bits(layer), _map_bits(network, layer)) for layer in layers), default=BITS[0])
    fitting = [bits for bits in BITS if bits >= needed]
    if not fitting:
        raise ScheduleError(
            f"{network.name} has weights or maps of {needed} bits, but the widest lanes have {BITS[-1]}; "
            "quantise it to fewer bits"
        )
    return fitting[0]


def check_format(network: QuantizedNetwork, layers: Sequence[Layer], array: Array) -> None:
    """ScheduleError names every layer whose weights or input are wider than the array's lanes. layers: of the network.

    Weights are narrow (−7…7 at 4 bits): the least value would break the bound of packed products.
    """
    too_wide = _wider(network, layers, array.bits)
    if too_wide:
        raise ScheduleError(
            f"the array {array} has lanes of {array.bits} bits, but {network.name} has {faults(too_wide)}; "
            f"quantise it to {array.bits} bits, or take an array of {lane_bits(network, layers)}"
        )


def check_products(network: QuantizedNetwork, layers: Sequence[Layer], dsp: str, products: int) -> None:
    """ScheduleError names what keeps a DSP from ``products`` at once, where they are 6: another DSP than a DSP48E2, and
    every layer whose weights or input have more than 4 bits. Of weights −8 counts as 5. layers: of the network."""
    if products != SIX.products:
        return
    if dsp != "DSP48E2":
        raise ScheduleError(
            f"six products take the ports of a DSP48E2, 27 × 18 bits, and this board has a {dsp}, 25 × 18: take "
            "another board, or leave --dsp-products out, and a DSP multiplies four"
        )
    too_wide = _wider(network, layers, 4)
    if too_wide:
        raise ScheduleError(
            f"six products of a DSP are of weights of −7…7 and inputs of −8…7, but {network.name} has "
            f"{faults(too_wide)}; quantise it to 4 bits, −8 being a weight of 5, or leave --dsp-products out"
        )


def check_blocks(layers: Sequence[Layer], columns: int, lanes: int) -> None:
    """ScheduleError names the layers that join two maps, where channel tiles of such an array end in the middle of a
    channel block: each tile of them reads its own blocks."""
    of_two = [layer.name for layer in layers if layer.of_two_maps]
    if columns % lanes and of_two:
        raise ScheduleError(
            f"layers that add or multiply maps take whole blocks of {lanes} channels, and {columns} columns end in the "
            f"middle of one: {faults(of_two)}; take columns that are a multiple of the lanes"
        )


def _wider(network: QuantizedNetwork, layers: Sequence[Layer], lanes: int) -> list[str]:
    """What does not fit lanes of so many bits."""
    return [
        f"{layer.name}: {kind} of {bits} bits"
        for layer in layers
        for kind, bits in (("weights", _weight_bits(layer)), ("an input", _map_bits(network, layer)))
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
