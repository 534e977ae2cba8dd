"""Figures of tables whose rows are designs. Each design is generated, and executed if its cycles are traced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx

from boards import board
from tests.support.onnx.yolov8 import Detector, Form
from tools.bounds.limits import Format
from tools.bounds.report import Question, answered
from tools.figures.folder import PICTURE, Folder, Values, optimistic
from tools.networks.table import entries

YOLO = "tiny-yolov2-voc"

NETWORKS: Mapping[str, tuple[str, str]] = {
    "yolov3_tiny": ("yolov3-tiny", "13x16x16"),
    "yolov4_tiny": ("yolov4-tiny", "13x16x16"),
    "yolo_fastest": ("yolo-fastest", "11x16x16"),
    "yolov8n": ("yolov8n.onnx", "12x16x16"),
    "squeezenet": ("squeezenet", "13x16x16"),
    "skynet": ("skynet", "12x16x16"),
    "mobilenet_v1": ("mobilenet-v1", "13x16x16"),
    "mobilenet_v2": ("mobilenet-v2", "12x16x16"),
    "unet_small": ("unet-small", "13x16x16"),
    "resnet8": ("resnet8", "11x16x16"),
    "ds_cnn": ("ds-cnn", "25x8x8"),
}
"""Networks of docs/explanation/engine.md by the names of their figures.

Each has the array that a search over all arrays has found, because that search takes minutes for some networks.
"""

FORMATS: Mapping[str, tuple[str, ...]] = {
    "int4": ("--bits", "4"),
    "int16": ("--bits", "16"),
    "six": ("--bits", "4", "--dsp-products", "6"),
    "six_fast": ("--bits", "4", "--dsp-products", "6", "--lut-share", "0.9"),
}
"""Options for tiny-YOLOv2 on a ZCU104."""

BOARDS: Mapping[str, tuple[str, ...]] = {
    "zcu104": ("--board", "zcu104"),
    "ultra96": ("--board", "ultra96-v2"),
    "pynq_z2": ("--board", "pynq-z2"),
    "six": ("--board", "zcu104", "--bits", "4", "--dsp-products", "6"),
    "doubled": ("--board", "zcu104", "--dsp-clock", "2"),
}
"""Boards and options of docs/explanation/rtl.md."""


def networks(folder: Folder) -> Values:
    """Trace a frame of each network on a ZCU104, with random weights."""
    onnx.save(Detector(Form()).model(), folder.path / NETWORKS["yolov8n"][0])
    values: Values = {}
    for name, (network, array) in NETWORKS.items():
        folder.systolic("schedule", network, "--board", "zcu104", "--array", array, "--save", "schedule.json")
        traced = _traced(folder, network, "--schedule", "schedule.json")
        values |= {f"{name}_{figure}": value for figure, value in traced.items()}
    return values


def bounds(folder: Folder) -> Values:
    """Derive the limits of every compared network on a ZCU104 in int8, for one frame and for four per load of the
    weights."""
    values: Values = {}
    for batch in (1, 4):
        answer = answered(Question(board.load("zcu104"), Format(8, batch)), entries())
        for network in answer["networks"]:
            values |= _limits(identifier(network["name"]), network, batch)
    values |= {f"{ddr['profile']}_gbps": ddr["gbps"] for ddr in answer["ddr"]}
    return values | {"dsp": answer["dsp"], "clock_mhz": answer["clocks"][0]["clock_mhz"]}


def identifier(network: str) -> str:
    """Return the name of a network as the names of its figures begin."""
    return network.replace("-", "_")


def _limits(name: str, network: dict[str, Any], batch: int) -> Values:
    doubled, single = network["limits"]
    values: Values = {}
    for profile in doubled["profiles"]:
        kind = f"{profile['profile']}_{batch}"
        values |= {f"{name}_{key}_{kind}": profile[f"{key}_fps"] for key in ("frame", "layers", "layers_in_ddr")}
    if batch > 1:
        return values
    size: Values = {f"{name}_gmac": network["macs"] / 1e9, f"{name}_weights": network["weights"] / 1e6}
    size |= {f"{name}_macs": doubled["macs_fps"], f"{name}_single": single["macs_fps"]}
    return values | size | ({f"{name}_dpu": network["dpu"]["fps"]} if network["dpu"] else {})


def formats(folder: Folder) -> Values:
    """Trace a frame of tiny-YOLOv2 in formats other than INT8."""
    values: Values = {}
    for name, options in FORMATS.items():
        values |= {f"{name}_{figure}": value for figure, value in _traced(folder, YOLO, *options).items()}
    return values


def engines(folder: Folder) -> Values:
    """Search for both engines of tiny-YOLOv2 on several boards.

    Only the SystemVerilog engine supports a doubled clock.
    """
    values: Values = {}
    for name, options in BOARDS.items():
        for engine in ("hls", "rtl") if name != "doubled" else ("rtl",):
            found = folder.systolic("schedule", YOLO, "--seed", "1", "--engine", engine, *options)
            (board,) = folder.systolic("boards", found["board"])["boards"]
            values |= {
                f"{name}_{engine}_array": _array(found["array"]),
                f"{name}_{engine}_fps": found["frames_per_second"],
                f"{name}_{engine}_fps_optimistic": optimistic(found),
                f"{name}_{engine}_lut": found["usage"]["lut"],
                f"{name}_{engine}_lut_share": found["usage"]["lut"] / board["resources"]["lut"],
                f"{name}_{engine}_ff": found["fabric"]["ff"],
            }
    return values


def _traced(folder: Folder, network: str, *options: str) -> Values:
    seed = () if network.endswith(".onnx") else ("--seed", "1")
    asked = (*seed, "--board", "zcu104", *options)
    design = folder.systolic("generate", network, *asked, "-o", "design", "--force")
    traced = folder.systolic("simulate", "design", "--picture", PICTURE, "--cycles")
    layers = traced["layers"]
    worst = max(layers, key=lambda layer: abs(_off(layer)))
    return {
        "array": _array(design["array"]),
        "cycles": traced["cycles_per_frame"],
        "fps": traced["frames_per_second"],
        "fps_optimistic": optimistic(traced),
        "modelled": sum(layer["modelled_cycles"] for layer in layers),
        "lut": design["estimate"]["lut"],
        "worst": worst["name"],
        "worst_off": _off(worst),
        "worst_cycles": worst["cycles"],
    }


def _off(layer: Mapping[str, Any]) -> float:
    return float(layer["modelled_cycles"] / layer["cycles"] - 1)


def _array(array: Mapping[str, int]) -> str:
    return f"{array['rows']}×{array['columns']}×{array['lanes']}"
