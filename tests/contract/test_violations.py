"""Tests of a program's rules between words: each is compared with scalar arithmetic on passes near its limits."""

from __future__ import annotations

from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np

from boards.errors import InvalidValueError, MismatchError, RangeError
from contract import violations
from contract.program import FIELDS
from tests.support.host.passes import ARRAYS, MOST, array_of, drawn, scalar


def test_padding_is_a_pixel_or_a_value() -> None:
    for bits, low, high in ((4, -8, 7), (8, -128, 127), (16, -32768, 32767)):
        passes = SimpleNamespace(pixel_input=np.array([1, 0, 1, 0]))
        lowest, highest = violations.padding(passes, array_of(bits=bits))
        assert lowest.tolist() == [0, low, 0, low]
        assert highest.tolist() == [255, high, 255, high]


def _few(array: Any, **numbers: int) -> bool:
    fields = {"pool_stride": 1, "kernel_height": 3, "kernel_groups": 2, "out_height": 1, "steps": 1, "out_width": 1}
    fields |= {"channel_tiles": 1, "burst_words": 1, "bursts": 1, "pool_size": 1, "upscale": 1, **numbers}
    fields = {"save_width": fields["out_width"], "in_blocks": 3, "depthwise": 0, **fields}
    passes = SimpleNamespace(**{name: np.array([value], np.int64) for name, value in fields.items()})
    return bool(violations.few_steps(passes, array)[0])


def test_step_limit_refuses_more_steps_than_the_engine_counts() -> None:
    """Check the greatest number of steps that the engine can count, and the next one.

    A layer that compares values takes one step per place of its window."""
    for array in ARRAYS:
        few = partial(_few, array)
        assert few(out_width=MOST)
        assert not few(out_width=MOST + 1)
        assert few(out_width=MOST, out_height=array.rows)
        assert not few(out_width=MOST, out_height=array.rows + 1)
        assert few(out_width=1 << 15, channel_tiles=1 << 14, steps=3)
        assert not few(out_width=1 << 15, channel_tiles=1 << 14, steps=4)
        assert few(out_width=MOST // 6, pool_stride=0)
        assert not few(out_width=MOST // 6 + 1, pool_stride=0)
        assert few(out_width=MOST // 2, pool_stride=-1, kernel_height=2, kernel_groups=1)
        assert not few(out_width=MOST // 2 + 1, pool_stride=-1, kernel_height=2, kernel_groups=1)
        assert few(save_width=MOST, out_width=MOST // 3, kernel_height=1, kernel_groups=1, steps=1)
        assert not few(save_width=MOST // 3 * 3 + 3, out_width=MOST // 3 + 1, kernel_height=1, kernel_groups=1)
        assert few(burst_words=256, bursts=2)
        assert not few(burst_words=171, bursts=3)
        assert not few(burst_words=513)


def related(p: Any, array: Any) -> dict[str, bool]:
    """Return whether one pass keeps each rule, by the rule's description. The order is the order of the rules."""
    kept = p.save_width * (1 if p.inputs_resident else p.channel_tiles)
    waits = p.pool_size == 2 and p.row_tiles >= 2 and (p.pool_stride == 1 or array.rows % 2 != 0)
    usual = p.positions if p.stride == 1 else p.stride
    own_blocks = p.depthwise or array.columns % array.lanes
    by_row = own_blocks and p.kernel_height == p.stride and p.kernel_groups == 1 and p.advance == 1
    least = p.limits % (1 << 16)
    column_step = 1 if p.stride == 1 else p.advance
    farthest = (p.out_width - 1) * column_step - p.pad_left + sum(p.group_pixels for _ in range(p.kernel_groups - 1))
    lone = p.kernel_groups == 1 or p.pool_stride in (-1, 0)
    reaches = (p.in_width == 1 or farthest >= p.in_width - 1) and farthest - (p.in_width - 1) <= 4095
    return {
        "the same number of words for every channel block": p.block_words * p.in_blocks == p.row_words,
        "whole slots within": p.last_slot % p.slot_words == 0 and p.last_slot + p.slot_words <= array.row_depth,
        "sums that fit": not waits or kept <= array.kept_depth,
        "of a map buffer": not p.in_buffer or p.stride in range(1, array.map_stride + 1),
        "0 of pixels": not p.pixel_input or not p.depthwise,
        "at most 63 of pixels": not p.pixel_input or p.pad_left < 64,
        "at most 1 without a fused pool": p.pool_size == 2 or p.pool_stride in (-1, 0, 1),
        "at least 1 with a fused pool": p.pool_size == 1 or p.pool_stride in (1, 2),
        "at least 1 of pixels": not p.pixel_input or p.pool_stride in (1, 2),
        "at least 1, or 0 of one place": p.stride != 0 or p.in_height == p.in_width == p.kernel_height == 1,
        "two places, multiplied": p.pool_stride != -1 or (p.kernel_height, p.kernel_groups) in ((1, 2), (2, 1)),
        "0 if the engine compares windows": p.pool_stride != 0 or array.windows == 1,
        "advance": p.advance == usual or bool(by_row) or (p.stride, p.advance) == (4, 2),
        "1 for a pool": p.upscale == 1 or p.pool_size == p.pool_stride == 1,
        "1 of a lone column, else to the last column that is read": p.pixel_input
        or (p.group_pixels == 1 if lone else reaches),
        "a least value of 0 or less": least == 0 or least > 0x7FFF,
    }


def test_relations_of_random_passes_equal_scalar_arithmetic() -> None:
    for array, seed in product(ARRAYS, (2, 3)):
        passes = drawn(array, seed, 200)
        rules = list(violations.relations(passes, array))
        wanted = [list(related(scalar(passes, index), array).values()) for index in range(200)]
        assert len(rules) == len(wanted[0])
        sentences = list(related(scalar(passes, 0), array))
        for number, rule in enumerate(rules):
            ours = np.broadcast_to(rule.holds, 200).tolist()
            assert ours == [row[number] for row in wanted], f"{rule.field}: {sentences[number]}"
            assert True in ours


def test_stride_of_0_reads_one_row_and_one_column() -> None:
    ways = list(product((0, 1), (1, 2), (1, 2), (1, 2)))
    passes = drawn(ARRAYS[2], 4, len(ways))
    passes.stride, passes.in_height, passes.in_width, passes.kernel_height = np.array(ways, np.int64).T
    passes.in_buffer[:] = 0
    flags = [rule.holds for rule in violations.relations(passes, ARRAYS[2]) if rule.field == "stride"]
    both = np.logical_and.reduce(flags).tolist()
    assert both == [stride == 1 or sides == (1, 1, 1) for stride, *rest in ways for sides in [tuple(rest)]]


def test_ranges_include_their_ends_and_refuse_values_beyond() -> None:
    for array in ARRAYS[:2]:
        bounds = {field.name: pair for field in FIELDS if (pair := field.range(array)) is not None}
        for end, shift in product((0, 1), (-1, 0, 1)):
            passes = drawn(array, 9, 4)
            for name, pair in bounds.items():
                setattr(passes, name, np.full(4, pair[end] + shift))
            passes.pixel_input = np.array((0, 1, 0, 1))
            passes.around = violations.padding(passes, array)[end] + shift
            holds = {rule.field: bool(np.all(rule.holds)) for rule in violations.ranges(passes, array)}
            assert list(holds) == [*bounds, "around"]
            inside = shift == 0 or (shift > 0) == (end == 0)
            single = {name for name, (low, high) in bounds.items() if low == high}
            assert {holds[name] for name in holds if name != "pixel_input" and not (inside and name in single)} == {
                inside
            }


def test_ranges_depend_on_the_geometry() -> None:
    for numbers, name, bounds in (
        ({"map_products": True, "windows": False}, "pool_stride", (-1, 2)),
        ({"map_products": False, "windows": True}, "pool_stride", (0, 2)),
        ({"map_products": False, "windows": False}, "pool_stride", (1, 2)),
        ({"upscale": 1}, "upscale", (1, 1)),
        ({"upscale": 2}, "upscale", (1, 2)),
        ({"map_depth": 0}, "in_buffer", (0, 0)),
        ({"map_depth": 1}, "in_buffer", (0, 2)),
        ({"map_depth": 0}, "out_buffer", (0, 0)),
        ({"map_depth": 1}, "out_buffer", (0, 2)),
        ({"bits": 4}, "value_words", (1, 4)),
        ({"bits": 16}, "value_words", (1, 1)),
        ({"rows": 3}, "out_turn", (0, 2)),
    ):
        (field,) = (field for field in FIELDS if field.name == name)
        assert field.range(array_of(**numbers)) == bounds, (numbers, name)


def test_violation_names_the_first_pass_of_each_rule() -> None:
    words = SimpleNamespace(steps=np.array([4, 5, 6]), ahead=np.array([1, 1, 1]))
    even = violations.Rule("steps", words.steps % 2 == 0, "even")
    none = violations.Rule("ahead", words.ahead > 0, "at least 1")
    two = violations.Rule("ahead", words.ahead == np.array([1, 1, 2]), np.array([1, 1, 2]))
    found = list(violations.violations_of((even, none, two), words))
    assert [violation.number for violation in found] == [1, 2]
    assert vars(found[0].error) == vars(InvalidValueError("steps", 5, "even"))
    assert vars(found[1].error) == vars(MismatchError("ahead", 1, 2))


def test_refusal_class_depends_on_the_requirement() -> None:
    low, high = np.array([1, 2, 3]), np.array([7, 8, 9])
    for required, kind, fields in (
        ("even", InvalidValueError, {"required": "even"}),
        (low, MismatchError, {"expected": 2}),
        ((low, high), RangeError, {"low": 2, "high": 8}),
        ((0, high), RangeError, {"low": 0, "high": 8}),
    ):
        error = violations.refusal("steps", 5, required, 1)
        assert (type(error), vars(error)) == (kind, {"what": "steps", "got": 5, **vars(error), **fields})
