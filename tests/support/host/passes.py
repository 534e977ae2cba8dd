"""Passes of programs that are drawn near the edges of their rules."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from contract.geometry import Geometry
from contract.program import FIELDS, complete

MOST = (1 << 31) - 1


def array_of(**numbers: Any) -> Geometry:
    """Return an array of five rows of 16 columns and 8 lanes of 8 bits that has everything but added maps."""
    usual = {
        **{"rows": 5, "columns": 16, "lanes": 8, "bits": 8, "row_depth": 512, "weight_depth": 256, "kept_depth": 40},
        **{"chunk": 6, "channel_tiles": 7, "map_ports": 2, "weight_ports": 2, "weight_words": 1, "map_depth": 300},
        **{"windows": 1, "upscale": 2, "table_depth": 256, "late_offsets": 0, "map_products": 1},
        "map_stride": 1,
    }
    return Geometry(**{**usual, **numbers})


ARRAYS = [
    array_of(),
    array_of(
        rows=4, bits=4, lanes=16, columns=32, map_depth=0, windows=False, map_products=False, upscale=1, weight_words=2
    ),
    array_of(windows=False, map_stride=3),
    array_of(rows=4, map_stride=2),
    array_of(rows=3, bits=16, lanes=4, columns=8, map_ports=4, weight_ports=1, chunk=1),
    array_of(map_products=False),
    array_of(columns=12),
]
"""The columns of the last one end within a block of eight channels."""


def drawn(array: Any, seed: int, count: int = 60) -> Any:
    """Return passes of small numbers, each field drawn by itself."""
    random = np.random.default_rng(seed)

    def small(low: int, high: int) -> Any:
        return random.integers(low, high + 1, count)

    flags = ("pixel_input", "depthwise", "inputs_resident", "resident")
    fields: dict[str, Any] = {name: small(0, 1) for name in flags}
    in_blocks = small(1, 3)
    fields |= {"in_blocks": in_blocks, "bursts": in_blocks * small(1, 2), "burst_words": small(1, 9)}
    fields |= {name: small(1, 12) for name in ("out_height", "out_width", "in_height", "steps")}
    fields |= {name: small(1, 4) for name in ("kernel_height", "kernel_groups", "out_blocks")}
    fields |= {
        "stride": small(0, 4),
        "in_width": small(1, 2),
        "pool_stride": small(-1, 2),
        "pool_size": small(1, 2),
        "pad_top": small(0, 13),
        "in_turn": small(0, array.rows - 1),
        "out_turn": small(0, array.rows - 1),
    }
    fields |= {
        "pad_left": random.choice([-1, 0, 62, 63, 64, 65], count),
        "advance": small(1, 4),
        "group_pixels": small(1, 3),
    }
    fields |= {"channel_tiles": small(1, 3), "upscale": small(1, 2), "save_width": small(1, 25)}
    fields |= {"in_buffer": small(0, 2) * (random.random(count) < 0.5), "out_buffer": small(0, 2) * small(0, 1)}
    fields |= {"limits": random.choice([0, 1, (1 << 15) - 1, 1 << 15, 0xFFFF, (1 << 16) + 7, (9 << 16)], count)}
    fields |= {"weights_base": small(0, 40), "requantiser_base": small(0, 60), "value_words": small(1, 2)}
    fields |= {"in_base": small(0, 30), "out_base": small(0, 30), "in_row_pitch": small(1, 20)}
    fields |= {"out_row_pitch": small(1, 20), "in_block_pitch": small(0, 9), "out_block_pitch": small(1, 9)}
    fields |= {name: small(0, 1) for name in ("overlap", "last_slot", "around")}
    given = {name: np.asarray(values, np.int64) for name, values in fields.items()}
    passes = SimpleNamespace(**complete(given, replace(array, added_maps=False)))
    for field in FIELDS:
        if field.name in ("in_turn", "group_pixels") and field.formula is not None:
            setattr(passes, field.name, field.formula(passes, array))
    passes.block_words = passes.block_words + (random.random(count) < 0.1)
    slots = passes.slot_words * small(0, 6)
    passes.last_slot = slots + random.choice([0, 0, 0, 1], count)
    return passes


def scalar(passes: Any, index: int) -> Any:
    """Return one of the passes in Python's own integers."""
    return SimpleNamespace(**{name: int(values[index]) for name, values in vars(passes).items()})


def times(length: int, step: int) -> int:
    """Return the number of steps that cover ``length``."""
    return len(range(0, length, step))


def region(offset: int, size: int, buffer: int | None = None, place: int | None = None, turn: int | None = None) -> Any:
    return SimpleNamespace(offset=offset, bytes=size, map_buffer=buffer, place=place, turn=turn)
