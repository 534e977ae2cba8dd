"""Tests of pruning: whole filters with the smallest norm are removed, and all layers that read them still fit."""

from __future__ import annotations

import numpy as np
import pytest

from boards.errors import InvalidValueError, UnsupportedError
from cnn.float_model import run_float
from cnn.maps import Padding, Shape
from cnn.network import Network
from cnn.ops import Concat, Convolution, Dense, MaxPool, Upsample
from cnn.training.pruning import pruned
from tests.support.errors import raises
from tests.support.kinds import as_kind
from tests.support.networks import convolution, dense, network, tiny_yolo


def chain() -> Network:
    """Return two convolutions with a pool between them and a dense layer. Half of the filters are zero."""
    r = np.random.default_rng(1)
    first, second = convolution(r, 3, 16, batch_norm=True), convolution(r, 16, 8, activation="relu")
    norm = first.batch_norm
    assert norm is not None
    norm.scale[::2] = norm.mean[::2] = first.bias[::2] = 0  # every second filter gives 0
    second.weights[1::2] = second.bias[1::2] = 0
    return network(
        Shape(3, 8, 8),
        ("first", first, [0], Shape(16, 8, 8)),
        ("pool", MaxPool(2, 2, Padding()), [1], Shape(16, 4, 4)),
        ("second", second, [2], Shape(8, 4, 4)),
        ("classes", dense(r, 128, 5), [3], Shape(5, 1, 1)),
    )


def test_pruning_zero_filters_does_not_change_outputs() -> None:
    whole = chain()
    smaller = pruned(whole, 0.5)
    assert [node.shape.channels for node in smaller.nodes] == [3, 8, 8, 4, 5]
    assert as_kind(Dense, smaller.nodes[4].op).weights.shape == (5, 64)
    picture = np.random.default_rng(2).random((3, 8, 8), np.float32)
    outputs, expected = run_float(smaller, picture), run_float(whole, picture)
    assert outputs[1] == pytest.approx(expected[1][1::2], abs=1e-5)
    assert outputs[-1] == pytest.approx(expected[-1], abs=1e-5)


def test_joins_groups_and_heads_keep_their_filters() -> None:
    r = np.random.default_rng(3)
    joined = network(
        Shape(3, 8, 8),
        ("free", convolution(r, 3, 16), [0], Shape(16, 8, 8)),
        ("before", convolution(r, 16, 8), [1], Shape(8, 8, 8)),
        ("apart", convolution(r, 8, 8, groups=8), [2], Shape(8, 8, 8)),
        ("large", Upsample(1), [3], Shape(8, 8, 8)),
        ("both", Concat(), [2, 4], Shape(16, 8, 8)),
        ("head", convolution(r, 16, 8, activation="linear"), [5], Shape(8, 8, 8)),
    )
    assert [node.shape.channels for node in pruned(joined, 0.5).nodes] == [3, 8, 8, 8, 8, 16, 8]
    yolo = pruned(tiny_yolo(), 0.9)
    assert [node.shape.channels for node in yolo.nodes] == [3, 4, 4, 4, 4, 7, 7]
    assert as_kind(Convolution, yolo.nodes[5].op).weights.shape == (7, 4, 1, 1)


def test_network_without_prunable_filters_is_refused() -> None:
    r = np.random.default_rng(4)
    single = network(Shape(3, 8, 8), ("head", convolution(r, 3, 8), [0], Shape(8, 8, 8)))
    assert pruned(single, 0) is single
    with raises(UnsupportedError, subject="pruning of tiny", remedy="leave out --prune"):
        pruned(single, 0.5)
    with raises(InvalidValueError, what="--prune", got=1):
        pruned(single, 1)
