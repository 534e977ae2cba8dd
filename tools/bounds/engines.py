"""The rate of the present engine, as its own schedule search models it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boards.facts import DDR_PROFILES

SECONDS = 60
"""The time after which a search is given up."""


@dataclass(frozen=True)
class EngineRate:
    """Modelled rates of the schedule that a search found, in frames per second.

    Attributes:
        array: Rows × columns × lanes.
        fps: The modelled rate for each DDR profile.
        array_fps: The rate if nothing but the steps of the array took time: the limit of its tiling.
    """

    array: str
    fps: Mapping[str, float]
    array_fps: float


def engine_rate(
    network: str, board: str, bits: int, batch: int, dsp_clock: int, clock_mhz: float | None = None
) -> EngineRate | str:
    """Return the rate of the engine for a network that ``systolic`` can read, or the reason why there is none."""
    command = [sys.executable, "-m", "systolic", "schedule", network, "--board", board, "--bits", str(bits), "--quiet"]
    command += ["--batch", str(batch), "--dsp-clock", str(dsp_clock)]
    command += ["--clock", str(clock_mhz)] if clock_mhz is not None else []
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        try:
            run = subprocess.run(
                [*command, "--json", str(answer)], capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return f"the search takes more than {SECONDS} s"
        return rate_of(json.loads(answer.read_text("utf-8"))) if answer.is_file() else run.stderr.strip()


def rate_of(found: Mapping[str, Any]) -> EngineRate:
    """Return the rates in the JSON object that ``systolic schedule`` wrote."""
    steps = sum(layer["parts"]["compute"] for layer in found["layers"]) / found["batch"]
    profiles = {profile["profile"]: float(profile["frames_per_second"]) for profile in found["ddr_profiles"]}
    size = found["array"]
    return EngineRate(
        array=f"{size['rows']}×{size['columns']}×{size['lanes']}",
        fps={profile: profiles[profile] for profile in DDR_PROFILES},
        array_fps=found["clock_mhz"] * 1e6 / steps,
    )
