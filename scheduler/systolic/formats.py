"""Which of the engine's formats a network asks for, and how values of a format lie in bytes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from boards.errors import ScheduleError
from cnn.quantized import QuantizedNetwork
from scheduler.systolic.array import BITS, Array
from scheduler.systolic.layers import Job, lower


def least_bits(network: QuantizedNetwork) -> int:
    """4, 8 or 16: the narrowest lanes that hold every weight and every map that a layer reads (the picture fits all).

    ScheduleError where 16 bits do not.
    """
    needed = max((max(_weight_bits(job), _map_bits(network, job)) for job in lower(network)), default=BITS[0])
    found = next((bits for bits in BITS if bits >= needed), None)
    if found is None:
        raise ScheduleError(
            f"{network.name} has weights or maps of {needed} bits, but the widest lanes have {BITS[-1]}; "
            "quantise it to fewer bits"
        )
    return found


def check_format(network: QuantizedNetwork, array: Array) -> None:
    """ScheduleError names every layer whose weights or input are wider than the array's lanes.

    Weights are narrow (−7…7 at 4 bits): the least value would break the bound of packed products.
    """
    wrong = [
        f"{job.name}: {what} of {bits} bits"
        for job in lower(network)
        for what, bits in (("weights", _weight_bits(job)), ("an input", _map_bits(network, job)))
        if bits > array.bits
    ]
    if wrong:
        raise ScheduleError(
            f"the array {array} has lanes of {array.bits} bits, but {network.name} has {'; '.join(wrong)}; "
            f"quantise it to {array.bits} bits, or take an array of {least_bits(network)}"
        )


def _weight_bits(job: Job) -> int:
    return int(np.abs(job.weights.astype(np.int64)).max(initial=0)).bit_length() + 1


def _map_bits(network: QuantizedNetwork, job: Job) -> int:
    return network.nodes[job.input].type.datatype.bits if job.input else BITS[0]


def pack_values(values: npt.NDArray[np.signedinteger], bits: int) -> npt.NDArray[np.int8]:
    """Integers [..., n] of ``bits`` → bytes [..., n · bits / 8] as they lie in DDR: little-endian, at 4 bits two values
    a byte, the first in the low nibble."""
    if bits == 4:
        low, high = values[..., 0::2] & 15, values[..., 1::2] & 15
        return np.ascontiguousarray((low | (high << 4)).astype(np.uint8)).view(np.int8)
    return np.ascontiguousarray(values, np.dtype(f"<i{bits // 8}")).view(np.int8)
