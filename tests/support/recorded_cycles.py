"""Cycles on record in tests/golden/cycles.json: of the model, and counted of engines in SystemVerilog.

A case has a line of its own, so that a change shows as the lines of the cases that it changes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parents[1] / "golden" / "cycles.json"
COUNTED, MODELLED = "counted", "modelled"


def recorded(kind: str) -> dict[str, Any]:
    """Return the cases of COUNTED or MODELLED by name."""
    cases: dict[str, Any] = json.loads(RECORDED.read_text("utf-8"))[kind]
    return cases


def record(kind: str, name: str, values: object) -> None:
    """Write a case of COUNTED or MODELLED."""
    every = json.loads(RECORDED.read_text("utf-8"))
    every[kind][name] = values
    parts = []
    for kind, cases in sorted(every.items()):
        lines = [f"{json.dumps(case)}: {json.dumps(numbers)}" for case, numbers in sorted(cases.items())]
        parts.append(f"{json.dumps(kind)}: {{\n" + ",\n".join(lines) + "\n}")
    RECORDED.write_text("{\n" + ",\n".join(parts) + "\n}\n", "utf-8")
