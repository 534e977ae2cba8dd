"""Options that would be without effect, or out of range: each is refused with what to do."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from boards.errors import GenerateError, ScheduleError, SimulationError
from cnn import zoo

FOLDING: Mapping[str, Any] = {
    "fps": None,
    "folding": "exact",
    "deadline": 60.0,
    "effort": 200,
    "attempts": 2,
    "max_padding": 0,
    "max_pixels": 2,
    "pad_ends": False,
    "external": [],
    "estimated_fifos": False,
}
"""The options of a folding, and what they are where they are not given."""

TRACED: Mapping[str, Any] = {"timeline": None, "fifos": False, "clock": None, "ddr_efficiency": None}
"""The options of ``simulate --cycles``."""


def _given(options: argparse.Namespace, defaults: Mapping[str, Any]) -> list[str]:
    return [f"--{name.replace('_', '-')}" for name, value in defaults.items() if getattr(options, name) != value]


def _is(names: list[str]) -> str:
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"


def check_generate(options: argparse.Namespace) -> None:
    """GenerateError where an option is of the other style, or NET is no file that holds a network."""
    check_network(options.network)
    foreign = _given(options, FOLDING)
    if options.style == "systolic" and foreign:
        raise GenerateError(f"{_is(foreign)} of the streaming style: add --style streaming")


def check_network(name: str) -> None:
    """GenerateError where NET is a path with another ending than a network file's."""
    if name in zoo.names() or name.endswith((".cfg", ".json")):
        return
    if Path(name).suffix or Path(name).exists():
        raise GenerateError(
            f"{name} holds no network: NET is a darknet .cfg, an exported .json, or a built-in name "
            f"({', '.join(zoo.names())})"
        )


def check_simulate(options: argparse.Namespace) -> None:
    """SimulationError where an option has no effect."""
    traced = _given(options, TRACED)
    if traced and not options.cycles:
        raise SimulationError(f"{_is(traced)} of the cycle trace: add --cycles")
    if options.layer is not None and options.timeline is None:
        raise SimulationError("--layer chooses what --timeline draws: add --timeline FILE.png")
    native = _given(options, {"ap_int": False, "golden": False})
    if options.cycles and native:
        raise SimulationError(
            f"--cycles traces the native code alone, {_is(native)} not of it; leave one out, and run simulate twice"
        )
    if options.timeline is not None and options.timeline.is_dir():
        raise SimulationError(f"--timeline {options.timeline} is a folder; name a FILE.png in it")
    check_efficiency(options.ddr_efficiency)


def check_efficiency(share: float | None) -> None:
    if share is not None and not 0 < share <= 1:
        raise ScheduleError(f"--ddr-efficiency is a share of the DDR's peak, above 0 and at most 1, not {share:g}")


def check_run(options: argparse.Namespace) -> None:
    """SimulationError where a share is none."""
    for name in ("threshold", "overlap"):
        share = getattr(options, name)
        if not 0 <= share <= 1:
            raise SimulationError(f"--{name} is 0…1, not {share:g}")


def check_search(options: argparse.Namespace) -> None:
    """ScheduleError where the search cannot start."""
    check_network(options.network)
    if options.workers < 1:
        raise ScheduleError(f"--workers counts processes, 1 or more, not {options.workers}")
