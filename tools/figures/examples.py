"""The commands of the pages, run as a reader would run them, and the figures they give."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping

from tools.figures.folder import PICTURE, Folder, Values, optimistic
from tools.figures.tables import bounds, engines, formats, networks


def yolo(folder: Folder) -> Values:
    """Trace a frame of tiny-YOLOv2 at full size on a ZCU104. Cycles do not depend on the weights, which are random."""
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
        "fps_optimistic": optimistic(traced),
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
    """Fold UltraNet for 2,000 frames/s on an Ultra96-V2, and trace three frames. The weights are random."""
    board = ("--board", "ultra96-v2")
    folder.systolic("fold", "ultranet", *board, "--fps", "2000", "--save", "folding.json")
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


EXAMPLES: Mapping[str, Callable[[Folder], Values]] = {
    "demo": demo,
    "yolo": yolo,
    "ultranet": ultranet,
    "formats": formats,
    "engines": engines,
    "networks": networks,
    "bounds": bounds,
}
