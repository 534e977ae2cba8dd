from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from boards.errors import InvalidValueError, RangeError
from cnn.maps import Shape
from cnn.network import Network, Node
from cnn.ops import BatchNorm, Convolution, Dense
from cnn.quantisation.batch_norm import CHECK_WEIGHTS, fold_batch_norms
from tests.support import networks
from tests.support.errors import raises
from tests.support.kinds import as_kind


def normalised_dense(norm: BatchNorm) -> tuple[Dense, Node]:
    random = np.random.default_rng(0)
    op = replace(networks.dense(random, 6, 4), batch_norm=norm)
    return op, Node("fc", op, (0,), Shape(4, 1, 1), "net.cfg:9")


def as_network(node: Node) -> Network:
    base = networks.network(Shape(6, 1, 1))
    return replace(base, nodes=(*base.nodes, node))


def normalisation(variance: float = 0.5, scale: float = -1.5) -> BatchNorm:
    one = np.ones(4, np.float32)
    return BatchNorm(scale * one, 0.3 * one, variance * one, epsilon=1e-3)


def test_folded_dense_equals_the_batch_norm() -> None:
    op, node = normalised_dense(normalisation())
    folded = as_kind(Dense, fold_batch_norms(as_network(node)).nodes[1].op)
    x = np.random.default_rng(1).normal(size=6)
    expected = -1.5 * (op.weights.astype(np.float64) @ x - 0.3) / np.sqrt(0.5 + 1e-3) + op.bias
    assert folded.batch_norm is None
    np.testing.assert_allclose(folded.weights @ x + folded.bias, expected, rtol=1e-5)


def test_folded_convolution_scales_whole_filters() -> None:
    random = np.random.default_rng(2)
    op = networks.convolution(random, 2, 3, batch_norm=True)
    network = networks.network(Shape(2, 5, 5), ("conv", op, [0], Shape(3, 5, 5)))
    folded = fold_batch_norms(network).nodes[1].op
    assert isinstance(folded, Convolution)
    norm = as_kind(BatchNorm, op.batch_norm)
    gain = norm.scale / np.sqrt(norm.variance + norm.epsilon)
    np.testing.assert_allclose(folded.weights, op.weights * gain[:, None, None, None], rtol=1e-5)
    np.testing.assert_allclose(folded.bias, op.bias - norm.mean * gain, rtol=1e-4, atol=1e-6)
    assert folded.weights.dtype == np.float32
    assert as_kind(Convolution, network.nodes[1].op).batch_norm is not None, "the given network must not change"


def test_network_without_batch_norm_keeps_its_nodes() -> None:
    network = networks.branches()
    assert fold_batch_norms(network).nodes == network.nodes


def test_variance_below_zero_is_refused() -> None:
    _, node = normalised_dense(normalisation(variance=-0.5))
    with raises(
        RangeError,
        what="variance + epsilon of the batch norm in channel 0",
        low=0,
        exclusive=True,
        where="'fc' (net.cfg:9)",
        remedy=CHECK_WEIGHTS,
    ) as caught:
        fold_batch_norms(as_network(node))
    assert caught.value.got == pytest.approx(-0.499)


def test_scale_that_overflows_is_refused() -> None:
    _, node = normalised_dense(normalisation(scale=3e38, variance=1e-20))
    with raises(InvalidValueError, what="a number of the folded batch norm", where="'fc' (net.cfg:9)"):
        fold_batch_norms(as_network(node))
