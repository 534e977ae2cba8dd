"""Dilated convolutions on the array: layers without the zeros between weights, which together compute the same map."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import SeveralFaultsError
from cnn.dilation import with_zeros
from cnn.maps import Padding
from cnn.ops import QConvolution
from cnn.quantized import QuantizedNetwork
from cnn.quantized_check import expected_shape
from scheduler.convolutions import dense, total_dilation
from scheduler.streaming import graph as g
from scheduler.streaming.lower import lower as lower_to_blocks
from scheduler.systolic.layers import lower
from scheduler.systolic.network.additions import fused_additions
from scheduler.systolic.network.layer import Layer
from scheduler.systolic.network.reorg import Rows
from tests.support.cases import cases
from tests.support.errors import raises
from tests.support.low_bit import Layers

Integers = npt.NDArray[np.int64]


def dilated(
    sides: tuple[int, int],
    steps: tuple[int, int],
    padding: Padding,
    *,
    kernel: tuple[int, int] = (3, 3),
    depthwise: bool = False,
    around: int = 0,
    stride: int = 1,
) -> QuantizedNetwork:
    """Return a network of a 1×1 convolution and a dilated one that reads it, of 4 channels."""
    made = Layers(3, *sides, "INT8", "INT8").conv(4, 1)
    small = Padding(kernel[0] // 2, kernel[1] // 2, kernel[0] // 2, kernel[1] // 2)
    made.conv(4, max(kernel), stride, small, depthwise)
    node = made.nodes[-1]
    assert isinstance(node.op, QConvolution)
    weights = node.op.weights[:, :, : kernel[0], : kernel[1]] | 1
    op = replace(node.op, weights=weights, padding=padding, around=around, dilation=steps)
    height = (sides[0] + padding.top + padding.bottom - op.window[0]) // stride + 1
    width = (sides[1] + padding.left + padding.right - op.window[1]) // stride + 1
    made.nodes[-1] = replace(node, op=op, shape=replace(node.shape, height=height, width=width))
    network = made.network()
    assert expected_shape(network.nodes[-1], network.nodes[1:2]) == network.nodes[-1].shape
    return network


def with_zeros_between(network: QuantizedNetwork) -> QuantizedNetwork:
    """Return the network with the zeros of its last convolution written out, as some files have them."""
    node = network.nodes[-1]
    assert isinstance(node.op, QConvolution)
    op = replace(node.op, weights=with_zeros(node.op.weights, node.op.dilation), dilation=(1, 1))
    return replace(network, nodes=(*network.nodes[:-1], replace(node, op=op)))


def sums_of(layer: Layer, read: Integers, rows: int, columns: int) -> Integers:
    """Return a layer's sums (filters, rows, columns) before the requantiser, addressed by its fields."""
    reads = layer.part.reads if layer.part else Rows(0, 1, read.shape[1])
    pieces = layer.joined if layer.row_step else 1
    out = np.zeros((len(layer.weights), rows, columns), np.int64)
    for f, y, x in np.ndindex(*out.shape):
        for k, c, kx in np.ndindex(layer.weights.shape[2], layer.weights.shape[1], layer.weights.shape[3]):
            at = y * max(1, layer.stride) + (0 if pieces > 1 else k) - layer.padding.top
            column = x * layer.column_stride - layer.padding.left + kx * layer.column_step
            value = layer.around
            if 0 <= at < reads.count and 0 <= column < read.shape[2]:
                row = reads.first + at * reads.step + (k * layer.row_step if pieces > 1 else 0)
                value = int(read[f if layer.depthwise else c, row, column])
            out[f, y, x] += int(layer.weights[f, c, k, kx]) * value
    return out


def by_definition(op: QConvolution, read: Integers, shape: tuple[int, int]) -> Integers:
    """Return the sums of a convolution, computed from its definition. shape: rows and columns of the output."""
    p = op.padding
    padded = np.pad(read, ((0, 0), (p.top, p.bottom), (p.left, p.right)), constant_values=op.around)
    out = np.zeros((len(op.weights), *shape), np.int64)
    (high, wide), (down, across) = op.window, op.dilation
    for y, x in np.ndindex(*shape):
        seen = padded[:, y * op.stride : y * op.stride + high : down, x * op.stride : x * op.stride + wide : across]
        products = op.weights.astype(np.int64) * (seen[:, None] if op.groups > 1 else seen[None])
        out[:, y, x] = products.sum(axis=(1, 2, 3))
    return out


FORMS: tuple[dict[str, Any], ...] = (
    {"sides": (9, 8), "steps": (2, 2), "padding": Padding(2, 2, 2, 2)},
    {"sides": (7, 6), "steps": (3, 2), "padding": Padding(3, 2, 3, 2)},
    {"sides": (6, 5), "steps": (5, 4), "padding": Padding(5, 4, 5, 4)},
    {"sides": (8, 7), "steps": (2, 3), "padding": Padding(), "kernel": (3, 2)},
    {"sides": (9, 3), "steps": (4, 1), "padding": Padding(8, 0, 0, 0), "kernel": (3, 1)},
    {"sides": (1, 17), "steps": (1, 4), "padding": Padding(0, 8, 0, 0), "kernel": (1, 3)},
    {"sides": (5, 9), "steps": (1, 3), "padding": Padding(1, 3, 1, 3)},
    {"sides": (40, 3), "steps": (2, 1), "padding": Padding(2, 1, 2, 1), "depthwise": True},
    {"sides": (35, 3), "steps": (2, 1), "padding": Padding(3, 1, 1, 1), "depthwise": True},
    {"sides": (6, 6), "steps": (2, 2), "padding": Padding(2, 2, 2, 2), "depthwise": True},
    {"sides": (36, 3), "steps": (2, 1), "padding": Padding(2, 1, 2, 1), "around": -7},
    {"sides": (9, 9), "steps": (2, 2), "padding": Padding(2, 2, 2, 2), "around": 5},
    {"sides": (9, 9), "steps": (2, 2), "padding": Padding(2, 2, 2, 2), "stride": 2},
)


@cases("form", FORMS, ids=str)
def test_lower_dilated_parts_together_compute_the_convolution(form: dict[str, Any]) -> None:
    network = dilated(**form)
    node, source = network.nodes[-1], network.nodes[1].shape
    assert isinstance(node.op, QConvolution)
    read = np.random.default_rng(4).integers(-128, 128, (source.channels, source.height, source.width))
    out = np.full((4, node.shape.height, node.shape.width), np.iinfo(np.int64).min)
    parts = [layer for layer in lower(network) if layer.output == len(network.nodes) - 1]
    for layer in parts:
        writes = layer.part.writes if layer.part else Rows(0, 1, node.shape.height)
        rows = slice(writes.first, writes.first + writes.step * (writes.count - 1) + 1, writes.step)
        assert (out[:, rows] == np.iinfo(np.int64).min).all()
        out[:, rows] = sums_of(layer, read, writes.count, node.shape.width)
    np.testing.assert_array_equal(out, by_definition(node.op, read, out.shape[1:]))


@cases("form", FORMS, ids=str)
def test_lower_zeros_written_out_gives_the_layers_of_the_dilation(form: dict[str, Any]) -> None:
    network = dilated(**form)
    written_out = with_zeros_between(network)
    for own, other in zip(lower(network), lower(written_out), strict=True):
        np.testing.assert_array_equal(own.weights, other.weights)
        arrays = {"weights": None, "requantiser": None}
        assert vars(own) | arrays == vars(other) | arrays
    blocks, others = lower_to_blocks(network).blocks, lower_to_blocks(written_out).blocks
    assert [block.op for block in blocks if isinstance(block.op, g.Window)] == [
        block.op for block in others if isinstance(block.op, g.Window)
    ]
    units = [b.op.weights for b in blocks if isinstance(b.op, (g.MatrixVector, g.VectorVector))]
    written = [b.op.weights for b in others if isinstance(b.op, (g.MatrixVector, g.VectorVector))]
    assert all(np.array_equal(own, other) for own, other in zip(units, written, strict=True))


def test_lower_dilated_by_taps_skips_zeros_and_rows_of_padding() -> None:
    network = dilated((32, 32), (6, 6), Padding(6, 6, 6, 6))
    parts = [layer for layer in lower(network) if layer.output == 2]
    assert [layer.name for layer in parts] == ["conv2.1", "conv2.2", "conv2.3"]
    assert [(layer.kernel, layer.joined, layer.row_step, layer.column_step) for layer in parts] == [
        ((1, 3), 2, 6, 6),
        ((1, 3), 3, 6, 6),
        ((1, 3), 2, 6, 6),
    ]
    assert sum(layer.macs for layer in parts) == 4 * 4 * 3 * 32 * (6 * 2 + 20 * 3 + 6 * 2)


def test_lower_dilated_row_gives_one_layer_with_column_step() -> None:
    network = dilated((1, 600), (1, 256), Padding(0, 512, 0, 0), kernel=(1, 3))
    layer = lower(network)[-1]
    assert (layer.kernel, layer.column_step, layer.part, layer.reach) == ((1, 3), 256, None, 513)


def test_lower_dilated_depthwise_keeps_zeros_if_phases_cost_more() -> None:
    low = lower(dilated((6, 6), (2, 2), Padding(2, 2, 2, 2), depthwise=True))
    high = lower(dilated((40, 6), (2, 2), Padding(2, 2, 2, 2), depthwise=True))
    assert [layer.kernel for layer in low[1:]] == [(5, 3)]
    assert [layer.kernel for layer in high[1:]] == [(3, 3), (3, 3)]


def test_fused_additions_after_parts_are_empty() -> None:
    # The Saver does not add to a map that several layers write. A separate layer adds all rows.
    made = Layers(3, 8, 8, "INT8", "INT8").conv(8, 1).conv(8, 3, 1, Padding(1, 1, 1, 1))
    fused = made.sum(1, 2).network()
    assert fused_additions(fused)
    node = fused.nodes[2]
    assert isinstance(node.op, QConvolution)
    op = replace(node.op, weights=node.op.weights | 1, dilation=(2, 2), padding=Padding(2, 2, 2, 2))
    nodes = (*fused.nodes[:2], replace(node, op=op), *fused.nodes[3:])
    assert not fused_additions(replace(fused, nodes=nodes))


@cases(
    "shape, steps",
    [
        ((1, 1, 5, 5), (2, 2)),
        ((2, 3, 7, 4), (3, 3)),
        ((1, 1, 1, 9), (1, 4)),
        ((4, 1, 3, 3), (1, 1)),
        ((1, 1, 1, 1), (1, 1)),
    ],
)
def test_total_dilation_is_the_largest_step_between_non_zeros(shape: tuple[int, ...], steps: tuple[int, int]) -> None:
    weights = np.zeros(shape, np.int8)
    weights[:, :, :: steps[0], :: steps[1]] = 1
    places = tuple(len(range(0, side, step)) for side, step in zip(shape[2:], steps, strict=True))
    finest = tuple(1 if side == 1 else step for side, step in zip(shape[2:], steps, strict=True))
    assert total_dilation(weights, (1, 1)) == finest
    assert total_dilation(weights, (2, 3)) == (2 * finest[0], 3 * finest[1])
    assert dense(weights, (1, 1))[0].shape[2:] == places


def test_lower_to_blocks_dilated_window_has_no_zeros() -> None:
    graph = lower_to_blocks(dilated((9, 8), (2, 2), Padding(2, 2, 2, 2)))
    (window,) = (block.op for block in graph.blocks if isinstance(block.op, g.Window))
    assert (window.kernel, window.dilation) == ((3, 3), 2)
    (unit,) = (block.op for block in graph.blocks if block.name == "conv2")
    assert isinstance(unit, g.MatrixVector)
    assert unit.weights.shape == (4, 4, 3, 3)


def test_lower_to_blocks_different_dilations_give_a_common_step() -> None:
    graph = lower_to_blocks(dilated((9, 12), (2, 4), Padding(2, 4, 2, 4)))
    (window,) = (block.op for block in graph.blocks if isinstance(block.op, g.Window))
    assert (window.kernel, window.dilation) == ((3, 5), 2)


def test_lower_too_much_padding_is_refused() -> None:
    network = dilated((600, 1), (1, 1), Padding(300, 0, 0, 0), kernel=(3, 1))
    with raises(SeveralFaultsError):
        lower(network)
