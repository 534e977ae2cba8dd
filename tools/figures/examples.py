"""Commands of the pages, run as a reader would run them, and the figures that they give."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

Values = dict[str, float | str]
"""Figures of an example by their names."""

PICTURE = "picture.png"


@dataclass(frozen=True)
class Folder:
    """A folder in which commands run. ``pictures`` is where those go that the pages show."""

    path: Path
    pictures: Path

    def systolic(self, *arguments: str) -> Any:
        """Run ``systolic`` with ``--json``, and return the object that it writes.

        Raises:
            subprocess.CalledProcessError: The exit status is neither 0 nor 1; ``check`` ends with 1 where a claim does
                not hold.
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
        """Return where a timeline of the pages is to be drawn."""
        return str(self.pictures / name)


def prepare(path: Path) -> None:
    """Write the picture that the designs compute. Cycles do not depend on its pixels."""
    pixels = np.random.default_rng(1).integers(0, 256, (416, 416, 3), np.uint8)
    Image.fromarray(pixels).save(path / PICTURE)


def yolo(folder: Folder) -> Values:
    """Trace a frame of tiny-YOLOv2 at its real size on a ZCU104. Random weights give the cycles of trained ones."""
    design = folder.systolic("generate", "tiny-yolov2-voc", "--seed", "1", "-o", "yolo")
    simulated = folder.systolic("simulate", "yolo", "--picture", PICTURE)
    traced = folder.systolic(
        "simulate", "yolo", "--picture", PICTURE, "--cycles", "--timeline", folder.timeline("timeline.png")
    )
    derived = folder.systolic("simulate", "yolo", "--picture", PICTURE, "--cycles", "--derived")
    checked = folder.systolic("check", "yolo")
    (board,) = folder.systolic("boards", "zcu104")["boards"]
    return {
        "mismatches": simulated["mismatches"],
        "values": sum(layer["values"] for layer in simulated["layers"]),
        "cycles": traced["cycles_per_frame"],
        "modelled": sum(layer["modelled_cycles"] for layer in traced["layers"]),
        "fps": traced["frames_per_second"],
        "fps_derived": derived["frames_per_second"],
        "ms": 1000 / traced["frames_per_second"],
        "dsp": traced["dsp"],
        "bram36": design["estimate"]["bram36"],
        "lut": design["estimate"]["lut"],
        "board_dsp": board["resources"]["dsp"],
        "dsp_efficiency": traced["dsp_efficiency"],
        "ddr_efficiency": traced["memory"]["efficiency"],
        "ddr_gbps": traced["memory"]["peak_gbps"],
        "clock_mhz": traced["clock_mhz"],
        "highest_clock_mhz": checked["highest_clock_mhz"],
    }


def ultranet(folder: Folder) -> Values:
    """Fold UltraNet for 2,900 frames/s on an Ultra96-V2, and trace three frames, with random weights."""
    board = ("--board", "ultra96-v2")
    folder.systolic("fold", "ultranet", *board, "--fps", "2900", "--save", "folding.json")
    design = folder.systolic(
        "generate",
        "ultranet",
        "--seed",
        "1",
        "--style",
        "streaming",
        *board,
        "--folding",
        "folding.json",
        "-o",
        "pipeline",
    )
    traced = folder.systolic(
        "simulate", "pipeline", "--picture", PICTURE, "--cycles", "--timeline", folder.timeline("pipeline.png")
    )
    checked = folder.systolic("check", "pipeline")
    (facts,) = folder.systolic("boards", "ultra96-v2")["boards"]
    return {
        "cycles": traced["cycles_per_frame"],
        "modelled": design["modelled_cycles"],
        "latency": design["fifos"]["latency"],
        "fps": traced["frames_per_second"],
        "fps_200": 200e6 / traced["cycles_per_frame"],
        "dsp": design["estimate"]["dsp"],
        "board_dsp": facts["resources"]["dsp"],
        "lut_share": design["estimate"]["lut"] / facts["resources"]["lut"],
        "clock_mhz": traced["clock_mhz"],
        "highest_clock_mhz": checked["highest_clock_mhz"],
        "part_clock_mhz": checked["part"]["highest_clock_mhz"],
        "loops": len(checked["loops"]),
    }


def demo(folder: Folder) -> Values:
    """Make the demo's design and its picture."""
    shown = folder.systolic("demo", "-o", "demo")
    shutil.copy(folder.path / "demo" / "boxes.png", folder.pictures / "demo.png")
    design = folder.systolic("generate", "shapes", "-o", "shapes")
    simulated = folder.systolic("simulate", "shapes", "--picture", PICTURE)
    layers = {layer["name"]: layer for layer in design["layers"]}
    return {
        "objects": len(shown["run"]["detections"]),
        "mismatches": simulated["mismatches"],
        "values": sum(layer["values"] for layer in simulated["layers"]),
        "conv1_modelled": layers["conv1"]["modelled_cycles"],
    }


EXAMPLES: Mapping[str, Callable[[Folder], Values]] = {"demo": demo, "yolo": yolo, "ultranet": ultranet}
