"""Every constraint, with a folding that keeps it, a folding that breaks it, and the fields of its error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from boards.errors import (
    ChoiceError,
    ConflictError,
    InvalidValueError,
    MismatchError,
    RangeError,
    SeveralFaultsError,
    SystolicError,
)
from scheduler.streaming import graph as g
from scheduler.streaming.folded_block import FoldedBlock
from scheduler.streaming.lower import lower
from scheduler.streaming.rules import CONSTRAINTS, MEMORIES, MULTIPLIERS, RAMS, STYLES, check
from tests.support.cases import cases
from tests.support.errors import faults_of, raises, raises_among
from tests.support.low_bit import Layers
from tests.support.stream_graphs import activate, bipolar, conv, packaged, split

Case = tuple[str, Callable[[], Any], dict[str, g.Fold], type[SystolicError], dict[str, Any]]
CASES: list[Case] = [
    (
        "MVU: MH % PE",
        conv,
        {"conv1": g.Fold(pe=4)},
        InvalidValueError,
        {"where": "conv1", "what": "pe", "got": 4, "nearest": (2, 5)},
    ),
    (
        "MVU: MW % SIMD",
        conv,
        {"conv1": g.Fold(simd=12)},
        InvalidValueError,
        {"where": "conv1", "what": "simd", "got": 12, "nearest": (9, 18)},
    ),
    (
        "VVU: channels % PE",
        lambda: Layers(6, 8, 8).depthwise(),
        {"conv1": g.Fold(pe=4), "conv1_window": g.Fold(simd=1)},
        InvalidValueError,
        {"where": "conv1", "what": "pe", "got": 4, "nearest": (3, 6)},
    ),
    (
        "VVU: taps % SIMD",
        lambda: Layers(6, 8, 8).depthwise(),
        {"conv1": g.Fold(simd=2)},
        InvalidValueError,
        {"where": "conv1", "what": "simd", "got": 2, "nearest": (1, 3)},
    ),
    (
        "SWU: channels % SIMD",
        conv,
        {"conv1_window": g.Fold(simd=4)},
        InvalidValueError,
        {"where": "conv1_window", "what": "simd", "got": 4, "nearest": (3, 6)},
    ),
    (
        "pool: channels % PE",
        lambda: conv().pool(),
        {"pool2": g.Fold(pe=3)},
        InvalidValueError,
        {"where": "pool2", "what": "pe", "got": 3, "nearest": (2, 5)},
    ),
    (
        "pool: channels % PE",
        lambda: conv().average(),
        {"average2": g.Fold(pe=20)},
        InvalidValueError,
        {"where": "average2", "what": "pe", "got": 20, "nearest": (10,)},
    ),
    (
        "package's block: channels % lanes",
        packaged,
        {"act": g.Fold(pe=4)},
        InvalidValueError,
        {"where": "act", "what": "the lanes of its words", "got": "4 for 10 channels, 4 for 10 channels"},
    ),
    (
        "thresholding: channels % PE",
        activate,
        {"act": g.Fold(pe=0)},
        InvalidValueError,
        {"where": "act", "what": "pe", "got": 0, "nearest": (1,)},
    ),
    (
        "add: channels % PE",
        lambda: conv().conv(10, 3).sum(1, 2),
        {"add3": g.Fold(pe=4)},
        InvalidValueError,
        {"where": "add3", "what": "pe", "got": 4, "nearest": (2, 5)},
    ),
    (
        "multiply: channels % PE",
        lambda: conv().conv(10, 3).product(1, 2),
        {"multiply3": g.Fold(pe=4)},
        InvalidValueError,
        {"where": "multiply3", "what": "pe", "got": 4, "nearest": (2, 5)},
    ),
    (
        "duplicate: channels % PE",
        lambda: conv().conv(10, 3).sum(1, 2),
        {"conv1_copy": g.Fold(pe=4)},
        InvalidValueError,
        {"where": "conv1_copy", "what": "pe", "got": 4, "nearest": (2, 5)},
    ),
    (
        "down-sampler: channels % SIMD",
        lambda: Layers(6, 8, 8).conv(4, 1, 2),
        {"conv1_sample": g.Fold(simd=4)},
        InvalidValueError,
        {"where": "conv1_sample", "what": "simd", "got": 4, "nearest": (3, 6)},
    ),
    (
        "softmax: channels % PE",
        lambda: conv().shares("stable"),
        {"softmax2": g.Fold(pe=4)},
        InvalidValueError,
        {"where": "softmax2", "what": "pe", "got": 4, "nearest": (2, 5)},
    ),
    (
        "values per cycle of a softmax",
        lambda: Layers(3, 2, 2).conv(130, 1).shares("stable"),
        {"softmax2": g.Fold(pe=65)},
        RangeError,
        {"where": "softmax2", "got": 65, "high": 64},
    ),
    (
        "label select: labels % PE",
        lambda: conv().choose(3),
        {"choice2": g.Fold(pe=4)},
        InvalidValueError,
        {"where": "choice2", "what": "pe", "got": 4, "nearest": (2, 5)},
    ),
    (
        "values that a label select keeps",
        lambda: Layers(3, 2, 2).conv(60, 1).choose(5),
        {"choice2": g.Fold(pe=15)},
        RangeError,
        {"where": "choice2", "got": 15, "high": 12},
    ),
    (
        "up-sample: channels % SIMD",
        lambda: conv().upsample(2),
        {"upsample2": g.Fold(simd=4)},
        InvalidValueError,
        {"where": "upsample2", "what": "simd", "got": 4, "nearest": (2, 5)},
    ),
    (
        "depth to space: channels % SIMD",
        lambda: Layers(3, 8, 8).conv(24, 3).spread(2, 1),
        {"spread2": g.Fold(simd=5)},
        InvalidValueError,
        {"where": "spread2", "what": "simd", "got": 5, "nearest": (4, 6)},
    ),
    (
        "reorg: channels % SIMD",
        lambda: Layers(3, 8, 8).conv(8, 3).reorg(2, 1),
        {"reorg2": g.Fold(simd=3)},
        InvalidValueError,
        {"where": "reorg2", "what": "simd", "got": 3, "nearest": (2, 4)},
    ),
    (
        "DMA: channels % SIMD",
        conv,
        {"input": g.Fold(simd=4)},
        InvalidValueError,
        {"where": "input", "what": "simd", "got": 4, "nearest": (3, 6)},
    ),
    (
        "DMA: channels % SIMD",
        conv,
        {"conv1_out": g.Fold(simd=4)},
        InvalidValueError,
        {"where": "conv1_out", "what": "simd", "got": 4, "nearest": (2, 5)},
    ),
    (
        "concat and split: parts % SIMD",
        split,
        {"concat4": g.Fold(simd=5)},
        InvalidValueError,
        {"where": "concat4", "what": "simd", "got": 5, "nearest": (2,)},
    ),
    (
        "concat and split: parts % SIMD",
        split,
        {"slice2_split": g.Fold(simd=4)},
        InvalidValueError,
        {"where": "slice2_split", "what": "simd", "got": 4, "nearest": (2,)},
    ),
    (
        "width % M",
        lambda: conv().pool(),
        {"pool2": g.Fold(m=16, pe=10)},
        InvalidValueError,
        {"where": "pool2", "what": "m", "got": 16},
    ),
    (
        "M % stride",
        lambda: Layers(6, 12, 12).conv(10, 3, 3),
        {"conv1_window": g.Fold(m=2, style="parallel")},
        InvalidValueError,
        {"where": "conv1_window", "what": "m", "got": 2},
    ),
    (
        "width of words",
        lambda: Layers(512, 2, 2).conv(4, 3),
        {"conv1_window": g.Fold(simd=512, style="parallel")},
        RangeError,
        {"where": "conv1_window", "got": 36864, "high": 4096},
    ),
    (
        "width of words",
        lambda: Layers(64, 8, 8).conv(4, 3),
        {"conv1": g.Fold(simd=72, pixels=8)},
        RangeError,
        {"where": "conv1", "got": 4608, "high": 4096},
    ),
    (
        "width of words",
        lambda: Layers(64, 8, 8).conv(4, 3),
        {"conv1": g.Fold(pe=4, simd=288, memory="decoupled", ram="bram")},
        RangeError,
        {"where": "conv1", "got": 4608, "high": 4096},
    ),
    (
        "memory of depthwise weights",
        lambda: Layers(6, 8, 8).depthwise(),
        {"conv1": g.Fold(memory="external")},
        InvalidValueError,
        {"where": "conv1", "what": "memory", "got": "external"},
    ),
    (
        "URAM of weights",
        conv,
        {"conv1": g.Fold(ram="uram")},
        ConflictError,
        {"where": "conv1", "subjects": ("ram uram", "memory embedded")},
    ),
    (
        "M of a window",
        conv,
        {"conv1_window": g.Fold(simd=6, m=2)},
        InvalidValueError,
        {"where": "conv1_window", "what": "m", "got": 2},
    ),
    (
        "M at the DMA",
        conv,
        {"conv1_out": g.Fold(simd=5, m=2)},
        InvalidValueError,
        {"where": "conv1_out", "what": "simd", "got": 5},
    ),
    (
        "M of blocks for single pixels",
        lambda: conv().upsample(2),
        {"upsample2": g.Fold(simd=10, m=2)},
        InvalidValueError,
        {"where": "upsample2", "what": "m", "got": 2},
    ),
    (
        "pixels of a unit",
        conv,
        {"conv1": g.Fold(pixels=3)},
        InvalidValueError,
        {
            "where": "conv1",
            "what": "pixels",
            "got": 3,
            "required": "m (1), or with m = 1 a divisor of the pixels of its output (64)",
        },
    ),
    (
        "pixels of a unit",
        lambda: conv().pool(),
        {"pool2": g.Fold(pixels=2)},
        InvalidValueError,
        {"where": "pool2", "what": "pixels", "got": 2},
    ),
    (
        "pixels of a unit",
        lambda: Layers(6, 8, 8).depthwise(),
        {"conv1": g.Fold(pixels=2)},
        InvalidValueError,
        {
            "where": "conv1",
            "what": "pixels",
            "got": 2,
            "required": "m (1), because depthwise units do not gather pixels",
        },
    ),
    (
        "rows of darknet's reorg",
        lambda: Layers(3, 6, 8).conv(8, 3).reorg(2, 1),
        {"reorg2": g.Fold(simd=2)},
        InvalidValueError,
        {"where": "reorg2", "what": "simd", "got": 2},
    ),
    (
        "style",
        conv,
        {"conv1_window": g.Fold(style="wide")},
        ChoiceError,
        {"where": "conv1_window", "what": "style", "got": "wide", "choices": STYLES},
    ),
    (
        "memory",
        conv,
        {"conv1": g.Fold(memory="disk")},
        ChoiceError,
        {"where": "conv1", "what": "memory", "got": "disk", "choices": MEMORIES},
    ),
    (
        "ram",
        conv,
        {"conv1": g.Fold(ram="dram")},
        ChoiceError,
        {"where": "conv1", "what": "ram", "got": "dram", "choices": RAMS},
    ),
    (
        "multiplier",
        conv,
        {"conv1": g.Fold(multiplier="cpu")},
        ChoiceError,
        {"where": "conv1", "what": "multiplier", "got": "cpu", "choices": MULTIPLIERS},
    ),
    (
        "style of a window",
        conv,
        {"conv1": g.Fold(style="parallel")},
        InvalidValueError,
        {"where": "conv1", "what": "style", "got": "parallel"},
    ),
    (
        "memory of weights",
        conv,
        {"conv1_window": g.Fold(memory="external")},
        InvalidValueError,
        {"where": "conv1_window", "what": "memory", "got": "external"},
    ),
    (
        "memory of weights",
        conv,
        {"conv1_out": g.Fold(memory="decoupled")},
        InvalidValueError,
        {"where": "conv1_out", "what": "memory", "got": "decoupled"},
    ),
    (
        "memory of depthwise weights",
        lambda: Layers(6, 8, 8).depthwise(),
        {"conv1": g.Fold(memory="decoupled")},
        InvalidValueError,
        {"where": "conv1", "what": "memory", "got": "decoupled"},
    ),
    (
        "padding of channels",
        lambda: conv().upsample(2),
        {"upsample2": g.Fold(pad_in=2, pad_out=2)},
        InvalidValueError,
        {"where": "upsample2", "what": "pad_in", "got": 2},
    ),
    (
        "padding of bipolar weights",
        bipolar,
        {"conv1": g.Fold(pad_in=2), "conv1_window": g.Fold(pad_in=2, pad_out=2)},
        InvalidValueError,
        {"where": "conv1", "what": "pad_in", "got": 2},
    ),
    (
        "padding that stays",
        lambda: conv().pool(),
        {"pool2": g.Fold(pad_in=2)},
        MismatchError,
        {"where": "pool2", "got": 0, "expected": 2},
    ),
    (
        "group of a depthwise window",
        lambda: Layers(6, 8, 8).depthwise(),
        {"conv1": g.Fold(pe=2), "conv1_window": g.Fold(simd=3)},
        MismatchError,
        {"where": "conv1", "got": 2, "expected": 3},
    ),
    (
        "padding of a window",
        conv,
        {"conv1": g.Fold(pad_in=2)},
        MismatchError,
        {"where": "conv1", "got": 2, "expected": 0},
    ),
    (
        "padding of channels",
        conv,
        {"conv1": g.Fold(pad_out=-1)},
        RangeError,
        {"where": "conv1", "what": "pad_out", "got": -1, "low": 0},
    ),
]


def graph_of(made: Layers | g.StreamGraph) -> g.StreamGraph:
    return made if isinstance(made, g.StreamGraph) else lower(made.network())


def folded(graph: g.StreamGraph, folds: dict[str, g.Fold]) -> g.StreamingFolding:
    assert set(folds) <= {block.name for block in graph.blocks}
    return g.StreamingFolding(graph, tuple(folds.get(block.name, g.Fold()) for block in graph.blocks))


@cases("row, made, folds, kind, fields", CASES, ids=[f"{c[0]}-{next(iter(c[2]))}" for c in CASES])
def test_broken_constraint_raises_its_error(
    row: str,
    made: Callable[[], Layers],
    folds: dict[str, g.Fold],
    kind: type[SystolicError],
    fields: dict[str, object],
) -> None:
    graph = graph_of(made())
    with raises_among(kind, **fields):
        check(folded(graph, folds))
    place = FoldedBlock(graph, folded(graph, folds).folds, [b.name for b in graph.blocks].index(str(fields["where"])))
    assert not next(one for one in CONSTRAINTS if one.name == row).holds(place)
    check(folded(graph, {}))  # words of one value keep all constraints


def test_constraint_cases_cover_every_constraint() -> None:
    assert {case[0] for case in CASES} == {row.name for row in CONSTRAINTS}


def test_check_reports_all_broken_constraints_together() -> None:
    graph = graph_of(conv())
    with raises(SeveralFaultsError) as caught:
        check(folded(graph, {"conv1": g.Fold(pe=4, simd=12)}))
    assert [error.where for error in caught.value.errors] == ["conv1", "conv1"]
    assert faults_of(caught.value, InvalidValueError, what="pe")
    assert faults_of(caught.value, InvalidValueError, what="simd")


def test_check_refuses_another_number_of_folds() -> None:
    graph = graph_of(conv())
    with raises(MismatchError, got=1, expected=4):
        check(g.StreamingFolding(graph, (g.Fold(),)))


def test_words_of_two_pixels_are_legal_for_window_unit_and_pool() -> None:
    graph = graph_of(conv().pool())
    folds = {
        "conv1_window": g.Fold(simd=3, style="parallel", m=2),
        "conv1": g.Fold(simd=27, pe=5, m=2, pixels=2),
        "pool2": g.Fold(pe=5, m=2),
    }
    check(folded(graph, folds))
    check(folded(graph, {"conv1": g.Fold(simd=27, pe=5, pixels=4)}))
