"""Weights, batch norms and pixels of a case, drawn from its seed. A share of them gets extreme values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cnn import zoo
from cnn.maps import FloatArray, Shape
from cnn.network import Network
from cnn.ops import Convolution, Dense
from host.vision.picture import Pixels

Random = np.random.Generator


def pixels_of(values: Mapping[str, Any], shape: Shape, count: int) -> list[Pixels]:
    """Return ``count`` uint8 images of shape (channels, rows, columns). All differ, unless they are black or white."""
    random, size = np.random.default_rng(values["seed"]), (shape.channels, shape.height, shape.width)
    kind = values["kind"]
    if kind in ("black", "white"):
        return [np.full(size, 0 if kind == "black" else 255, np.uint8) for _ in range(count)]
    if kind == "waves":
        channel, row, column = np.ogrid[: size[0], : size[1], : size[2]]
        phases = random.uniform(0, 6, count)
        waves = (np.sin(row / (2 + channel) + column / (3 + channel) + phase) for phase in phases)
        return [((wave + 1) * 127).astype(np.uint8) for wave in waves]
    return [random.integers(0, 256, size, np.uint8) for _ in range(count)]


def darknet_numbers(topology: Network, values: Mapping[str, Any]) -> Network:
    """Return the network of ``topology`` with weights and batch norms."""
    network = zoo.seeded(values["seed"])(topology)
    random, share = np.random.default_rng(values["seed"]), values["wild"]
    nodes = []
    for node in network.nodes:
        op = node.op
        if isinstance(op, (Convolution, Dense)):
            op = replace(op, weights=_driven(op.weights, random, share), bias=_driven(op.bias, random, share))
            if op.batch_norm is not None:
                norm = op.batch_norm
                scale, variance = _driven(norm.scale, random, share), np.abs(_driven(norm.variance, random, share))
                op = replace(op, batch_norm=replace(norm, scale=scale, variance=variance))
        nodes.append(replace(node, op=op))
    return replace(network, nodes=tuple(nodes))


def exported_numbers(arrays: Mapping[str, FloatArray], values: Mapping[str, Any]) -> dict[str, FloatArray]:
    """Return ``arrays`` with extreme values for the share "wild" of each."""
    random, share = np.random.default_rng(values["seed"]), values["wild"]
    driven = {}
    for name, array in arrays.items():
        numbers = _driven(array, random, share)
        driven[name] = np.abs(numbers) if name.endswith("_var") else numbers
    return driven


def _driven(array: FloatArray, random: Random, share: float) -> FloatArray:
    """Return the array with a share of its rows, along the first axis, multiplied by a factor.

    The factor makes the row zero, small or large, or changes its sign. The first row stays, so that not all are 0.
    """
    rows = len(array)
    factors = random.choice([0.0, 2.0**-6, 2.0**4, -1.0], rows)
    chosen = random.random(rows) < share
    chosen[0] = False
    scaled: npt.NDArray[np.floating[Any]] = array * np.where(chosen, factors, 1.0).reshape(-1, *[1] * (array.ndim - 1))
    return scaled.astype(np.float32)
