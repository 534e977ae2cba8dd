"""A block's candidates, built from divisors, are exactly the folds of a grid that keep the constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

import pytest

from boards.board import load
from cnn.maps import Shape
from scheduler.streaming import graph as g
from scheduler.streaming.lower import lower
from scheduler.streaming.rules import DIVISORS, is_legal
from scheduler.streaming.search.candidates import Options, candidates
from tests.support.cases import cases
from tests.support.low_bit import Layers
from tests.support.stream_graphs import activate, bipolar, packaged, split

ULTRA96, ZCU104 = load("ultra96-v2"), load("zcu104")
WITH_URAM = ["lutram", "bram", "uram"]

Grid = dict[str, list[object]]


def every(**keys: list[object]) -> Iterator[g.Fold]:
    """Yield all folds of a grid. Keys that are not in the grid keep their defaults."""
    for values in product(*keys.values()):
        yield g.Fold(**dict(zip(keys, values, strict=True)))  # type: ignore[arg-type]


def index_of(graph: g.StreamGraph, name: str) -> int:
    return next(i for i, block in enumerate(graph.blocks) if block.name == name)


def same(graph: g.StreamGraph, name: str, options: Options, grid: Iterator[g.Fold], board: object = ULTRA96) -> None:
    """Assert that a block's candidates are the grid's folds that keep the constraints of a single block."""
    index = index_of(graph, name)
    wanted = {fold for fold in grid if is_legal(graph, {index: fold}, index, DIVISORS)}
    folds = candidates(graph, index, board, options)  # type: ignore[arg-type]
    assert len(set(folds)) == len(folds)
    assert (wanted - {*folds}, {*folds} - wanted) == (set(), set())


def to(most: int) -> list[object]:
    return [*range(1, most + 1)]


def behind(filters: int, width: int = 8, height: int = 4) -> Layers:
    """Return layers with a map of ``filters`` channels, which is not the network's input."""
    return Layers(3, height, width).conv(filters, 1)


def more(made: Layers) -> g.StreamGraph:
    """Return the graph with one more layer, so that the last map of ``made`` is not an output."""
    return lower(made.conv(5, 1).network())


PIXELS: list[object] = [1, 2, 4]
ROWS: Grid = {"ram": ["lutram", "bram"]}
BEHIND = Options(max_padding=2, max_pixels=4)
ALONE = Options(max_pixels=4)

# Paddings 1 and 2 are useful for seven channels. A block without weights has equal padding at input and output.
SEVEN: Grid = {"pad_in": [0, 1, 2], "pad_out": [0, 1, 2]}

MOVING: list[tuple[str, Callable[[], g.StreamGraph], str, Options, Grid]] = [
    ("picture", lambda: lower(Layers(6, 8, 8).conv(4, 1).network()), "input", ALONE, {"simd": to(8), "m": PIXELS}),
    ("sink", lambda: lower(behind(6).network()), "conv1_out", ALONE, {"simd": to(8), "m": PIXELS}),
    ("sink of odd rows", lambda: lower(behind(6, 6).network()), "conv1_out", ALONE, {"simd": to(8), "m": PIXELS}),
    (
        "parts that are dropped",
        lambda: lower(behind(10).slice(4, 6, 1).conv(5, 1).network()),
        "slice2_drop0",
        ALONE,
        {"simd": to(10), "m": PIXELS},
    ),
    ("split", lambda: lower(split().network()), "slice2_split", ALONE, {"simd": to(10)}),
    ("concat", lambda: lower(split().network()), "concat4", ALONE, {"simd": to(10)}),
    ("darknet's reorg", lambda: lower(behind(6, 8, 8).reorg(2, 1).network()), "reorg2", ALONE, {"simd": to(8), **ROWS}),
    (
        "darknet's reorg of six rows",
        lambda: lower(behind(6, 8, 6).reorg(2, 1).network()),
        "reorg2",
        ALONE,
        {"simd": to(8), **ROWS},
    ),
    ("spread", lambda: lower(behind(24).spread(2, 1).network()), "spread2", ALONE, {"simd": to(24), **ROWS}),
    ("up-sample", lambda: lower(behind(6).upsample(2).network()), "upsample2", BEHIND, {"simd": to(8), **ROWS}),
    ("down-sample", lambda: lower(Layers(6, 8, 8).conv(4, 1, 2).network()), "conv1_sample", BEHIND, {"simd": to(8)}),
    ("labels", lambda: lower(behind(40).choose(3).network()), "choice2", BEHIND, {"pe": to(40)}),
    ("labels of 64 values", lambda: lower(behind(64).choose(2).network()), "choice2", BEHIND, {"pe": to(64)}),
    ("softmax", lambda: lower(behind(128).shares("stable").network()), "softmax2", BEHIND, {"pe": to(128)}),
    ("pool", lambda: more(behind(7).pool()), "pool2", BEHIND, {"pe": to(9), "m": PIXELS, **ROWS, **SEVEN}),
    ("pool of stride 3", lambda: more(behind(7, 12, 6).pool(3, 3)), "pool2", ALONE, {"pe": to(7), "m": PIXELS, **ROWS}),
    (
        "pool that leaves",
        lambda: lower(behind(7).pool().network()),
        "pool2",
        BEHIND,
        {"pe": to(9), "m": PIXELS, **ROWS},
    ),
    ("pool of the picture", lambda: more(Layers(7, 4, 8).pool()), "pool1", BEHIND, {"pe": to(9), "m": PIXELS, **ROWS}),
    (
        "pool of the picture, padded",
        lambda: more(Layers(7, 4, 8).pool()),
        "pool1",
        replace(BEHIND, pad_ends=True),
        {"pe": to(9), "m": PIXELS, **ROWS, **SEVEN},
    ),
    ("average", lambda: more(behind(7).average()), "average2", BEHIND, {"pe": to(9), **SEVEN}),
    ("sum", lambda: more(behind(7).conv(7, 1).sum(1, 2)), "add3", BEHIND, {"pe": to(9), "m": PIXELS, **SEVEN}),
    (
        "product",
        lambda: more(behind(7).conv(7, 1).product(1, 2)),
        "multiply3",
        BEHIND,
        {"pe": to(9), "m": PIXELS, **SEVEN},
    ),
    ("copy", lambda: more(behind(7).conv(7, 1).sum(1, 2)), "conv1_copy", BEHIND, {"pe": to(9), "m": PIXELS, **SEVEN}),
    ("thresholds that leave", activate, "act", BEHIND, {"pe": to(12), "m": PIXELS}),
    ("block of a package", packaged, "act", BEHIND, {"pe": to(12), "m": PIXELS}),
    (
        "window",
        lambda: more(behind(7).conv(4, 3)),
        "conv2_window",
        BEHIND,
        {"simd": to(9), "m": PIXELS, "style": ["default", "parallel"], **ROWS, **SEVEN},
    ),
    (
        "window of the picture",
        lambda: lower(Layers(7, 4, 8).conv(4, 3).network()),
        "conv1_window",
        BEHIND,
        {"simd": to(9), "m": PIXELS, "style": ["default", "parallel"], **ROWS},
    ),
    (
        "window of stride 2",
        lambda: more(behind(6, 12).conv(4, 3, 2)),
        "conv2_window",
        ALONE,
        {"simd": to(6), "m": PIXELS, "style": ["default", "parallel"], **ROWS},
    ),
    (
        "window of wide words",
        lambda: lower(Layers(512, 2, 2).conv(4, 3).network()),
        "conv1_window",
        ALONE,
        {"simd": to(512), "style": ["default", "parallel"], "m": [1, 2], **ROWS},
    ),
]


@cases("made, name, options, grid", [c[1:] for c in MOVING], ids=[c[0] for c in MOVING])
def test_candidates_of_blocks_without_weights_are_all_legal_folds(
    made: Callable[[], g.StreamGraph], name: str, options: Options, grid: Grid
) -> None:
    same(made(), name, options, every(**grid))


def test_candidates_of_a_package_block_divide_both_widths() -> None:
    """The input has rows of 8 pixels, and the output rows of 6. Words of 4 pixels divide only the input's rows."""
    graph = packaged()
    block = graph.blocks[3]
    narrow = replace(block, outputs=(replace(block.outputs[0], shape=Shape(10, 8, 6)),))
    same(put(graph, narrow), "act", Options(max_pixels=4), every(pe=to(10), m=[1, 2]))


def test_candidates_of_a_package_block_divide_all_channels() -> None:
    graph = packaged()
    block = graph.blocks[3]
    fewer = replace(block, outputs=(replace(block.outputs[0], shape=Shape(4, 8, 8)),))
    same(put(graph, fewer), "act", Options(max_pixels=1), every(pe=to(10)))
    assert len(candidates(put(graph, fewer), 3, ULTRA96, Options(max_pixels=1))) == 2  # 1 and 2 divide 10 and 4


def put(graph: g.StreamGraph, block: g.Block) -> g.StreamGraph:
    """Return the graph with ``block`` instead of block 3."""
    return replace(graph, blocks=(*graph.blocks[:3], block, *graph.blocks[4:]))


def test_candidates_for_rows_include_uram_on_boards_with_it() -> None:
    graph = more(behind(3).conv(4, 3))
    grid: Grid = {"simd": to(3), "style": ["default", "parallel"], "ram": WITH_URAM}  # type: ignore[dict-item]
    same(graph, "conv2_window", Options(max_pixels=1), every(**grid), ZCU104)


# --- units ------------------------------------------------------------------------------------------------------------

ON_CHIP = (("embedded", "lutram"), ("embedded", "bram"), ("decoupled", "bram"))


def least(channels: int, lanes: int, padding: int) -> bool:
    """Return whether the padding is the least for its number of folds, and the folds are not more than the channels."""
    if padding == 0 or (channels + padding) % lanes:
        return padding == 0
    folds = (channels + padding) // lanes
    return folds <= channels and all((channels + fewer) % folds for fewer in range(padding))


def weighing(memories: tuple[tuple[str, str], ...], filters: int, **keys: list[object]) -> Iterator[g.Fold]:
    """Yield a unit's folds with its weights in each of these memories, with the least padding of the filters."""
    for fold, (memory, ram) in product(every(**keys), memories):
        if least(filters, fold.pe, fold.pad_out):
            yield replace(fold, memory=memory, ram=ram)


UNITS: list[tuple[str, Callable[[], g.StreamGraph], str, Options, Callable[[], Iterator[g.Fold]]]] = [
    (
        "padded on both sides",
        lambda: more(behind(7, 4, 3).conv(7, 1)),
        "conv2",
        Options(max_padding=2, max_pixels=2),
        lambda: weighing(ON_CHIP, 7, pe=to(9), simd=to(9), multiplier=["dsp", "lut"], m=[1, 2], pixels=[1, 2], **SEVEN),
    ),
    (
        "gathering pixels",
        lambda: more(behind(2, 12, 3).conv(2, 1)),
        "conv2",
        Options(max_pixels=16),
        lambda: weighing(
            ON_CHIP, 2, pe=[1, 2], simd=[1, 2], multiplier=["dsp", "lut"], m=[1, 2, 4, 8], pixels=[1, 2, 4, 8, 16]
        ),
    ),
    (
        "gathering sixteen pixels, or half of them",
        lambda: more(behind(1, 16, 3).conv(1, 1)),
        "conv2",
        Options(max_pixels=16),
        lambda: weighing(ON_CHIP, 1, multiplier=["dsp", "lut"], m=[1, 2, 4, 8, 16], pixels=[1, 2, 4, 8, 16]),
    ),
    (
        "the last one gives no padding",
        lambda: lower(behind(7, 4, 3).conv(7, 1).network()),
        "conv2",
        Options(max_padding=2, max_pixels=1),
        lambda: weighing(ON_CHIP, 7, pe=to(9), simd=to(9), multiplier=["dsp", "lut"], pad_in=[0, 1, 2]),
    ),
    (
        "the last one with padded ends",
        lambda: lower(Layers(7, 3, 4).conv(7, 1).network()),
        "conv1",
        Options(max_padding=2, max_pixels=1, pad_ends=True),
        lambda: weighing(ON_CHIP, 7, pe=to(9), simd=to(9), multiplier=["dsp", "lut"], **SEVEN),
    ),
    (
        "behind a window",
        lambda: more(behind(2).conv(2, 3)),
        "conv2",
        Options(max_padding=2, max_pixels=1),
        lambda: weighing(ON_CHIP, 2, pe=to(4), simd=to(36), multiplier=["dsp", "lut"], pad_in=[0], pad_out=[0, 1, 2]),
    ),
    (
        "over a whole map",
        lambda: lower(behind(2, 3, 2).dense(4).network()),
        "dense2",
        Options(max_pixels=4),
        lambda: weighing(ON_CHIP, 4, pe=to(4), simd=to(12), multiplier=["dsp", "lut"], m=PIXELS, pixels=PIXELS),
    ),
    (
        "of bipolar weights, which are never 0",
        lambda: lower(bipolar().conv(7, 1).conv(3, 1).network()),
        "conv2",
        Options(max_padding=2, max_pixels=1),
        lambda: weighing(ON_CHIP, 7, pe=to(9), simd=to(10), multiplier=["lut"], **SEVEN),
    ),
    (
        "from DDR",
        lambda: lower(behind(4, 4, 3).conv(2, 1).network()),
        "conv2",
        Options(max_pixels=1, external=("conv2",)),
        lambda: weighing((("external", "auto"),), 2, pe=[1, 2], simd=to(4), multiplier=["dsp", "lut"]),
    ),
]


@cases("made, name, options, grid", [c[1:] for c in UNITS], ids=[c[0] for c in UNITS])
def test_candidates_of_a_unit_are_all_legal_folds(
    made: Callable[[], g.StreamGraph], name: str, options: Options, grid: Callable[[], Iterator[g.Fold]]
) -> None:
    same(made(), name, options, grid())


@pytest.mark.parametrize("leaves", [False, True])
def test_candidates_of_a_depthwise_unit_are_all_legal_folds(leaves: bool) -> None:
    """The unit has as much channel padding as its window. Without a further reader, its output has none."""
    made = behind(3).conv(7, 1).depthwise()
    graph = lower(made.network()) if leaves else more(made)
    keys: Grid = {"pe": to(9), "simd": to(9), "multiplier": ["dsp", "lut"], "ram": ["lutram", "bram"]}
    grid = every(**keys, m=[1, 2], pixels=[1, 2], **SEVEN)
    same(graph, "conv3", Options(max_padding=2), grid)
