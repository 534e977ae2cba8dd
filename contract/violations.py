"""Rules for the words of a program on an array: ranges, formulas, and relations between words.

A program that was read from a file is checked before anything executes it. host/contract/program.py has further rules
of the same form, for the maps and images of the program's design.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import numpy.typing as npt

from boards.errors import InvalidValueError, MismatchError, RangeError, SystolicError
from contract.formulas import Numbers, Words, compares, divide_up, spread, taps
from contract.geometry import Geometry
from contract.program import MAX_INT32, MAX_PADDING, fields_of, names_of

MAX_PIXEL_PADDING = 63
"""Limit for the columns of padding on the left of pixels."""

LOWEST = "a pair whose least value, in the low 16 bits, is 0 or negative"
"""The requirement of the word ``limits``."""

Flags = npt.NDArray[np.bool_]
Required = str | Numbers | tuple[int | Numbers, int | Numbers]
"""The requirement of a field: a condition in words, one number per pass, or a lower and an upper bound."""


@dataclass(frozen=True, eq=False)
class Rule:
    """A requirement of one word of the layer program, with its result for every pass.

    Attributes:
        field: The name of the field.
        holds: Whether the rule holds, for each pass.
        required: The requirement, for an error.
    """

    field: str
    holds: Flags
    required: Required


@dataclass(frozen=True, eq=False)
class Violation:
    """A pass that breaks a rule: its number in the program, and the error that names the word and the requirement."""

    number: int
    error: SystolicError


def read(words: npt.NDArray[np.uint32], geometry: Geometry) -> Words:
    """Return the words of a program [passes, words of a pass] as attributes: per name an int64 array over the
    passes."""
    columns = words.view(np.int32).astype(np.int64).T
    return SimpleNamespace(**dict(zip(names_of(geometry), columns, strict=False)))


def violations(words: Words, geometry: Geometry) -> Iterator[Violation]:
    """Yield, for each broken rule of a layer program, the first pass that breaks it.

    Stop at the first violation: each rule may rely on the rules before it, and a later one may divide by 0.

    Args:
        words: The words of the program, as ``read`` returns them.
        geometry: The geometry of the array.
    """
    return violations_of(rules(words, geometry), words)


def violations_of(rules: Iterable[Rule], words: Words) -> Iterator[Violation]:
    """Yield, for each of ``rules`` that is broken, the first pass that breaks it."""
    for rule in rules:
        numbers = getattr(words, rule.field)
        wrong = np.flatnonzero(~np.broadcast_to(rule.holds, len(numbers)))
        if wrong.size:
            number = int(wrong[0])
            yield Violation(number, refusal(rule.field, int(numbers[number]), rule.required, number))


def refusal(field: str, got: int, required: Required, number: int) -> SystolicError:
    """Return the error for the word ``field``, which is ``got`` in pass ``number`` although ``required`` asks
    otherwise.

    It is a MismatchError if one number is required, a RangeError for a range, an InvalidValueError for a condition.
    """
    if isinstance(required, str):
        return InvalidValueError(field, got, required)
    if isinstance(required, tuple):
        low, high = (int(bound if isinstance(bound, int) else bound[number]) for bound in required)
        return RangeError(field, got, low, high)
    return MismatchError(field, got, int(required[number]))


def rules(words: Words, geometry: Geometry) -> Iterator[Rule]:
    """Yield the rules for a layer program on an array. Each rule may rely on the rules before it."""
    yield from ranges(words, geometry)
    yield Rule("array_steps", few_steps(words, geometry), f"at most {MAX_INT32}, for rows that fit row_depth")
    for field in fields_of(geometry):
        if field.formula is not None:
            numbers = field.formula(words, geometry)
            yield Rule(field.name, getattr(words, field.name) == numbers, numbers)
    yield from relations(words, geometry)


def ranges(words: Words, geometry: Geometry) -> Iterator[Rule]:
    """Yield a range rule for each word of a pass that has bounds."""
    for field in fields_of(geometry):
        bounds = field.range(geometry)
        if bounds is not None:
            values = getattr(words, field.name)
            yield Rule(field.name, (bounds[0] <= values) & (values <= bounds[1]), bounds)
    lowest, highest = padding(words, geometry)
    yield Rule("around", (lowest <= words.around) & (words.around <= highest), (lowest, highest))


def padding(p: Words, g: Geometry) -> tuple[Numbers, Numbers]:
    """Return, per pass, the lowest and the highest allowed padding value: of a uint8 pixel, or of a signed map
    value."""
    values, pixels = 1 << (g.bits - 1), p.pixel_input == 1
    return np.where(pixels, 0, -values), np.where(pixels, 255, values - 1)


def few_steps(p: Words, g: Geometry) -> Flags:
    """Return, per pass, whether the engine can count its steps (cycles) in 32 bits and buffer its input rows.

    The products are computed in floating point, which cannot overflow. In passes that keep this rule, the integers of
    the formulas cannot overflow either.
    """
    each = np.where(compares(p), p.kernel_height.astype(np.float64) * p.kernel_groups, 1.0)
    row_tiles, steps = np.ceil(p.out_height / g.rows), p.steps * each * spread(p)
    words = p.burst_words.astype(np.float64) * p.bursts
    few = (row_tiles * p.out_width * p.channel_tiles * steps <= MAX_INT32) & (words <= g.row_depth)
    return np.asarray(few, np.bool_)


def relations(words: Words, geometry: Geometry) -> Iterator[Rule]:
    """Yield the rules on relations between several words of a pass that no formula expresses."""
    yield from _buffers(words, geometry)
    yield from _windows(words, geometry)


def _buffers(p: Words, g: Geometry) -> Iterator[Rule]:
    """Yield the rules that keep a pass within the row buffer, the stored sums of its pool and the map buffers."""
    straddles = (p.pool_size == 2) & (p.row_tiles > 1) & ((p.pool_stride == 1) | (g.rows % 2 == 1))
    kept_sums = np.where(straddles, p.save_width * np.where(p.inputs_resident, 1, p.channel_tiles), 0)
    whole_slots = (p.last_slot % p.slot_words == 0) & (p.last_slot + p.slot_words <= g.row_depth)
    yield Rule("row_words", p.block_words * p.in_blocks == p.row_words, "a multiple of in_blocks")
    yield Rule("last_slot", whole_slots, f"the start of a whole slot within row_depth = {g.row_depth}")
    yield Rule("save_width", kept_sums <= g.kept_depth, f"a width whose stored sums fit kept_depth = {g.kept_depth}")
    kept = (p.stride >= 1) & (p.stride <= g.map_stride)
    yield Rule("stride", (p.in_buffer == 0) | kept, f"1…{g.map_stride} in a pass that reads a map buffer")


def _windows(p: Words, g: Geometry) -> Iterator[Rule]:
    """Yield the rules between kernel window, pool, stride and padding of a pass."""
    pixels = p.pixel_input == 1
    yield Rule("depthwise", ~pixels | (p.depthwise == 0), "0 in a pass that reads pixels")
    few = ~pixels | (p.pad_left <= MAX_PIXEL_PADDING)
    yield Rule("pad_left", few, f"at most {MAX_PIXEL_PADDING} in a pass that reads pixels")
    yield Rule("pool_stride", (p.pool_size == 2) | (p.pool_stride <= 1), "at most 1 without a fused pool")
    yield Rule("pool_stride", (p.pool_size == 1) | (p.pool_stride >= 1), "at least 1 with a fused pool")
    yield Rule("pool_stride", ~pixels | (p.pool_stride >= 1), "at least 1 in a pass that reads pixels")
    one_place = (p.in_height == 1) & (p.in_width == 1) & (p.kernel_height == 1)
    positive = "at least 1, or 0 in a pass that reads one position for all outputs"
    yield Rule("stride", (p.stride > 0) | one_place, positive)
    multiplied = (p.pool_stride >= 0) | (taps(p) == 2)
    yield Rule("pool_stride", multiplied, "at least 0, or -1 for a kernel of two positions")
    yield Rule("pool_stride", (p.pool_stride != 0) | (g.windows == 1), "0 only in an engine with windows")
    usual = np.where(p.stride == 1, p.positions, p.stride)
    own_blocks = (p.depthwise == 1) | (g.columns % g.lanes > 0)
    one_column = (p.kernel_groups == 1) | (p.group_pixels == 0)
    rows_in_turn = own_blocks & (p.kernel_height == p.stride) & one_column & (p.advance == 1)
    rows_apart = (p.stride == 4) & (p.advance == 2)
    yield Rule("advance", (p.advance == usual) | rows_in_turn | rows_apart, usual)
    yield Rule("upscale", (p.upscale == 1) | ((p.pool_size == 1) & (p.pool_stride == 1)), "1 in a pass with a pool")
    nearest, farthest = _steps_of_columns(p)
    same_place = (p.group_pixels == 0) & (p.kernel_groups > 1) & ~compares(p)
    yield Rule(
        "group_pixels",
        pixels | same_place | ((nearest <= p.group_pixels) & (p.group_pixels <= farthest)),
        (nearest, farthest),
    )
    lowest = p.limits & 0xFFFF
    yield Rule("limits", (lowest == 0) | (lowest >= 1 << 15), LOWEST)


def _steps_of_columns(p: Words) -> tuple[Numbers, Numbers]:
    """Return, per pass, the least and the greatest allowed input columns between two kernel columns of a map.

    The window of the last output must reach the last input column, and at most MAX_PADDING columns beyond it.
    """
    step = np.where(p.stride == 1, 1, p.advance)
    reach = p.in_width - 1 + p.pad_left - (p.out_width - 1) * step
    steps = np.maximum(1, p.kernel_groups - 1)
    least = np.where(p.in_width > 1, np.maximum(1, divide_up(reach, steps)), 1)
    greatest = (reach + MAX_PADDING) // steps
    alone = (p.kernel_groups == 1) | compares(p)
    return np.where(alone, 1, least), np.where(alone, 1, greatest)
