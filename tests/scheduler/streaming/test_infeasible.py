"""The errors for networks that do not fit a board, and the proposals of changes that fit."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from boards.board import load
from boards.errors import DoesNotFitError
from cnn.datatype import DataType
from cnn.maps import Padding
from cnn.ops import MaxPool
from scheduler.hardware.budget import Budget
from scheduler.streaming import graph as g
from scheduler.streaming.area.budget import limits
from scheduler.streaming.area.total import usage
from scheduler.streaming.area.usage import StreamingUsage
from scheduler.streaming.lower import lower
from scheduler.streaming.result import Goal
from scheduler.streaming.search.candidates import Options
from scheduler.streaming.search.exact import fold
from scheduler.streaming.search.infeasible import FREE, excess, from_ddr, on_chip_bits, too_many_weights, weight_bits
from tests.support.cases import cases
from tests.support.errors import raises
from tests.support.low_bit import Layers

ZCU104 = load("zcu104")


def tiny_yolov2(bits: int, size: int = 416) -> g.StreamGraph:
    """Return the graph of tiny-YOLOv2 VOC with its own shapes, which has 15.86 million weights."""
    made = Layers(3, size, size, f"INT{bits}", f"INT{bits}")
    for filters in (16, 32, 64, 128, 256):
        made.conv(filters, 3).pool()
    made.conv(512, 3)
    made.add("pool", MaxPool(2, 1, Padding(0, 0, 1, 1)), made.nodes[-1].shape)
    return lower(made.conv(1024, 3).conv(1024, 3).conv(125, 1).wide().detect().network("tiny-yolov2"))


@pytest.mark.engine
def test_error_for_tiny_yolov2_at_8_bits_has_need_and_proposal() -> None:
    nearest = "the weights of conv14, conv13 from DDR (--external conv14 conv13)"
    with raises(DoesNotFitError, need=15.86, have=4.98, nearest=nearest) as caught:
        fold(tiny_yolov2(8), ZCU104, Goal(None))
    assert caught.value.resource == "MB for 15.86 M weights of INT8 in 312 BRAM36 and 96 URAM"


@pytest.mark.parametrize("shares", [False, True])
def test_remedy_without_a_fitting_change_names_the_systolic_style(shares: bool) -> None:
    """If no change fits, not even another board, the remedy is the systolic style, unless it lacks a layer."""
    made = Layers(8, 8, 8, "INT8", "INT8").conv(256, 3).conv(256, 3)
    made = made.shares("stable") if shares else made
    graph = lower(made.conv(64, 3).network("large"))
    nothing = Goal(None, budget=Budget(lut=0.001, dsp=0.01, bram=0.01, uram=0.01))
    with raises(DoesNotFitError, nearest="") as caught:
        fold(graph, ZCU104, nothing)
    assert ("systolic generate NET --style systolic" in caught.value.remedy) != shares


@pytest.mark.engine
def test_error_proposes_a_larger_board_that_fits() -> None:
    """Weights in DDR do not make the two stored maps smaller."""
    graph = lower(Layers(3, 64, 64, "INT8", "INT8").conv(96, 5).depthwise(5).depthwise(5).conv(8, 1).network("wide"))
    goal = Goal(None, budget=Budget(lut=0.03, bram=0.2))
    with raises(DoesNotFitError) as caught:
        fold(graph, load("pynq-z2"), goal)
    proposed = re.search(r"\(--board (\S+)\)$", caught.value.nearest)
    assert proposed, caught.value
    assert fold(graph, load(proposed[1]), goal).fits


def test_from_ddr_excludes_depthwise_layers() -> None:
    graph = lower(Layers(16, 8, 8).depthwise(7).conv(8, 1).network())
    assert from_ddr(graph, 1e9, (), 0.0) == ("conv2",)


def test_from_ddr_of_tiny_yolov2_at_4_bits_is_one_layer() -> None:
    error = too_many_weights(tiny_yolov2(4), ZCU104, Budget(), ())
    assert error is not None
    assert (error.need, error.have) == (7.93, 4.98)
    assert from_ddr(tiny_yolov2(4), on_chip_bits(ZCU104), (), FREE) == ("conv14",)


@pytest.mark.engine
def test_proposed_external_weights_fit() -> None:
    pytest.importorskip("ortools")
    pytest.importorskip("scipy")
    found = fold(tiny_yolov2(4), ZCU104, Goal(4_000_000), Options(external=("conv14",)), deadline=15.0)
    assert found.fits
    unit = next(i for i, block in enumerate(found.folding.graph.blocks) if block.name == "conv14")
    assert found.folding.folds[unit].memory == "external"
    assert found.usage.ddr_bits == 1024 * 1024 * 9 * 4  # read once per frame


def test_from_ddr_without_uram_weights_adds_the_second_largest_layer() -> None:
    graph = tiny_yolov2(4)
    error = too_many_weights(graph, ZCU104, Budget(), (), uram=False)
    assert error is not None
    assert (error.need, error.have) == (7.93, 4.98)
    assert "(URAM, 3.54 MB, starts empty" in error.resource
    assert from_ddr(graph, on_chip_bits(ZCU104, uram=False), (), FREE) == ("conv14", "conv13")
    less = too_many_weights(graph, ZCU104, Budget(), ("conv14",), uram=False)
    assert less is not None
    assert (less.need, less.have) == (3.21, 1.44)
    assert "in 312 BRAM36 (96 URAM start" in less.resource
    assert too_many_weights(graph, ZCU104, Budget(), ("conv14", "conv13"), uram=False) is None


@cases(
    "filters, has, uram, fits",
    [
        # A filter has 64 weights of 4 bits: 256 bits. 2 BRAM36 have 73,728 bits, a URAM 294,912, and a LUT 64.
        (289, {"lut": 4}, True, True),
        (289, {"lut": 3}, True, False),
        (1441, {"lut": 4, "uram": 1}, True, True),
        (1441, {"lut": 3, "uram": 1}, True, False),
        (1441, {"lut": 4, "uram": 1}, False, False),
    ],
)
def test_too_many_weights_counts_all_memory_to_the_last_bit(
    filters: int, has: dict[str, int], uram: bool, fits: bool
) -> None:
    board = replace(ZCU104, resources=replace(ZCU104.resources, **{"bram36": 2, "uram": 0, **has}))
    graph = lower(Layers(64, 2, 2).conv(filters, 1).network("tiny"))
    assert (too_many_weights(graph, board, Budget(1.0, 1.0, 1.0, 1.0), (), uram) is None) == fits
    half = Budget(0.5, 1.0, 1.0, 1.0)
    assert too_many_weights(graph, board, half, (), uram) is not None
    assert too_many_weights(graph, board, half, ("conv1",), uram) is None


def test_too_many_weights_names_the_types_of_on_chip_weights() -> None:
    """The layers have 100 · 200 weights of INT8 and 200 · 300 of INT4. 2 BRAM36 without URAM have 9.216 kB."""
    board = replace(ZCU104, resources=replace(ZCU104.resources, lut=10, bram36=2, uram=0))
    made = Layers(100, 2, 2, "INT8").conv(200, 1)
    made.weight_type = DataType.parse("INT4")
    graph = lower(made.conv(300, 1).network("mixed"))
    both = too_many_weights(graph, board, Budget(), ())
    assert both is not None
    assert (both.resource, both.need, both.have) == (
        *("MB for 0.08 M weights of INT4 and INT8 in 2 BRAM36", 0.05, 0.01),
    )
    last = too_many_weights(graph, board, Budget(), ("conv1",))
    assert last is not None
    assert (last.resource, last.need, last.have) == ("MB for 0.06 M weights of INT4 in 2 BRAM36", 0.03, 0.01)


def test_excess_lists_each_resource_above_its_limit() -> None:
    limit = limits(ZCU104, Budget())
    assert excess(limit, ZCU104, Budget()) == []
    names = {"lut": "LUT", "lutram": "LUT as memory", "dsp": "DSP", "bram18": "BRAM18", "uram": "URAM"}
    for resource, name in names.items():
        allowed = getattr(limit, resource)
        beyond = excess(replace(limit, **{resource: allowed + 5}), ZCU104, Budget())
        assert beyond == [(name, allowed + 5, allowed)]


def test_too_many_weights_of_tiny_yolov2_at_2_bits_is_none() -> None:
    assert too_many_weights(tiny_yolov2(2), ZCU104, Budget(), ()) is None


def test_too_many_weights_excludes_external_layers() -> None:
    assert too_many_weights(tiny_yolov2(4), ZCU104, Budget(), ("conv14",)) is None
    assert too_many_weights(tiny_yolov2(8), ZCU104, Budget(), ("conv13",)) is not None
    assert from_ddr(tiny_yolov2(8), on_chip_bits(ZCU104), ("conv13",), FREE) == ("conv13", "conv14")


def test_on_chip_bits_and_weight_bits_are_as_counted_by_hand() -> None:
    assert on_chip_bits(ZCU104) == 312 * 36 * 1024 + 96 * 288 * 1024
    assert weight_bits(tiny_yolov2(8, 32))["conv1"] == 16 * 27 * 8


def test_excess_of_a_budget_names_usage_and_limit() -> None:
    board = load("pynq-z2")
    limit = limits(board, Budget(lut=0.5, dsp=1.0))
    used = StreamingUsage(lut=limit.lut + 1, dsp=board.resources.dsp + 30, bram18=limit.bram18)
    assert excess(used, board, Budget(lut=0.5, dsp=1.0)) == [("LUT", 26601, 26600), ("DSP", 250, 220)]


def test_excess_of_a_fitting_folding_is_empty() -> None:
    graph = lower(Layers(3, 8, 8).conv(4, 3).network())
    folding = g.StreamingFolding(graph, (g.Fold(),) * len(graph.blocks))
    assert excess(usage(folding, ZCU104), ZCU104, Budget()) == []
