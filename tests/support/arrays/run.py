"""The type of the fixture ``run`` of tests/scheduler, which returns the mismatches of an executed schedule."""

from __future__ import annotations

from collections.abc import Callable

from boards.board import load

BOARD = load("zcu104")

Run = Callable[..., int]
