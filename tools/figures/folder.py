"""A folder in which the commands of the pages run."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

Values = dict[str, float | str]
"""Figures of an example, by name."""

PICTURE = "picture.png"


@dataclass(frozen=True)
class Folder:
    """A folder in which commands run. ``pictures`` is the folder for the pictures shown on the pages."""

    path: Path
    pictures: Path

    def systolic(self, *arguments: str) -> Any:
        """Run ``systolic`` with ``--json``, and return the object that it writes.

        Raises:
            subprocess.CalledProcessError: The exit status is neither 0 nor 1. ``check`` returns 1 if a claim does not
                hold.
        """
        answer = self.path / "answer.json"
        answer.unlink(missing_ok=True)
        command = [sys.executable, "-m", "systolic", *arguments, "--json", str(answer)]
        print(f"systolic {' '.join(arguments)}", flush=True)
        status = subprocess.run(command, cwd=self.path, stdout=subprocess.DEVNULL, check=False).returncode
        if status not in (0, 1):
            raise subprocess.CalledProcessError(status, command)
        return json.loads(answer.read_text("utf-8"))

    def timeline(self, name: str) -> str:
        """Return the path for a timeline of the pages."""
        return str(self.pictures / name)


def optimistic(values: Values) -> float:
    """Return the frames per second that a command's JSON gives for the optimistic share of the DDR's peak."""
    rates: Any = values["ddr_profiles"]
    return next(float(rate["frames_per_second"]) for rate in rates if rate["profile"] == "optimistic")


def prepare(path: Path) -> None:
    """Write the picture that the designs process. Cycles do not depend on its pixels."""
    pixels = np.random.default_rng(1).integers(0, 256, (416, 416, 3), np.uint8)
    Image.fromarray(pixels).save(path / PICTURE)
