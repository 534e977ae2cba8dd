"""The choices of a block, and the choices that pruning removes, compared with an exhaustive search."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np

from boards.board import load
from cnn.datatype import DataType
from cnn.maps import Padding, Shape
from cnn.ops import MaxPool
from scheduler.streaming import graph as g
from scheduler.streaming.search import candidates
from scheduler.streaming.search.candidates import Options, divisors, lanes_of, paddings
from scheduler.streaming.search.program import Row, _End, _one_of, _tied
from scheduler.streaming.search.prune import Side, needed
from tests.support.cases import cases

ULTRA96, PYNQ = load("ultra96-v2"), load("pynq-z2")


# --- numbers ----------------------------------------------------------------------------------------------------------


@cases("value", [1, 2, 7, 12, 36, 64, 97])
def test_divisors_are_all_that_divide(value: int) -> None:
    assert divisors(value) == tuple(n for n in range(1, value + 1) if n * (value // n) == value)


@cases("most", [0, 1, 3, 8])
@cases("channels", [1, 2, 3, 7, 10, 16])
def test_lanes_of_channels_need_the_least_padding_per_fold_count(channels: int, most: int) -> None:
    """Each number of folds has the fewest lanes that reach it, unless they need more padding than allowed."""
    wanted = set()
    for folds in range(1, channels + 1):
        count = next(count for count in range(1, channels + 1) if count * folds >= channels)
        if count * folds - channels <= most:
            wanted.add((count, count * folds - channels))
    wanted |= {(count, 0) for count in range(1, channels + 1) if channels % count == 0}
    assert lanes_of(channels, most) == tuple(sorted(wanted))
    assert paddings(channels, most) == tuple(sorted({pad for _, pad in wanted}))
    assert paddings(channels, most)[0] == 0


def place(op: Any, **numbers: Any) -> candidates._Place:
    """Return the place of a block that reads and writes maps of 4 × 12 pixels, between two other blocks."""
    usual = {"read": Shape(6, 4, 12), "written": Shape(6, 4, 12), "options": Options(), "board": ULTRA96, "bits": 4}
    given = SimpleNamespace(**{**usual, **numbers})
    block: Any = SimpleNamespace(
        name="it", op=op, inputs=[SimpleNamespace(block=1)], outputs=[SimpleNamespace(shape=given.written)]
    )
    others = [SimpleNamespace(op=g.Source(), inputs=[]), SimpleNamespace(op=MaxPool(2, 2, Padding()), inputs=[])]
    graph: Any = SimpleNamespace(
        blocks=[*others, block],
        type_of=lambda _: SimpleNamespace(shape=given.read, datatype=DataType(given.bits, False)),
    )
    return candidates._Place(graph, 2, given.board, given.options)


@cases("most", [1, 2, 3, 4, 8, 16])
@cases("stride", [1, 2])
@cases("read, written", [(12, 12), (12, 6), (16, 8), (6, 3), (16, 12), (7, 7)])
def test_pixel_counts_divide_both_widths(most: int, stride: int, read: int, written: int) -> None:
    """The counts are powers of two. A strided block writes 1/stride of the pixels that it reads."""
    counts = place(
        None, read=Shape(1, 1, read), written=Shape(1, 1, written), options=Options(max_pixels=most)
    ).pixel_counts(stride)
    wanted = [
        m for m in (2, 4, 8, 16) if m <= most and m % stride == 0 and read % m == 0 and written % (m // stride) == 0
    ]
    assert counts == [1, *wanted]


def test_memories_follow_the_board_and_the_options() -> None:
    embedded = [("embedded", "lutram"), ("embedded", "bram"), ("decoupled", "bram")]
    zcu = load("zcu104")
    assert place(None).map_rams == place(None, board=PYNQ).map_rams == ["lutram", "bram"]
    assert place(None, board=zcu).map_rams == ["lutram", "bram", "uram"]
    for board, options, memories in (
        (PYNQ, Options(), embedded),
        (zcu, Options(), [*embedded, ("decoupled", "uram")]),
        (zcu, Options(uram_weights=False), embedded),
        (PYNQ, Options(external=("it",)), [("external", "auto")]),
        (zcu, Options(external=("it",)), [("external", "auto"), ("external", "uram")]),
        (zcu, Options(external=("other",)), [*embedded, ("decoupled", "uram")]),
    ):
        assert place(None, board=board, options=options).weight_memories == memories


@cases("bits, weights, kinds", [(4, 4, 2), (1, 4, 1), (4, 1, 1), (2, 2, 2), (1, 1, 1)])
def test_multipliers_of_one_bit_operands_are_luts(bits: int, weights: int, kinds: int) -> None:
    assert place(None, bits=bits).multipliers(weights) == ["dsp", "lut"][2 - kinds :]


def test_read_padding_at_the_ends_needs_pad_ends() -> None:
    def padding(first: Any, options: Options) -> int:
        here = place(None, options=options)
        here.graph.blocks[1].op = first  # type: ignore[misc]
        here.graph.blocks[1].inputs.append(SimpleNamespace(block=0))  # type: ignore[attr-defined]
        return here.read_padding

    pool, split = MaxPool(2, 2, Padding()), g.Duplicate(2)
    assert padding(pool, Options(max_padding=3)) == 3
    assert padding(g.Source(), Options(max_padding=3)) == 0
    assert padding(split, Options(max_padding=3)) == 0
    assert padding(split, Options(max_padding=3, pad_ends=True)) == 3
    assert Options() == Options(0, False, 2, (), True)


# --- which choices are removed ----------------------------------------------------------------------------------------


def sides(random: Any, choices: int, resources: int) -> list[Side]:
    """Return two streams with three kinds of words each. Some pairs of words cannot be converted (infinite cost)."""
    made = []
    for _ in range(2):
        between = random.integers(0, 4, (3, 4, resources)).astype(float)
        between[random.random((3, 4)) < 0.3] = np.inf
        made.append(Side(random.integers(0, 3, choices), between))
    return made


def test_extra_cost_of_other_words_is_the_most_over_neighbours() -> None:
    """The extra cost of other words is the largest difference over all words of the neighbour."""
    random = np.random.default_rng(1)
    for _ in range(30):
        (side, _), count = sides(random, 5, 2), 3
        extra = side.extra()
        for other, own, resource in product(range(count), range(count), range(2)):
            meets = [p for p in range(4) if np.isfinite(side.between[own, p]).all()]
            wanted = max(
                (side.between[other, p, resource] - side.between[own, p, resource] for p in meets), default=0.0
            )
            assert extra[other, own, resource] == wanted


def test_needed_removes_choices_that_another_dominates() -> None:
    """A choice is removed if a kept choice of less area uses no more of any resource with all neighbours.

    With each pair of neighbours, one of the best choices is kept.
    """
    random = np.random.default_rng(2)
    left_out = 0
    for _ in range(40):
        usage = random.integers(0, 6, (7, 2)).astype(float)
        area, ends = usage.sum(axis=1).astype(np.int64), sides(random, 7, 2)
        staying: list[int] = []
        for choice in sorted(range(7), key=lambda c: (area[c], c)):
            rivals = [
                rival
                for rival in staying
                if all(
                    usage[rival, r] + sum(end.extra()[end.words[rival], end.words[choice], r] for end in ends)
                    <= usage[choice, r]
                    for r in range(2)
                )
            ]
            if not rivals:
                staying.append(choice)
        assert needed(usage, area, ends) == sorted(staying)
        left_out += 7 - len(staying)
        for neighbours in product(range(4), repeat=2):
            totals = [
                usage[c]
                + sum((end.between[end.words[c], p] for end, p in zip(ends, neighbours, strict=True)), np.zeros(2))
                for c in range(7)
            ]
            for total in totals:
                assert not np.isfinite(total).all() or any((totals[c] <= total).all() for c in staying)
    assert left_out > 20


# --- rows of the program ----------------------------------------------------------------------------------------------


def test_row_from_one_of_selects_one_choice() -> None:
    row = _one_of(5, 3)
    assert (row.columns.tolist(), row.factors.tolist(), row.right) == ([5, 6, 7], [1, 1, 1], 1)


def test_tied_rows_equate_pairs_and_choices_per_word() -> None:
    """The block's choices have the words 3, 9 and 3. The four pairs have the words 3, 9, 3 and 9."""
    end = _End(0, np.array([3, 9]), np.array([3, 9, 3]), np.array([0, 1, 0, 1]))
    rows: list[Row] = list(_tied(end, 10, 20))
    assert [row.columns.tolist() for row in rows] == [[20, 22, 10, 12], [21, 23, 11]]
    assert [row.factors.tolist() for row in rows] == [[1, 1, -1, -1], [1, 1, -1]]
    assert [row.right for row in rows] == [0, 0]
