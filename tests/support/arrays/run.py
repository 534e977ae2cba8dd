"""What the fixture ``run`` of tests/scheduler gives: mismatches of a schedule that the generated engine executes."""

from __future__ import annotations

from collections.abc import Callable

from boards.board import load

BOARD = load("zcu104")

Run = Callable[..., int]
