"""Random float arrays for a topology that was quantised by training. A seed gives the same arrays on every machine.

Values neither vanish nor grow through any depth. The mean of each filter's weights is 0. Batch norms bring the sums to
about 0.3 ± 0.35 before they are clipped to 0…1, or to about 0 ± 0.7 before they are clipped to −1…1. One gamma in four
is negative. Only operations that IEEE 754 rounds exactly are used, and no sums in floating point.
"""

from __future__ import annotations

import math

import numpy as np

from boards.errors import RangeError, UnsupportedError
from cnn.datatype import DataType
from cnn.exported.integers import GIVEN, GIVEN_MULTIPLIERS, integer_weights, output_type
from cnn.exported.network import array_shapes
from cnn.exported.topology import Kernel, Sum, Topology, TopologyLayer
from cnn.maps import FloatArray
from cnn.ops import AveragePool, MaxPool

MAX_SEED = (1 << 64) - 1
_HALF = 127  # a weight is the sum of two integers of −127…127: a triangular distribution, close to a normal one
# Mean and spread of values. A picture's values vary as much as a layer's, but neighbouring values are alike.
_PICTURE, _UNIT, _SIGN, _TERNARY = (0.45, 0.12), (0.33, 0.3), (0.0, 1.0), (0.0, 0.75)
_POOLED_SYMMETRIC = (0.6, 0.7)

Random = np.random.Generator


def seeded_arrays(topology: Topology, seed: int) -> dict[str, FloatArray]:
    """Return random float arrays for a topology, by name, from a seed of 0…2^64 − 1; RangeError for another seed."""
    if not 0 <= seed <= MAX_SEED:
        raise RangeError("the seed", seed, 0, MAX_SEED, integer=True)
    random = np.random.Generator(np.random.PCG64(seed))
    arrays: dict[str, FloatArray] = {}
    for layer, kernel in topology.kernels:
        arrays.update(_of_layer(topology, layer, kernel, random))
    return {name: arrays[name] for name in array_shapes(topology)}


def _values(topology: Topology, index: int) -> tuple[float, float]:
    """Return the approximate mean and standard deviation of layer ``index``'s outputs with these random weights."""
    if index == 0:
        mean, spread = _PICTURE
        return (mean - sum(topology.mean) / len(topology.mean)) / topology.std, spread / topology.std
    layer = topology.layers[index - 1]
    if isinstance(layer.op, Kernel):
        symmetric = _SIGN if layer.op.output_bits == 1 else _TERNARY
        return _UNIT if layer.op.activation == "unit" else symmetric
    mean, spread = _values(topology, layer.inputs[0])
    if isinstance(layer.op, Sum):
        return (mean, spread) if layer.op.output_bits else (mean * len(layer.inputs), spread * len(layer.inputs))
    if isinstance(layer.op, MaxPool) and (mean, spread) in (_SIGN, _TERNARY):
        return _POOLED_SYMMETRIC
    return (mean, spread / 2) if isinstance(layer.op, AveragePool) else (mean, spread)


def _whole(topology: Topology, index: int) -> int:
    """Return the integer that represents the real value 1.0 in the output of layer ``index``."""
    if index == 0:
        return 255
    layer = topology.layers[index - 1]
    if isinstance(layer.op, Kernel):
        return output_type(layer.op).high if layer.op.output_bits else 1
    if isinstance(layer.op, Sum) and layer.op.output_bits:
        return DataType(layer.op.output_bits, False).high
    return _whole(topology, layer.inputs[0])


def _of_layer(topology: Topology, layer: TopologyLayer, kernel: Kernel, random: Random) -> dict[str, FloatArray]:
    n, weights, values = kernel.number, _weights(kernel, random), _values(topology, layer.inputs[0])
    integers, datatype = integer_weights(weights, kernel.weight_bits, layer.source)
    one = 1 / kernel.scale if kernel.integers else datatype.high  # the weight that represents 1.0
    weights = integers.astype(np.float32) if kernel.integers else weights
    if kernel.output_bits is None:
        return {f"conv{n}_w": weights, f"conv{n}_b": _uniform(kernel.filters, -1.0, 0.5, random)}
    if topology.requantise_of(kernel) == GIVEN_MULTIPLIERS:
        raise UnsupportedError(
            f"a seed for {GIVEN_MULTIPLIERS!r} of {layer.name!r}",
            "it draws batch norms only",
            where=layer.source,
            remedy="give the .npz of this network",
        )
    rows = integers.astype(np.int64).reshape(kernel.filters, -1)
    variance = np.maximum((rows**2).sum(axis=1), 1) * (values[1] / one) ** 2
    # Signs and sizes are random, so that no two channels are alike.
    signs = np.where(random.integers(0, 4, kernel.filters) == 0, -1.0, 1.0)
    unit = kernel.activation == "unit"
    gamma = signs * _uniform(kernel.filters, 0.25, 0.45, random) * (1 if unit else 2)
    mean = rows.sum(axis=1) * (values[0] / one)
    mean = mean + np.sqrt(variance) * _uniform(kernel.filters, -0.3, 0.3, random)
    if topology.requantise_of(kernel) == GIVEN:
        levels = output_type(kernel).levels
        middle = (np.arange(levels) + 0.5) / levels - 0.5
        rows = mean[:, None] + 2 * signs[:, None] * np.sqrt(variance)[:, None] * middle
        sums = datatype.high * _whole(topology, layer.inputs[0])
        return {f"conv{n}_w": weights, f"conv{n}_t": np.rint(rows * sums).astype(np.float32)}
    bias = {f"conv{n}_b": _uniform(kernel.filters, -0.5, 0.5, random)} if kernel.bias else {}
    mean = mean + bias[f"conv{n}_b"] if bias else mean
    return {
        f"conv{n}_w": weights,
        **bias,
        f"bn{n}_gamma": gamma.astype(np.float32),
        f"bn{n}_beta": _uniform(kernel.filters, 0.15, 0.45, random) - np.float32(0 if unit else 0.3),
        f"bn{n}_mean": mean.astype(np.float32),
        f"bn{n}_var": (variance * _uniform(kernel.filters, 0.7, 1.4, random)).astype(np.float32),
    }


def _weights(kernel: Kernel, random: Random) -> FloatArray:
    """Return random weights with a mean of 0 in every filter, in the shape of the convolution's weights.

    With another mean, the brightness that all inputs share would grow from layer to layer.
    """
    fan = math.prod(kernel.weights[1:])
    drawn = random.integers(-_HALF, _HALF, (2, kernel.filters, fan), dtype=np.int16, endpoint=True)
    total = (drawn[0] + drawn[1]).astype(np.int64)
    centred = total * fan - total.sum(axis=1, keepdims=True)  # exact, because these are integers
    scale = 1.0 / (fan * _HALF)
    if fan == 1:
        centred, scale = total, 1.0 / _HALF
    return np.asarray(centred * scale, np.float32).reshape(kernel.weights)


def _uniform(count: int, low: float, high: float, random: Random) -> FloatArray:
    return np.asarray(low + (high - low) * random.random(count), dtype=np.float32)
