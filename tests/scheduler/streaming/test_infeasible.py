"""Why a network does not fit, and what would."""

from __future__ import annotations

import pytest

from boards.board import load
from boards.errors import ScheduleError
from cnn.network import MaxPool, Padding
from scheduler.hardware.budget import Budget
from scheduler.streaming import graph as g
from scheduler.streaming.area.budget import limits
from scheduler.streaming.area.total import usage
from scheduler.streaming.area.usage import StreamingUsage
from scheduler.streaming.lower import lower
from scheduler.streaming.result import Goal
from scheduler.streaming.search.candidates import Options
from scheduler.streaming.search.exact import fold
from scheduler.streaming.search.infeasible import excess, on_chip_bits, too_many_weights, weight_bits
from tests.low_bit import Layers

ZCU104 = load("zcu104")


def tiny_yolov2(bits: int, size: int = 416) -> g.StreamGraph:
    """The layers of tiny-YOLOv2 VOC in its shapes: 15.86 million weights."""
    made = Layers(3, size, size, f"INT{bits}", f"INT{bits}")
    for filters in (16, 32, 64, 128, 256):
        made.conv(filters, 3).pool()
    made.conv(512, 3)
    made.add("pool", MaxPool(2, 1, Padding(0, 0, 1, 1)), made.nodes[-1].shape)
    return lower(made.conv(1024, 3).conv(1024, 3).conv(125, 1).wide().detect().network("tiny-yolov2"))


def test_tiny_yolov2_at_8_bits_says_by_how_much_it_does_not_fit_and_what_would() -> None:
    with pytest.raises(ScheduleError) as error:
        fold(tiny_yolov2(8), ZCU104, Goal(None))
    assert str(error.value) == (
        "tiny-yolov2 does not fit ZCU104 in streaming style, which keeps weights on the chip: 15.86 M weights of INT8 "
        "are 15.86 MB, 312 BRAM36 and 96 URAM hold 4.98 MB, 10.88 MB too few; what would fit: weights of 2 bits "
        "(3.96 MB), which a network is trained for, or those of conv14, conv13 from DDR (--external conv14 conv13), "
        "which leaves 1.70 MB on the chip"
    )


def test_tiny_yolov2_at_4_bits_needs_one_layer_less_in_ddr() -> None:
    sentence = too_many_weights(tiny_yolov2(4), ZCU104, Budget(), ())
    assert sentence is not None
    assert "INT4 are 7.93 MB" in sentence
    assert "2.95 MB too few" in sentence
    assert "or those of conv14 from DDR (--external conv14), which leaves 3.21 MB on the chip" in sentence


def test_what_is_proposed_fits() -> None:
    pytest.importorskip("ortools")
    pytest.importorskip("scipy")
    found = fold(tiny_yolov2(4), ZCU104, Goal(4_000_000), Options(external=("conv14",)), deadline=15.0)
    assert found.fits
    unit = next(i for i, block in enumerate(found.folding.graph.blocks) if block.name == "conv14")
    assert found.folding.folds[unit].memory == "external"
    assert found.usage.ddr_bits == 1024 * 1024 * 9 * 4  # once a frame


def test_without_uram_for_weights_the_second_largest_layer_comes_from_ddr_too() -> None:
    graph = tiny_yolov2(4)
    sentence = too_many_weights(graph, ZCU104, Budget(), (), uram=False)
    assert sentence is not None
    assert "are 7.93 MB, 312 BRAM36 and 96 URAM hold 4.98 MB, 2.95 MB too few (URAM, 3.54 MB of it, starts" in sentence
    assert "or those of conv14, conv13 from DDR (--external conv14 conv13), which leaves 0.85 MB on the" in sentence
    less = too_many_weights(graph, ZCU104, Budget(), ("conv14",), uram=False)
    assert less is not None
    assert "INT4 are 3.21 MB, 312 BRAM36 hold 1.44 MB, 1.77 MB too few; the 96 URAM start empty" in less
    assert too_many_weights(graph, ZCU104, Budget(), ("conv14", "conv13"), uram=False) is None


def test_two_bits_fit() -> None:
    assert too_many_weights(tiny_yolov2(2), ZCU104, Budget(), ()) is None


def test_layers_that_are_in_ddr_already_do_not_count() -> None:
    assert too_many_weights(tiny_yolov2(4), ZCU104, Budget(), ("conv14",)) is None
    sentence = too_many_weights(tiny_yolov2(8), ZCU104, Budget(), ("conv13",))
    assert sentence is not None
    assert "those of conv13, conv14 from DDR" in sentence


def test_memory_of_the_chip_and_bits_of_layers() -> None:
    assert on_chip_bits(ZCU104) == 312 * 36 * 1024 + 96 * 288 * 1024
    assert weight_bits(tiny_yolov2(8, 32))["conv1"] == 16 * 27 * 8


def test_what_a_board_excess() -> None:
    board = load("pynq-z2")
    limit = limits(board, Budget(lut=0.5, dsp=1.0))
    used = StreamingUsage(lut=limit.lut + 1, dsp=board.resources.dsp + 30, bram18=limit.bram18)
    assert excess(used, board, Budget(lut=0.5, dsp=1.0)) == [
        "26601 LUT of 26600 (53200 less what is kept free), 1 too many",
        "250 DSP of 220, 30 too many",
    ]


def test_nothing_is_lacked_where_a_folding_fits() -> None:
    graph = lower(Layers(3, 8, 8).conv(4, 3).network())
    folding = g.StreamingFolding(graph, (g.Fold(),) * len(graph.blocks))
    assert excess(usage(folding, ZCU104), ZCU104, Budget()) == []
