"""Networks are lowered to blocks with one reader per stream. Layers without a mapping are refused together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from boards.errors import SeveralFaultsError, UnsupportedError
from cnn.datatype import DataType, TensorType
from cnn.maps import Padding, Shape
from cnn.ops import Concat, MaxPool, QConvolution, Softmax
from cnn.quantized import QuantizedNetwork
from scheduler.streaming import graph as g
from scheduler.streaming.lower import lower
from scheduler.streaming.refusals import check_mappable
from tests.support.cases import cases
from tests.support.errors import raises, raises_among
from tests.support.kinds import as_kind
from tests.support.low_bit import NONE, Layers, cnv, mobilenet, requantiser, skipping, ultranet


def kinds(network: QuantizedNetwork) -> list[str]:
    return [type(block.op).__name__ for block in lower(network).blocks]


def by_name(graph: g.StreamGraph, name: str) -> tuple[int, g.Block]:
    return next((i, block) for i, block in enumerate(graph.blocks) if block.name == name)


def sound(graph: g.StreamGraph) -> None:
    """Assert that the blocks are in topological order with unique names, and that every output has one reader."""
    read: list[g.Port] = []
    for index, block in enumerate(graph.blocks):
        assert all(port.block < index for port in block.inputs)
        read += block.inputs
    given = [g.Port(i, o) for i, block in enumerate(graph.blocks) for o in range(len(block.outputs))]
    assert sorted(read, key=str) == sorted(given, key=str)
    assert len({block.name for block in graph.blocks}) == len(graph.blocks)
    assert isinstance(graph.blocks[0].op, g.Source)


@cases("make", [ultranet, skipping, cnv, mobilenet])
def test_lower_gives_every_output_one_reader(make: object) -> None:
    sound(lower(make()))  # type: ignore[operator]


def test_lower_of_a_convolution_is_a_window_and_a_unit() -> None:
    graph = lower(Layers(3, 10, 8).conv(16, 3, 2).network())
    assert [type(b.op) for b in graph.blocks] == [g.Source, g.Window, g.MatrixVector, g.Sink]
    window, unit = graph.blocks[1:3]
    assert window.op == g.Window((3, 3), 2, Padding(1, 1, 1, 1))
    assert window.outputs[0] == g.StreamType(Shape(27, 5, 4), DataType(8, False))
    assert unit.outputs[0] == g.StreamType(Shape(16, 5, 4), DataType(4, False))
    assert (window.node, unit.node, graph.blocks[3].node) == (None, 1, 1)
    assert unit.source == "net:2"


def test_window_output_has_a_value_per_tap_and_channel() -> None:
    """A 2×3 kernel over 5 channels has 30 values per position, also if it is depthwise."""
    for groups in (1, 5):
        made = Layers(5, 6, 8)
        weights = made.drawn(5, 5 // groups, 2, 3)
        op = QConvolution(weights, made.weight_type, requantiser(5), 1, NONE, groups)
        graph = lower(made.add("conv", op, Shape(5, 5, 6)).network())
        assert graph.blocks[1].op == g.Window((2, 3), 1, NONE, groups > 1)
        assert graph.blocks[1].outputs[0].shape == Shape(30, 5, 6)


def test_labels_and_values_of_one_map_share_a_block() -> None:
    layers = Layers(3, 8, 8).conv(10, 1)
    graph = lower(layers.choose(3, False, 1).choose(3, True, 1).network())
    assert [type(block.op).__name__ for block in graph.blocks] == [
        *("Source", "MatrixVector", "LabelSelect", "Sink", "Sink")
    ]
    select = graph.blocks[2]
    assert select.op == g.LabelSelect(3, True)
    assert select.outputs == (
        g.StreamType(Shape(3, 8, 8), DataType(4, False)),  # the channel numbers 0…9
        g.StreamType(Shape(3, 8, 8), DataType(4, False)),
    )
    assert (select.node, select.second) == (3, 2)
    assert [(block.node, block.inputs) for block in graph.blocks[3:]] == [(2, (g.Port(2, 1),)), (3, (g.Port(2, 0),))]
    sound(graph)


def test_labels_without_a_reader_are_dropped() -> None:
    graph = lower(Layers(3, 8, 8).conv(10, 1).choose(3, False).network())
    assert [block.name for block in graph.blocks] == ["input", "conv1", "choice2", "choice2_drop", "choice2_out1"]
    assert [block.node for block in graph.blocks[2:]] == [None, None, 2]
    assert graph.blocks[2].second == 2
    sound(graph)


def test_choices_of_different_numbers_are_separate_blocks() -> None:
    graph = lower(Layers(3, 8, 8).conv(10, 1).choose(1).choose(3, True, 1).choose(3, True, 1).network())
    selects = [block.op for block in graph.blocks if isinstance(block.op, g.LabelSelect)]
    assert selects == [g.LabelSelect(1), g.LabelSelect(3), g.LabelSelect(3)]
    sound(graph)


def test_choice_of_a_slice_needs_no_output_of_the_slice() -> None:
    """A slice that is only read by a choice stays in hardware.

    After a softmax, the host computes the choice from the softmax's input, which is the output.
    """
    sliced = lower(Layers(3, 8, 8).conv(10, 1).slice(2, 4, 1).choose(2).network())
    assert [block.node for block in sliced.blocks if isinstance(block.op, g.Sink)] == [3]
    layers = Layers(3, 8, 8).conv(10, 1)
    layers.add("softmax", Softmax(), layers.nodes[1].shape, type=layers.nodes[1].type)
    lowered = lower(layers.choose(2).network())
    assert [type(block.op).__name__ for block in lowered.blocks] == ["Source", "MatrixVector", "Sink"]


def test_choice_of_too_many_labels_is_refused() -> None:
    network = Layers(3, 8, 8).conv(40, 1).choose(33).network()
    with raises_among(UnsupportedError, where="net:3", subject="topk 'choice2'") as caught:
        lower(network)
    assert "33" in str(caught.value)


def test_lower_of_an_integer_softmax_is_a_block() -> None:
    graph = lower(Layers(3, 8, 8).conv(10, 1).shares("stable").network())
    assert [type(block.op).__name__ for block in graph.blocks] == ["Source", "MatrixVector", "Softmax", "Sink"]
    block = graph.blocks[2]
    assert isinstance(block.op, g.Softmax)
    assert block.op.method == "stable"
    assert block.op.powers is not None
    assert block.outputs == (g.StreamType(Shape(10, 8, 8), DataType(8, False)),)
    sound(graph)


def test_lower_of_a_pointwise_convolution_has_no_window() -> None:
    assert kinds(Layers(3, 8, 8).conv(4, 1).network()) == ["Source", "MatrixVector", "Sink"]


def test_lower_of_a_strided_pointwise_convolution_has_a_down_sampler() -> None:
    graph = lower(Layers(3, 9, 7).conv(4, 1, 2).network())
    assert graph.blocks[1].op == g.DownSample(2)
    assert graph.blocks[1].outputs[0].shape == Shape(3, 5, 4)


def test_lower_of_a_depthwise_convolution_is_a_window_and_a_vector_unit() -> None:
    graph = lower(Layers(3, 8, 8).depthwise().network())
    assert graph.blocks[1].op == g.Window((3, 3), 1, Padding(1, 1, 1, 1), True)
    assert isinstance(graph.blocks[2].op, g.VectorVector)


def test_lower_of_a_dense_layer_is_a_kernel_of_the_map_size() -> None:
    network = Layers(3, 4, 5).dense(6).network()
    unit = lower(network).blocks[1].op
    assert isinstance(unit, g.MatrixVector)
    assert unit.weights.shape == (6, 3, 4, 5)
    assert np.array_equal(unit.weights.reshape(6, -1), network.nodes[1].op.weights)  # type: ignore[union-attr]


def test_lower_of_a_map_with_several_readers_duplicates_it() -> None:
    graph = lower(skipping())
    index, copy = by_name(graph, "conv3_copy")
    assert copy.op == g.Duplicate(2)
    assert graph.blocks[index - 1].name == "conv3"
    joined = by_name(graph, "concat7")[1]
    assert [graph.type_of(port).shape.channels for port in joined.inputs] == [32, 128]


def test_lower_of_a_concat_of_one_map_has_no_block() -> None:
    made = Layers(3, 8, 8).conv(8, 3)
    made.add("route", Concat(), made.nodes[-1].shape)
    assert kinds(made.conv(4, 1).network()) == ["Source", "Window", "MatrixVector", "MatrixVector", "Sink"]


def test_lower_of_slices_is_one_split_with_unused_parts_dropped() -> None:
    made = Layers(3, 8, 8).conv(16, 3)
    made.slice(4, 4, 1).slice(8, 4, 1).sum(2, 3)
    graph = lower(made.network())
    split = by_name(graph, "slice2_split")[1]
    assert split.op == g.Split((4, 4, 4, 4))
    assert [b.name for b in graph.blocks if isinstance(b.op, g.Discard)] == ["slice2_drop0", "slice2_drop3"]
    assert split.node is None  # the split's first output belongs to no layer
    whole = Layers(3, 8, 8).conv(8, 3).slice(0, 4, 1).slice(4, 4, 1).sum(2, 3)
    assert by_name(lower(whole.network()), "slice2_split")[1].node == 2
    sound(graph)


def test_lower_of_slices_with_a_gap_is_one_split() -> None:
    made = Layers(3, 8, 8).conv(16, 3)
    made.slice(1, 4, 1).slice(10, 4, 1).sum(2, 3)
    graph = lower(made.network())
    assert [b.op.parts for b in graph.blocks if isinstance(b.op, g.Split)] == [(1, 4, 5, 6), (4, 2)]
    sound(graph)


def test_lower_of_overlapping_slices_is_several_splits() -> None:
    made = Layers(3, 8, 8).conv(16, 3)
    made.slice(0, 10, 1).slice(6, 10, 1).sum(2, 3)
    graph = lower(made.network())
    assert [b.op.parts for b in graph.blocks if isinstance(b.op, g.Split)] == [(10, 6), (6, 10)]
    sound(graph)


def test_lower_adds_sinks_for_host_inputs_and_unread_maps() -> None:
    made = Layers(3, 8, 8).conv(8, 3)
    made.detect().conv(8, 3, 1, None, False, 1).conv(4, 1)
    graph = lower(made.network())
    assert [(b.name, b.node) for b in graph.blocks if isinstance(b.op, g.Sink)] == [("conv1_out", 1), ("conv4_out", 4)]
    sound(graph)


def test_lower_of_pools_and_sums_is_a_block_each() -> None:
    made = Layers(3, 8, 8).conv(8, 3)
    made.conv(8, 3).sum(1, 2).add("pool", MaxPool(2, 1, Padding(0, 0, 1, 1)), Shape(8, 8, 8)).upsample(2).average()
    assert kinds(made.network())[-5:] == ["Add", "MaxPool", "Upsample", "GlobalPool", "Sink"]


def test_lower_reports_all_unsupported_layers_together() -> None:
    made = Layers(4, 8, 8).conv(8, 3)
    first = made.nodes[1]
    made.nodes[1] = replace(first, op=replace(as_kind(QConvolution, first.op), padding=Padding(3, 0, 0, 0)))
    made.detect().conv(8, 3)
    with raises(SeveralFaultsError) as caught:
        lower(made.network("odd"))
    padded, head = caught.value.errors
    assert (padded.where, head.where) == ("net:2", "net:4")
    assert isinstance(padded, UnsupportedError)
    assert isinstance(head, UnsupportedError)
    assert (padded.subject, head.subject) == ("convolution 'conv1'", "convolution 'conv3'")
    assert "3×3" in padded.reason
    assert "detect2" in head.reason


@cases("weight, kept", [("INT4", "INT4"), ("BIPOLAR", "TERNARY")])
@cases("filters", [6, 12])
def test_lower_of_a_grouped_convolution_fills_weights_with_zeros(filters: int, weight: str, kept: str) -> None:
    made = Layers(3, 8, 8, weight).conv(6, 3).conv(filters, 3)
    last = made.nodes[-1]
    op = as_kind(QConvolution, last.op)
    groups = 3 if filters == 6 else 6  # groups of two channels, or of one channel for two filters each
    own = op.weights[:, : 6 // groups]
    made.nodes[-1] = replace(last, op=replace(op, weights=own, groups=groups))
    graph = lower(made.network())
    unit = next(block.op for block in graph.blocks if block.name == "conv2")
    assert isinstance(unit, g.MatrixVector)
    assert unit.weight_type.name == kept
    for number, weights in enumerate(unit.weights):
        group = number // (filters // groups)
        span = slice(group * 6 // groups, (group + 1) * 6 // groups)
        np.testing.assert_array_equal(weights[span], own[number])
        assert np.count_nonzero(np.delete(weights, range(6)[span], axis=0)) == 0


def test_padding_of_bipolar_values_is_refused() -> None:
    made = Layers(3, 8, 8, "BIPOLAR", "BIPOLAR").conv(8, 3).conv(8, 3)
    with raises_among(UnsupportedError, where="net:3", subject="convolution 'conv2'"):
        lower(made.network())
    lower(Layers(3, 8, 8, "BIPOLAR", "BIPOLAR").conv(8, 3).conv(8, 3, 1, NONE).network())


def test_bipolar_output_of_the_pipeline_is_refused() -> None:
    made = Layers(3, 8, 8, "BIPOLAR", "BIPOLAR").conv(8, 3, 1, NONE).conv(8, 3, 1, NONE)
    with raises_among(UnsupportedError, where="net:3", subject="convolution 'conv2'"):
        check_mappable(made.network())
    check_mappable(Layers(3, 8, 8, "BIPOLAR", "UINT2").conv(8, 3).network())


def test_concat_of_different_datatypes_is_refused() -> None:
    made = Layers(3, 8, 8).conv(8, 3).conv(8, 3, 1, None, False, 0)
    made.nodes[1] = replace(made.nodes[1], type=TensorType(DataType(8, True), 1.0))
    with raises_among(UnsupportedError, subject="concat 'concat3'") as caught:
        lower(made.concat(1, 2).network())
    assert "INT8, UINT4" in str(caught.value)


def test_lower_of_many_streams_is_a_chain_of_blocks() -> None:
    made = Layers(3, 8, 8).conv(12, 3)
    for first in range(6):
        made.slice(2 * first, 2, 1)
    made.concat(2, 3, 4, 5, 6, 7).conv(4, 1, 1, None, False, 1).conv(4, 1, 1, None, False, 1)
    for _ in range(3):
        made.conv(4, 1, 1, None, False, 1)
    graph = lower(made.network())
    sound(graph)
    assert [b.op.copies for b in graph.blocks if isinstance(b.op, g.Duplicate)] == [4, 3]
    assert [b.op.parts for b in graph.blocks if isinstance(b.op, g.Split)] == [(2, 2, 2, 6), (2, 2, 2)]
    joined = [b for b in graph.blocks if isinstance(b.op, g.Concat)]
    assert [[graph.type_of(p).shape.channels for p in b.inputs] for b in joined] == [[2, 2, 2, 2], [8, 2, 2]]
    assert joined[-1].outputs[0].shape == Shape(12, 8, 8)


def test_window_of_padding_only_is_refused() -> None:
    made = Layers(3, 8, 8).conv(4, 3, 1, Padding(3, 0, 0, 0))
    with raises_among(UnsupportedError, where="net:2", subject="convolution 'conv1'") as caught:
        lower(made.network())
    assert "3×3" in str(caught.value)
    pooled = Layers(3, 8, 8).add("pool", MaxPool(2, 1, Padding(0, 0, 2, 0)), Shape(3, 9, 7))
    with raises_among(UnsupportedError, where="net:2", subject="maxpool 'pool1'") as caught:
        lower(pooled.network())
    assert "2×2" in str(caught.value)


@cases(
    "padding, refused",
    [
        (Padding(top=1, left=2, bottom=1, right=2), False),
        (Padding(2, 0, 0, 0), True),
        (Padding(0, 3, 0, 0), True),
        (Padding(0, 0, 2, 0), True),
        (Padding(0, 0, 0, 3), True),
    ],
)
def test_padding_of_the_kernel_size_is_refused(padding: Padding, refused: bool) -> None:
    """The kernel has 2 rows and 3 columns."""
    made = Layers(3, 8, 8)
    op = QConvolution(made.drawn(4, 3, 2, 3), made.weight_type, requantiser(4), 1, padding, 1)
    shape = Shape(4, 7 + padding.top + padding.bottom, 6 + padding.left + padding.right)
    network = made.add("conv", op, shape).network()
    if refused:
        with raises_among(UnsupportedError, where="net:2", subject="convolution 'conv1'"):
            lower(network)
    else:
        sound(lower(network))


def test_add_of_too_many_maps_is_refused() -> None:
    made = Layers(3, 8, 8)
    for _ in range(5):
        made.conv(4, 1, 1, None, False, 0)
    with raises_among(UnsupportedError, where="net:7", subject="add 'add6'"):
        lower(made.sum(1, 2, 3, 4, 5).network())


def test_names_of_many_copies_have_at_most_63_letters() -> None:
    """A stream's name has at most 63 letters, also after the last of many copies."""
    layers = Layers(3, 8, 8).conv(4, 1)
    for _ in range(60):
        layers = layers.conv(1, 1, 1, None, False, 1)
    names = [block.name for block in lower(layers.concat(*range(2, 62)).network()).blocks]
    assert len(set(names)) == len(names)
    assert {"conv1_copy", "conv1_copy_more", "conv1_copy_more2", "conv1_copy_more3"} <= set(names)
    assert max(len(f"from_{name}_0") for name in names if "_copy" in name) < 64
