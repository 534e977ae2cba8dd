"""The area of resources, and the limits that a budget sets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from boards.board import load
from scheduler.hardware.budget import Budget
from scheduler.streaming.area.budget import area, available, fits, limits
from scheduler.streaming.area.usage import StreamingUsage

ULTRA96, PYNQ = load("ultra96-v2"), load("pynq-z2")


def test_area_is_the_sum_of_the_fractions_of_the_board() -> None:
    assert area(available(PYNQ), PYNQ) == pytest.approx(3e9, rel=1e-4)  # LUTs, DSPs and BRAMs; the board has no URAM
    half = StreamingUsage(lut=PYNQ.resources.lut // 2, dsp=22)
    assert area(half, PYNQ) == pytest.approx(0.6e9, rel=1e-4)


def test_limits_bound_every_resource() -> None:
    limit = limits(PYNQ, Budget(lut=0.5, bram=0.5))
    assert (limit.lut, limit.bram18, limit.dsp) == (26600, 140, 213)
    assert fits(limit, limit)
    for name in ("lut", "lutram", "dsp", "bram18", "uram"):
        assert not fits(replace(limit, **{name: getattr(limit, name) + 1}), limit)
