"""The fields of a residual map in a pass: each rule against integer arithmetic, near its limits."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np

from host.contract import program
from tests.support.host.passes import MOST, array_of, drawn, region, scalar, times

ARRAY = array_of(added_maps=True)
EACH = 150
"""Passes per layer."""


def adding(node: int, output: Any, added: int | None) -> Any:
    first = (node - 1) * EACH
    return SimpleNamespace(
        node=node, output=output, input_node=0, last_input_node=None, added_node=added, first_pass=first,
        last_pass=first + EACH - 1,
    )  # fmt: skip


def manifest(batch: int = 1) -> Any:
    """Return layers that add a map in DDR, a map on chip, or nothing. Words have 8 bytes."""
    maps = (region(160, 640), region(80, 400, 1), region(0, 320), region(240, 80, 1), region(800, 80))
    layers = [adding(number, output, (None, None, 1, 2, None)[number - 1]) for number, output in enumerate(maps, 1)]
    return SimpleNamespace(layers=layers, batch=batch, word_bytes=8, array=ARRAY)


def passes(seed: int) -> Any:
    random = np.random.default_rng(seed)
    count = 5 * EACH
    p = drawn(ARRAY, seed, count)
    nothing = np.repeat([True, True, False, False, True], EACH)
    p.added_base = random.integers(0, 40, count) * (~nothing | (random.random(count) < 0.2))
    p.added_row_pitch = random.integers(0, 12, count) * (~nothing | (random.random(count) < 0.2))
    p.added_buffer = np.where(
        random.random(count) < 0.3, random.integers(0, 3, count), np.repeat([0, 0, 0, 1, 0], EACH)
    )
    rows = -(-p.out_height // np.maximum(1, p.pool_stride))
    words = np.where(nothing, 0, rows * p.out_blocks * p.save_width)
    p.added_words = words + random.choice([0, 0, 0, 1, -1], count)
    p.added_shift = random.choice([0, 1, 47, 48, 1 << 16, (1 << 16) + 3, 0xFFFF], count) * ~(
        nothing & (random.random(count) < 0.7)
    )
    p.added_limits = random.choice([-1, 0, 1, 0x7FFF, 0x8000, 0xFFFF, 0x70000, 0x70001, 0x78000], count)
    return p


def added(p: Any, layer: Any, whole: Any, depth: int) -> list[tuple[str, bool]]:
    """Return the field of each rule and whether one pass keeps the rule, computed from every row that the pass adds."""
    nothing = layer.added_node is None
    own: Any = None if nothing else whole.layers[layer.added_node - 1].output
    rows = times(p.out_height, max(1, p.pool_stride))
    words = 0 if nothing else sum(p.save_width for _ in range(rows) for _ in range(p.out_blocks))
    buffer = 0 if nothing else own.map_buffer or 0
    last = max(
        p.added_base + (y // ARRAY.rows if buffer else y) * p.added_row_pitch + block * p.out_block_pitch + p.save_width
        for y in range(rows)
        for block in range(p.out_blocks)
    )
    if nothing:
        lies, steps, shifts = p.added_base == 0, p.added_row_pitch == 0, p.added_shift == 0
    else:
        end = (own.offset + whole.batch * own.bytes) // 8
        lies = last <= depth if buffer else own.offset // 8 <= p.added_base and last <= end
        steps, shifts = p.added_row_pitch >= 1, p.added_shift % (1 << 16) in range(1, 48)
    apart = not buffer or (p.added_buffer != p.in_buffer and p.out_buffer in (0, buffer))
    least = p.added_limits % (1 << 16)
    return [
        ("added_words", p.added_words == words),
        ("added_buffer", p.added_buffer == buffer),
        ("added_buffer", apart),
        ("added_base", lies),
        ("added_row_pitch", steps),
        ("added_words", nothing or (p.value_words, p.upscale) == (1, 1)),
        ("added_shift", shifts),
        ("added_limits", p.added_limits >= 0 and (least == 0 or least >= 0x8000)),
    ]


def test_rules_of_added_maps_equal_scalar_arithmetic() -> None:
    for batch, seed in product((1, 2), (1, 2)):
        whole, p = manifest(batch), passes(seed)
        rules = list(program._added(whole, p))
        wanted = [added(scalar(p, i), whole.layers[i // EACH], whole, ARRAY.map_depth) for i in range(5 * EACH)]
        for number, rule in enumerate(rules):
            ours = np.broadcast_to(rule.holds, 5 * EACH).tolist()
            assert ours == [row[number][1] for row in wanted], f"rule {number}, {rule.field}"
            assert rule.field == wanted[0][number][0]
            assert len(set(ours)) == 2, rule.field


def test_rules_of_added_maps_state_the_required_values() -> None:
    whole, p = manifest(3), passes(4)
    told = [(rule.field, rule.required) for rule in program._added(whole, p)]
    ends: Any = told[3][1]
    first, end = ends
    assert [int(n) for n in first[::EACH]] == [20, 10, 20, 10, 100]
    assert [int(n) for n in end[::EACH]] == [260, 160, 260, 160, 130]
    assert [int(n) for n in told[1][1][::EACH]] == [0, 0, 0, 1, 0]
    words = np.asarray(told[0][1])
    assert not words[: 2 * EACH].any()
    assert words[2 * EACH : 4 * EACH].all()


def test_rules_of_added_maps_limit_addresses_to_31_bits() -> None:
    """Use eleven rows. The rule adds the array's rows, so that it counts 16 row pitches."""
    for pitch, fits in ((MOST // 16, True), (MOST // 16 + 1, False)):
        p = passes(5)
        p.pool_stride[:], p.out_height[:], p.added_row_pitch[:] = 1, 11, pitch
        rules = {rule.field: rule.holds for rule in program._added(manifest(), p)}
        assert bool(np.all(rules["added_row_pitch"][2 * EACH : 4 * EACH])) == fits
