"""Small networks with reproducible random parameters, for all tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cnn.maps import Padding, Shape
from cnn.network import Network, Node
from cnn.ops import (
    Add,
    AveragePool,
    BatchNorm,
    Concat,
    Convolution,
    Dense,
    Input,
    MaxPool,
    Op,
    Region,
    Reorg,
    Slice,
    Softmax,
    Upsample,
)

Random = np.random.Generator
Layer = tuple[str, Op, Sequence[int], Shape]
"""The name, the operation, the indices of the inputs, and the shape of the output."""


def convolution(
    random: Random,
    channels: int,
    filters: int,
    *,
    kernel: int = 3,
    stride: int = 1,
    activation: str = "leaky",
    groups: int = 1,
    batch_norm: bool = False,
) -> Convolution:
    fan = channels // groups * kernel * kernel
    weights = random.normal(0, fan**-0.5, (filters, channels // groups, kernel, kernel)).astype(np.float32)
    bias = random.normal(0, 0.2, filters).astype(np.float32)
    pad = kernel // 2
    norm = normalisation(random, filters) if batch_norm else None
    return Convolution(weights, bias, norm, stride, Padding(pad, pad, pad, pad), groups, activation)


def dense(random: Random, inputs: int, outputs: int, activation: str = "linear") -> Dense:
    weights = random.normal(0, inputs**-0.5, (outputs, inputs)).astype(np.float32)
    return Dense(weights, random.normal(0, 0.2, outputs).astype(np.float32), None, activation)


def normalisation(random: Random, filters: int) -> BatchNorm:
    scale, mean = random.normal(1, 0.5, filters), random.normal(0, 0.3, filters)
    variance = random.uniform(0.3, 2, filters)
    return BatchNorm(scale.astype(np.float32), mean.astype(np.float32), variance.astype(np.float32))


def network(shape: Shape, *layers: Layer, name: str = "tiny") -> Network:
    nodes = [Node("input", Input(), (), shape, "test:1")]
    for layer_name, op, inputs, out in layers:
        nodes.append(Node(layer_name, op, tuple(inputs), out, f"test:{len(nodes) + 1}"))
    return Network(name, tuple(nodes))


def tiny_yolo(seed: int = 0, *, batch_norm: bool = True) -> Network:
    """Return a small YOLO: two leaky convolutions, each followed by a pool, a linear 1×1 head, and a region layer.

    The first pool has stride 2. The second one has stride 1, and pads right and bottom.
    """
    r = np.random.default_rng(seed)
    return network(
        Shape(3, 17, 15),
        ("conv1", convolution(r, 3, 8, batch_norm=batch_norm), [0], Shape(8, 17, 15)),
        ("pool1", MaxPool(2, 2, Padding()), [1], Shape(8, 8, 7)),
        ("conv2", convolution(r, 8, 16, batch_norm=batch_norm), [2], Shape(16, 8, 7)),
        ("pool2", MaxPool(2, 1, Padding(bottom=1, right=1)), [3], Shape(16, 8, 7)),
        ("head", convolution(r, 16, 7, kernel=1, activation="linear"), [4], Shape(7, 8, 7)),
        ("region", Region(((1.0, 2.0),), 2, True), [5], Shape(7, 8, 7)),
    )


def branches(seed: int = 1) -> Network:
    """Return a network with all forks and joins: slice, add, reorg, upsample, concat, groups and stride 2."""
    r = np.random.default_rng(seed)
    return network(
        Shape(3, 16, 12),
        ("stem", convolution(r, 3, 8, activation="relu"), [0], Shape(8, 16, 12)),
        ("half", Slice(4, 4), [1], Shape(4, 16, 12)),
        ("mix", convolution(r, 4, 4, activation="linear"), [2], Shape(4, 16, 12)),
        ("add", Add("relu"), [2, 3], Shape(4, 16, 12)),
        ("reorg", Reorg(2), [4], Shape(16, 8, 6)),
        ("down", convolution(r, 8, 8, stride=2, groups=4), [1], Shape(8, 8, 6)),
        ("deep", convolution(r, 8, 4, kernel=5, stride=2), [6], Shape(4, 4, 3)),
        ("up", Upsample(2), [7], Shape(4, 8, 6)),
        ("concat", Concat(), [5, 6, 8], Shape(28, 8, 6)),
        ("head", convolution(r, 28, 6, kernel=1, activation="linear"), [9], Shape(6, 8, 6)),
    )


def classifier(seed: int = 2) -> Network:
    """Return a network of ReLU6 convolutions, an average pool, a dense layer and a softmax."""
    r = np.random.default_rng(seed)
    return network(
        Shape(3, 12, 12),
        ("conv1", convolution(r, 3, 8, stride=2, activation="relu6"), [0], Shape(8, 6, 6)),
        ("conv2", convolution(r, 8, 8, groups=8, activation="relu6"), [1], Shape(8, 6, 6)),
        ("pool", AveragePool(), [2], Shape(8, 1, 1)),
        ("dense", dense(r, 8, 5), [3], Shape(5, 1, 1)),
        ("softmax", Softmax(), [4], Shape(5, 1, 1)),
    )


def picture(shape: Shape, seed: int = 0) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Return an image of uint8 with low and high frequencies, from dark to saturated."""
    r = np.random.default_rng(seed)
    y, x = np.mgrid[: shape.height, : shape.width]
    waves = [np.sin(y / (2 + c) + x / (3 + c) + seed) for c in range(shape.channels)]
    noise = r.normal(0, 0.2, (shape.channels, shape.height, shape.width))
    return np.clip((np.stack(waves) + noise + 1) * 127.5, 0, 255).astype(np.uint8)


def pictures(shape: Shape, count: int = 4) -> list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    """Return the float images from 0 to 1 that calibration reads."""
    return [picture(shape, seed).astype(np.float32) / np.float32(255) for seed in range(count)]
