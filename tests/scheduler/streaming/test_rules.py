"""Every row of the constraint table: a folding that keeps it, one that breaks it, and the sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from boards.errors import ScheduleError
from scheduler.streaming import graph as g
from scheduler.streaming.lower import lower
from scheduler.streaming.rules import CONSTRAINTS, broken, check
from tests.support.low_bit import NONE, Layers
from tests.systolic.extending import greater


def conv() -> Layers:
    return Layers(6, 8, 8).conv(10, 3)


def split() -> Layers:
    made = Layers(3, 8, 8).conv(10, 1)
    return made.slice(0, 4, 1).slice(4, 6, 1).concat(2, 3)


def activate() -> g.StreamGraph:
    graph = lower(conv().network())
    unit = graph.blocks[2]
    op = g.Activate(unit.op.activation)  # type: ignore[union-attr, arg-type]
    block = replace(unit, name="act", op=op, inputs=(g.Port(2),))
    sink = replace(graph.blocks[3], inputs=(g.Port(3),))
    return g.StreamGraph("activate", (*graph.blocks[:3], block, sink))


def packaged() -> g.StreamGraph:
    graph = activate()
    act = replace(graph.blocks[3], op=g.Custom("acme_greater", (), greater.block))
    return replace(graph, blocks=(*graph.blocks[:3], act, graph.blocks[4]))


def bipolar() -> Layers:
    return Layers(6, 8, 8, "BIPOLAR", "BIPOLAR").conv(10, 3, 1, NONE)


Case = tuple[str, Callable[[], Layers] | Callable[[], g.StreamGraph], dict[str, g.Fold], str]
CASES: list[Case] = [
    (
        "MVU: MH % PE",
        conv,
        {"conv1": g.Fold(pe=4)},
        "conv1: pe has to divide its filters, MH (10), and 4 does not; nearest are 2 and 5, or pad_out adds channels",
    ),
    (
        "MVU: MW % SIMD",
        conv,
        {"conv1": g.Fold(simd=12)},
        "conv1: simd has to divide its columns, MW (54), and 12 does not; nearest are 9 and 18, "
        "or pad_in adds channels",
    ),
    (
        "VVU: channels % PE",
        lambda: Layers(6, 8, 8).depthwise(),
        {"conv1": g.Fold(pe=4), "conv1_window": g.Fold(simd=1)},
        "conv1: pe has to divide its channels (6), and 4 does not; nearest are 3 and 6, or pad_in adds channels",
    ),
    (
        "VVU: taps % SIMD",
        lambda: Layers(6, 8, 8).depthwise(),
        {"conv1": g.Fold(simd=2)},
        "conv1: simd has to divide the taps of its kernel (9), and 2 does not; nearest are 1 and 3",
    ),
    (
        "SWU: channels % SIMD",
        conv,
        {"conv1_window": g.Fold(simd=4)},
        "conv1_window: simd has to divide its channels (6), and 4 does not; nearest are 3 and 6, "
        "or pad_in adds channels",
    ),
    (
        "pool: channels % PE",
        lambda: conv().pool(),
        {"pool2": g.Fold(pe=3)},
        "pool2: pe has to divide its channels (10), and 3 does not; nearest are 2 and 5",
    ),
    (
        "pool: channels % PE",
        lambda: conv().average(),
        {"average2": g.Fold(pe=20)},
        "average2: pe has to divide its channels (10), and 20 does not; nearest are 10",
    ),
    (
        "package's block: channels % lanes",
        packaged,
        {"act": g.Fold(pe=4)},
        "act: the lanes of its words have to divide the channels of its maps: 4 of 10, 4 of 10",
    ),
    (
        "thresholding: channels % PE",
        activate,
        {"act": g.Fold(pe=0)},
        "act: pe has to divide its channels (10), and 0 does not; nearest are 1",
    ),
    (
        "add: channels % PE",
        lambda: conv().conv(10, 3).sum(1, 2),
        {"add3": g.Fold(pe=4)},
        "add3: pe has to divide its channels (10), and 4 does not; nearest are 2 and 5",
    ),
    (
        "multiply: channels % PE",
        lambda: conv().conv(10, 3).product(1, 2),
        {"multiply3": g.Fold(pe=4)},
        "multiply3: pe has to divide its channels (10), and 4 does not; nearest are 2 and 5",
    ),
    (
        "duplicate: channels % PE",
        lambda: conv().conv(10, 3).sum(1, 2),
        {"conv1_copy": g.Fold(pe=4)},
        "conv1_copy: pe has to divide its channels (10), and 4 does not; nearest are 2 and 5",
    ),
    (
        "down-sampler: channels % SIMD",
        lambda: Layers(6, 8, 8).conv(4, 1, 2),
        {"conv1_sample": g.Fold(simd=4)},
        "conv1_sample: simd has to divide its channels (6), and 4 does not; nearest are 3 and 6",
    ),
    (
        "softmax: channels % PE",
        lambda: conv().shares("stable"),
        {"softmax2": g.Fold(pe=4)},
        "softmax2: pe has to divide its channels (10), and 4 does not; nearest are 2 and 5",
    ),
    (
        "values a cycle of a softmax",
        lambda: Layers(3, 2, 2).conv(130, 1).shares("stable"),
        {"softmax2": g.Fold(pe=65)},
        "softmax2: each of its values has a look-up and a product: pe is at most 64, not 65",
    ),
    (
        "label select: labels % PE",
        lambda: conv().choose(3),
        {"choice2": g.Fold(pe=4)},
        "choice2: pe has to divide its labels (10), and 4 does not; nearest are 2 and 5",
    ),
    (
        "values that a label select keeps",
        lambda: Layers(3, 2, 2).conv(60, 1).choose(5),
        {"choice2": g.Fold(pe=15)},
        "choice2: each PE keeps the 5 greatest of its values, 64 in all: pe has to be at most 12, not 15",
    ),
    (
        "up-sample: channels % SIMD",
        lambda: conv().upsample(2),
        {"upsample2": g.Fold(simd=4)},
        "upsample2: simd has to divide its channels (10), and 4 does not; nearest are 2 and 5",
    ),
    (
        "depth to space: channels % SIMD",
        lambda: Layers(3, 8, 8).conv(24, 3).spread(2, 1),
        {"spread2": g.Fold(simd=5)},
        "spread2: simd has to divide channels that leave (12), and 5 does not; nearest are 4 and 6",
    ),
    (
        "reorg: channels % SIMD",
        lambda: Layers(3, 8, 8).conv(8, 3).reorg(2, 1),
        {"reorg2": g.Fold(simd=3)},
        "reorg2: simd has to divide its channels (8), and 3 does not; nearest are 2 and 4",
    ),
    (
        "DMA: channels % SIMD",
        conv,
        {"input": g.Fold(simd=4)},
        "input: simd has to divide its channels (6), and 4 does not; nearest are 3 and 6",
    ),
    (
        "DMA: channels % SIMD",
        conv,
        {"conv1_out": g.Fold(simd=4)},
        "conv1_out: simd has to divide its channels (10), and 4 does not; nearest are 2 and 5",
    ),
    (
        "concat and split: parts % SIMD",
        split,
        {"concat4": g.Fold(simd=5)},
        "concat4: simd has to divide each of its parts (4, 6), and 5 does not",
    ),
    (
        "concat and split: parts % SIMD",
        split,
        {"slice2_split": g.Fold(simd=4)},
        "slice2_split: simd has to divide each of its parts (4, 6), and 4 does not",
    ),
    (
        "width % M",
        lambda: conv().pool(),
        {"pool2": g.Fold(m=16, pe=10)},
        "pool2: m has to divide the width of its maps (4 and 8), and 16 does not",
    ),
    (
        "M % stride",
        lambda: Layers(6, 12, 12).conv(10, 3, 3),
        {"conv1_window": g.Fold(m=2, style="parallel")},
        "conv1_window: m (2) has to be 1 or a multiple of its stride (3)",
    ),
    (
        "width of words",
        lambda: Layers(512, 2, 2).conv(4, 3),
        {"conv1_window": g.Fold(simd=512, style="parallel")},
        "conv1_window: a word has at most 4096 bits, not 36864; take fewer lanes",
    ),
    (
        "width of words",
        lambda: Layers(64, 8, 8).conv(4, 3),
        {"conv1": g.Fold(simd=72, pixels=8)},
        "conv1: a word has at most 4096 bits, not 4608; take fewer lanes",
    ),
    (
        "width of words",
        lambda: Layers(64, 8, 8).conv(4, 3),
        {"conv1": g.Fold(pe=4, simd=288, memory="decoupled", ram="bram")},
        "conv1: a word has at most 4096 bits, not 4608; take fewer lanes",
    ),
    (
        "memory of depthwise weights",
        lambda: Layers(6, 8, 8).depthwise(),
        {"conv1": g.Fold(memory="external")},
        "conv1: depthwise weights are few and embedded, not external",
    ),
    (
        "URAM of weights",
        conv,
        {"conv1": g.Fold(ram="uram")},
        "conv1: URAM has no initial contents, so weights in it are decoupled, not embedded",
    ),
    (
        "M of a window",
        conv,
        {"conv1_window": g.Fold(simd=6, m=2)},
        "conv1_window: a window of style default takes one pixel at a time, m = 2 is not; take style parallel",
    ),
    (
        "M at the DMA",
        conv,
        {"conv1_out": g.Fold(simd=5, m=2)},
        "conv1_out: words of 2 pixels to and from DDR hold whole pixels: simd has to be 10, not 5",
    ),
    (
        "M of what moves pixels",
        lambda: conv().upsample(2),
        {"upsample2": g.Fold(simd=10, m=2)},
        "upsample2: it takes one pixel at a time, m = 2 is not",
    ),
    (
        "pixels of a unit",
        conv,
        {"conv1": g.Fold(pixels=3)},
        "conv1: pixels is m (1), or with m = 1 a number that divides the width of its maps (8), not 3",
    ),
    (
        "pixels of a unit",
        lambda: conv().pool(),
        {"pool2": g.Fold(pixels=2)},
        "pool2: it has no weights to share between pixels: pixels stays 1, not 2",
    ),
    (
        "rows of darknet's reorg",
        lambda: Layers(3, 6, 8).conv(8, 3).reorg(2, 1),
        {"reorg2": g.Fold(simd=2)},
        "reorg2: darknet's order takes simd 2 only where stride² (4) divides the height (6); take simd 1",
    ),
    (
        "style",
        conv,
        {"conv1_window": g.Fold(style="wide")},
        "conv1_window: style is one of default, parallel, not 'wide'",
    ),
    (
        "memory",
        conv,
        {"conv1": g.Fold(memory="disk")},
        "conv1: memory is one of embedded, decoupled, external, not 'disk'",
    ),
    ("ram", conv, {"conv1": g.Fold(ram="dram")}, "conv1: ram is one of auto, lutram, bram, uram, not 'dram'"),
    ("multiplier", conv, {"conv1": g.Fold(multiplier="cpu")}, "conv1: multiplier is one of dsp, lut, not 'cpu'"),
    (
        "style of a window",
        conv,
        {"conv1": g.Fold(style="parallel")},
        "conv1: only a sliding window has a style, so it stays default, not parallel",
    ),
    (
        "memory of weights",
        conv,
        {"conv1_window": g.Fold(memory="external")},
        "conv1_window: it has no weights, so memory stays embedded, not external",
    ),
    (
        "memory of weights",
        conv,
        {"conv1_out": g.Fold(memory="decoupled")},
        "conv1_out: it has no weights, so memory stays embedded, not decoupled",
    ),
    (
        "memory of depthwise weights",
        lambda: Layers(6, 8, 8).depthwise(),
        {"conv1": g.Fold(memory="decoupled")},
        "conv1: depthwise weights are few and embedded, not decoupled",
    ),
    (
        "padding of channels",
        lambda: conv().upsample(2),
        {"upsample2": g.Fold(pad_in=2, pad_out=2)},
        "upsample2: it takes and gives the network's own channels: pad_in and pad_out stay 0, not 2 and 2",
    ),
    (
        "padding of bipolar weights",
        bipolar,
        {"conv1": g.Fold(pad_in=2), "conv1_window": g.Fold(pad_in=2, pad_out=2)},
        "conv1: its weights are BIPOLAR and cannot be zero: pad_in stays 0, not 2",
    ),
    (
        "padding that stays",
        lambda: conv().pool(),
        {"pool2": g.Fold(pad_in=2)},
        "pool2: as many channels leave as come: pad_in (2) and pad_out (0) have to be equal",
    ),
    (
        "group of a depthwise window",
        lambda: Layers(6, 8, 8).depthwise(),
        {"conv1": g.Fold(pe=2), "conv1_window": g.Fold(simd=3)},
        "conv1: it takes the channels in the groups that conv1_window gives: pe (2) has to be that window's simd (3)",
    ),
    (
        "padding of a window",
        conv,
        {"conv1": g.Fold(pad_in=2)},
        "conv1: conv1_window gathers its channels: pad_in (2) has to be that window's pad_out (0)",
    ),
]


def graph_of(made: Layers | g.StreamGraph) -> g.StreamGraph:
    return made if isinstance(made, g.StreamGraph) else lower(made.network())


def folded(graph: g.StreamGraph, folds: dict[str, g.Fold]) -> g.StreamingFolding:
    assert set(folds) <= {block.name for block in graph.blocks}
    return g.StreamingFolding(graph, tuple(folds.get(block.name, g.Fold()) for block in graph.blocks))


@pytest.mark.parametrize(("row", "made", "folds", "sentence"), CASES, ids=[f"{c[0]}-{next(iter(c[2]))}" for c in CASES])
def test_a_broken_row_says_its_sentence(
    row: str, made: Callable[[], Layers], folds: dict[str, g.Fold], sentence: str
) -> None:
    graph = graph_of(made())
    folding = folded(graph, folds)
    assert sentence in list(broken(graph, folding.folds))
    with pytest.raises(ScheduleError) as error:
        check(folding)
    assert sentence in str(error.value)
    check(folded(graph, {}))  # one value a word keeps every row


def test_every_row_is_tested() -> None:
    assert {case[0] for case in CASES} == {row.name for row in CONSTRAINTS}


def test_all_broken_rows_are_said_together() -> None:
    graph = graph_of(conv())
    with pytest.raises(ScheduleError) as error:
        check(folded(graph, {"conv1": g.Fold(pe=4, simd=12)}))
    assert str(error.value).count("\n  ") == 2
    assert str(error.value).startswith("the folding of drawn is not legal:\n  conv1: pe has to divide")


def test_a_fold_for_every_block() -> None:
    graph = graph_of(conv())
    with pytest.raises(ScheduleError, match="drawn has 4 blocks, and the folding has 1 folds"):
        check(g.StreamingFolding(graph, (g.Fold(),)))


def test_words_of_two_pixels_are_legal_through_window_unit_and_pool() -> None:
    graph = graph_of(conv().pool())
    folds = {
        "conv1_window": g.Fold(simd=3, style="parallel", m=2),
        "conv1": g.Fold(simd=27, pe=5, m=2, pixels=2),
        "pool2": g.Fold(pe=5, m=2),
    }
    check(folded(graph, folds))
    check(folded(graph, {"conv1": g.Fold(simd=27, pe=5, pixels=4)}))
