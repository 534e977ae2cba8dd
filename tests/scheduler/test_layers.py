"""The lowering of networks to layers, and the errors for layers that the array cannot map."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from boards.errors import InvalidValueError, RangeError, SeveralFaultsError, UnsupportedError
from cnn.datatype import DataType, TensorType
from cnn.maps import Padding, Shape
from cnn.ops import Concat, MaxPool, Reorg, Upsample
from cnn.quantized import QNode
from scheduler.nodes import resolve
from scheduler.systolic.array import Array
from scheduler.systolic.formats import least_bits
from scheduler.systolic.layers import lower
from tests.support.cases import cases
from tests.support.errors import faults_of, raises, raises_among
from tests.support.quantised import Builder
from tests.support.schedules import first_fit


def node(build: Builder, op: object, shape: Shape, inputs: tuple[int, ...] | None = None) -> Builder:
    at = (len(build.nodes) - 1,) if inputs is None else inputs
    name, source = f"extra{len(build.nodes)}", f"net.cfg:{len(build.nodes)}"
    build.nodes.append(QNode(name, op, at, shape, build.nodes[-1].type, source))  # type: ignore[arg-type]
    return build


def test_lower_pool_is_fused_into_the_convolution() -> None:
    (job,) = lower(Builder(3, 13, 9).conv(8, 3).pool().network())
    assert (job.pool_size, job.pool_stride) == (2, 2)
    assert job.out == Shape(8, 13, 9)
    assert job.saved == Shape(8, 7, 5)
    assert (job.input, job.node, job.output) == (0, 1, 2)


def test_lower_pool_without_odd_edge_does_not_compute_it() -> None:
    build = Builder(3, 13, 9).conv(8, 3)
    (job,) = lower(node(build, MaxPool(2, 2, Padding()), Shape(8, 6, 4)).network())
    assert job.out == Shape(8, 12, 8)


def test_lower_pool_of_map_with_two_readers_is_a_layer() -> None:
    build = Builder(3, 8, 8).conv(8, 3).pool()
    node(build, Concat(), Shape(8, 8, 8), (1,))
    jobs = lower(build.conv(4, 1).network())
    assert [job.pool_size for job in jobs] == [1, 2, 1]
    identity = jobs[1]
    assert identity.depthwise
    assert identity.weights.shape == (8, 1, 1, 1)
    assert set(identity.requantiser.multiplier.tolist()) == {2}
    assert set(identity.requantiser.shift.tolist()) == {1}
    assert jobs[2].input == 1  # the route is the layer it routes


def test_lower_dense_gives_a_kernel_of_the_map_size() -> None:
    network = Builder(3, 6, 4).conv(8, 3).dense(10).network()
    job = lower(network)[1]
    assert job.kernel == (6, 4)
    assert job.padding == Padding()
    assert np.array_equal(job.weights.reshape(10, -1), network.nodes[2].op.weights)  # type: ignore[union-attr]


def test_lower_average_pool_gives_weights_of_one() -> None:
    job = lower(Builder(3, 6, 4).conv(8, 3).average().network())[1]
    assert job.depthwise
    assert job.kernel == (6, 4)
    assert int(job.weights.sum()) == 8 * 24


def test_lower_depthwise_gives_a_depthwise_layer() -> None:
    job = lower(Builder(3, 6, 4).conv(8, 3).conv(0, 3, depthwise=True).network())[1]
    assert job.depthwise
    assert job.weights.shape == (8, 1, 3, 3)


def test_lower_macs_equal_those_of_the_network() -> None:
    job = lower(Builder(3, 6, 4).conv(8, 3).network())[0]
    assert job.macs == 8 * 3 * 9 * 6 * 4


def test_resolve_chain_of_concats_gives_the_first_map() -> None:
    build = Builder(3, 6, 4).conv(8, 3)
    node(node(build, Concat(), Shape(8, 6, 4), (1,)), Concat(), Shape(8, 6, 4), (2,))
    assert resolve(build.network(), 3) == 1


def test_lower_unsupported_layers_are_all_listed_with_their_lines() -> None:
    build = Builder(3, 8, 8).conv(8, 3)
    node(build, Reorg(4), Shape(128, 2, 2))
    node(build, Upsample(3), Shape(384, 6, 6))
    node(build, Concat(), Shape(16, 8, 8), (1, 1))
    with raises(SeveralFaultsError) as caught:
        lower(build.network())
    assert [error.where for error in caught.value.errors] == ["net.cfg:2", "net.cfg:3", "net.cfg:4"]
    for number, kind, word in ((2, "reorg", "4"), (3, "upsample", "by 3"), (4, "concat", "itself")):
        (error,) = faults_of(caught.value, UnsupportedError, subject=f"{kind} 'extra{number}'")
        assert word in error.reason
    assert "concat, reorg, upsample" in caught.value.remedy
    assert "--style streaming" in caught.value.remedy


POOLS = {
    "size 3": (MaxPool(3, 3, Padding()), Shape(8, 2, 2)),
    "top": (MaxPool(2, 2, Padding(1, 1)), Shape(8, 4, 4)),
    "not padded": (MaxPool(2, 1, Padding()), Shape(8, 7, 7)),
}


@pytest.mark.parametrize("name", POOLS)
def test_lower_other_pools_give_layers_with_a_window(name: str) -> None:
    op, shape = POOLS[name]
    layers = lower(node(Builder(3, 8, 8).conv(8, 3), op, shape).network())
    assert [layer.window for layer in layers] == [(1, 1), op.window]
    assert (layers[1].kernel, layers[1].stride, layers[1].padding) == ((op.size, op.size), op.stride, op.padding)
    assert layers[1].depthwise
    assert (layers[1].out, layers[1].pool_size) == (shape, 1)


def test_lower_window_is_fused_with_a_table_only() -> None:
    build = Builder(3, 8, 8).conv(8, 3).window(3).curve(rising=True).pool().window(3).upsample()
    assert [layer.name for layer in lower(build.network())] == ["conv1", "pool2", "pool4", "pool5", "upsample6"]


def test_schedule_window_on_array_without_windows_is_refused() -> None:
    array = Array(5, 8, 8, row_depth=1024, weight_depth=512, chunk=8, windows=True)
    network = Builder(3, 8, 8).conv(8, 3).window(3).network()
    first_fit(network, array)
    with raises_among(InvalidValueError, where="pool2", what="windows of the array", got=0):
        first_fit(network, replace(array, windows=False))


@cases("filters, groups, depthwise", [(8, 2, True), (8, 4, True), (12, 4, False), (4, 4, False), (24, 8, False)])
def test_lower_groups_of_a_power_of_two_are_depthwise(filters: int, groups: int, depthwise: bool) -> None:
    # A group is depthwise if it has equal numbers of filters and channels, a power of two. Other groups become
    # convolutions with weights of 0 between groups.
    layer = lower(Builder(3, 8, 8).conv(8, 3).conv(filters, 3, groups=groups).network())[1]
    assert layer.depthwise == depthwise
    assert layer.macs == filters * (8 // groups) * 9 * 64
    assert layer.weights.shape[1] == (8 // groups if depthwise else 8)


def test_lower_depthwise_on_the_image_is_a_full_convolution() -> None:
    # A pixel is a single block, so that channel tiles have no blocks of their own.
    layer = lower(Builder(3, 8, 8).conv(0, 3, depthwise=True).network())[0]
    assert not layer.depthwise
    assert layer.weights.shape == (3, 3, 3, 3)


def test_least_bits_unsigned_map_needs_one_more_bit() -> None:
    """Lanes are signed, and a lane of 4 bits holds only −8…7, not 0…15."""
    build = Builder(3, 6, 6, bits=4)
    build.type = TensorType(DataType(4, False), 1.0)
    network = build.conv(8, 3).conv(8, 3).network()
    assert least_bits(network) == 8
    array = Array(5, 16, 8, bits=4, row_depth=1024, weight_depth=512, chunk=8)
    with raises_among(RangeError, where="conv2", what="the number of bits of the input", got=5, high=4) as caught:
        first_fit(network, array)
    assert "array of 8 bits" in caught.value.remedy
