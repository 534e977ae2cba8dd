"""The case of a seed and a number. Cases of one block of numbers share the arrays of their systolic designs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from boards import board as boards
from boards.board import Board
from cnn.ops.softmax import METHODS
from contract.geometry import as_stored
from scheduler.systolic.area.placement import place
from scheduler.systolic.array import BITS, RULES, Array
from scheduler.systolic.search.space import ports_fit
from tests.fuzz.networks.added import drawn_added
from tests.fuzz.networks.case import Case
from tests.fuzz.networks.darknet import Section, drawn_sections
from tests.fuzz.networks.dice import Dice
from tests.fuzz.networks.exported import drawn_topology, multiplied

BLOCK = 600
"""The number of consecutive cases that share arrays. This many cases take about an hour."""

ARRAYS = 8
"""The number of arrays per block.

An engine depends on its array only, so it is compiled once for all cases that share the array.
"""

MAX_LAYERS = {"systolic": 14, "streaming": 8}
"""The limit for the number of layers of a network, by style."""

SOMETIMES = {
    "systolic": {"golden": 0.2, "trace": 0.3, "lint": 0.1, "host": 0.5, "saved": 0.2, "again": 0.1, "told": 0.02},
    "streaming": {"golden": 0.2, "trace": 0.3, "lint": 0.3, "host": 0.4, "saved": 0.2, "again": 0.1, "told": 0.03},
}
"""The share of a style's designs that get each check. All designs are executed with native types."""

AP_INT = {"systolic": 0.15, "streaming": 0.06}
"""The share of a style's designs that are also executed with ap_int types."""

EXPORTED, MULTIPLIED = 0.6, 0.8
"""The shares of exported networks: of pipelines, and of 8-bit arrays that add offsets after the multiplication."""

MEAN = 0.7
"""The share of the arrays' exported networks whose input has a mean, if the first layer allows one."""

EXPORTED_AS_ONNX = 0.3
"""The share of the darknet networks that are written as an ONNX file."""

OPSETS = (11, 13, 17, 20)

PRODUCTS = ("sam", "scale_channels")
"""Sections that multiply two maps."""

QUANTISED = 0.7
"""The share of the 8-bit ONNX networks that onnxruntime quantises, so that the file already has integers."""

AS_SHIPPED, PACKAGED = 0.04, 0.03
"""The shares of the designs that are compiled with the users' flags, and that are packaged as a wheel."""

FINER = {"systolic": 0.0, "streaming": 0.4}
"""The share of the 8-bit float networks whose activations have 9 to 16 bits, by style.

The lanes of an 8-bit array hold no activations of more than 8 bits.
"""

MOVED = 0.25
"""The share of the float networks of 4 and 8 bits that get zero points."""


def draw_case(seed: int, number: int) -> Case:
    """Return the case of a seed and a number. It is the same for the same two numbers."""
    dice = Dice(seed, number, 1)
    style = dice.pick(("systolic", "systolic", "streaming"))
    exported = style == "streaming" and dice.chance(EXPORTED)
    target: dict[str, Any] = {"style": style}
    mapping: dict[str, Any]
    if style == "systolic":
        mapping = _schedule(dice, seed, number // BLOCK, target)
    else:
        mapping = _folding(dice)
        target["board"] = dice.pick(boards.names())
        target["bits"] = dice.pick((4, 8, 8, 16))
    target["clock"] = _clock(dice, boards.load(target["board"]), style)
    target["method"] = dice.pick(("mse", "max", "percentile"))
    wild = dice.pick((0.0, 0.0, 0.05, 0.3))
    network: dict[str, Any]
    if exported:
        network = {"form": "exported", "topology": drawn_topology(dice, MAX_LAYERS[style], wild > 0)}
        del target["bits"], target["method"]
    else:
        network = {"form": "darknet", "sections": drawn_sections(dice, style, MAX_LAYERS[style])}
        if Dice(seed, number, 3).chance(EXPORTED_AS_ONNX):
            transposed = Dice(seed, number, 8).chance(0.5)
            network |= {
                "form": "onnx",
                "transposed": transposed,
                "opset": dice.pick(OPSETS),
                "views": Dice(seed, number, 7).whole(0, 3),
                "last": Dice(seed, number, 10).chance(0.3),
                "dilated": Dice(seed, number, 11).chance(0.3),
            }
            if target["bits"] == 8:
                network |= _quantised(Dice(seed, number, 4), style, network["sections"])
        if _adds_late(mapping) and Dice(seed, number, 5).chance(MULTIPLIED):
            topology = _with_mean(Dice(seed, number, 7), _joined_once(seed, number, wild > 0))
            network = {"form": "exported", "topology": topology}
            del target["bits"], target["method"]
    if network["form"] != "onnx":
        network |= drawn_added(Dice(seed, number, 13), style, network["form"] == "exported")
    if style == "streaming" and network["form"] != "exported" and "quantised" not in network:
        target |= _softmax(Dice(seed, number, 12), network)
    if target.get("bits") in (4, 8) and "quantised" not in network and Dice(seed, number, 9).chance(MOVED):
        target["zero_points"] = True
    elif target.get("bits") == 8 and "quantised" not in network:
        target |= _finer(Dice(seed, number, 14), style)
    checks = _checks(dice, style, sized=not mapping.get("estimated_fifos", True))
    return Case(
        network=network,
        numbers={"seed": dice.seed(), "wild": wild},
        pixels={"kind": dice.pick(("noise", "noise", "noise", "waves", "black", "white")), "seed": dice.seed()},
        target=target,
        mapping=mapping,
        checks=("runtime", *checks) if network["form"] == "onnx" else checks,
    )


def _finer(dice: Dice, style: str) -> dict[str, Any]:
    """Return the number of bits of all activations, or {} if activations have the same bits as weights."""
    return {"activation_bits": dice.whole(9, 16)} if dice.chance(FINER[style]) else {}


def _softmax(dice: Dice, network: dict[str, Any]) -> dict[str, Any]:
    """Return where and how the final softmax of a cfg is computed, or {} for the default.

    The softmax of darknet covers all values of its input, and the pipeline needs an input of one position. So a dense
    layer is inserted before the softmax.
    """
    *sections, (kind, options) = network["sections"]
    if kind != "softmax" or not dice.chance(0.7):
        return {}
    classes = {"output": dice.whole(1, 24), "activation": "linear"}
    network["sections"] = [*sections, ["connected", classes], [kind, options]]
    return {"softmax": dice.pick(METHODS)}


def _adds_late(mapping: Mapping[str, Any]) -> bool:
    # Only a drawn array can have late_offsets == 1; a search gets the geometry of an array without this field.
    array = mapping.get("array") if mapping["kind"] == "drawn" else None
    return isinstance(array, Mapping) and array.get("late_offsets") == 1 and array["bits"] == 8


def _joined_once(seed: int, number: int, wild: bool) -> dict[str, Any]:
    """Return a topology for the array.

    It is the first of twenty in which no join reads a map twice and no layer is a reorg or a softmax. If there is none,
    it is the last of the twenty.
    """
    for attempt in range(20):
        topology = multiplied(drawn_topology(Dice(seed, number, 6, attempt), MAX_LAYERS["systolic"], wild))
        sources = [layer["from"] for layer in topology["layers"] if isinstance(layer.get("from"), list)]
        kinds = {layer["type"] for layer in topology["layers"]}
        if not kinds & {"reorg", "softmax"} and all(len(set(names)) == len(names) for names in sources):
            break
    return topology


def _with_mean(dice: Dice, topology: dict[str, Any]) -> dict[str, Any]:
    """Return the topology, often with a mean of the input.

    The first layer must have a batch norm that can absorb the mean. Its padding then holds the mean instead of 0.
    """
    reader = topology["layers"][0]
    if "output_bits" not in reader or "requantise" in reader or not dice.chance(MEAN):
        return topology
    mean = {"mean": dice.whole(1, 99) / 100, "std": dice.pick((1, 0.5, 0.25))}
    return {**topology, "input": {**topology["input"], **mean}}


def _quantised(dice: Dice, style: str, sections: list[Section]) -> dict[str, Any]:
    """Return the form in which onnxruntime quantises the file, for tests.support.onnx.quantising.Form; {} for none."""
    if not dice.chance(QUANTISED):
        return {}
    form = {
        "format": dice.pick(("QDQ", "QDQ", "QOperator")),
        "per_channel": dice.chance(0.5),
        "symmetric": dice.chance(0.3),
        "activations": dice.pick(("QInt8", "QUInt8")),
        "weights": dice.pick(("QInt8", "QInt8", "QUInt8")),
    }
    if style == "systolic" and any(kind in PRODUCTS for kind, _ in sections):
        # Subtracting a zero point makes a factor one bit wider than a lane of the array, so factors are symmetric.
        form |= {"symmetric": True, "activations": "QInt8"}
    if form["per_channel"] or style == "systolic":
        # Weights per channel are symmetric. QUInt8 weights less their zero point need nine bits, one more than a lane.
        form["weights"] = "QInt8"
    ends = [section for section in sections if section[0] != "softmax"]  # probabilities are not integers
    if form["weights"] == "QUInt8":
        form["activations"] = "QUInt8"  # onnxruntime supports no other activations for QUInt8 weights
    return {"opset": dice.pick((13, 17)), "quantised": form, "sections": ends}


def _checks(dice: Dice, style: str, sized: bool) -> tuple[str, ...]:
    """Return the names of the checks of a case.

    Args:
        sized: Whether FIFOs are sized from a trace. Such a design is always traced, to check the promised interval.
    """
    optional = [name for name, share in SOMETIMES[style].items() if dice.chance(share) or (name == "trace" and sized)]
    wide = ["ap_int"] * dice.chance(AP_INT[style]) + ["as_shipped"] * dice.chance(AS_SHIPPED)
    return ("native", *wide, *optional, *(["packaged"] * dice.chance(PACKAGED)))


def _clock(dice: Dice, board: Board, style: str) -> float | None:
    """Return a clock in MHz that the board makes, or None if the style chooses it."""
    if style == "streaming" and dice.chance(0.3):
        return None
    return dice.pick([clock.mhz for clock in board.clocks() if clock.mhz >= 20])


# --- the systolic style ------------------------------------------------------------------------------------------


def _schedule(dice: Dice, seed: int, block: int, target: dict[str, Any]) -> dict[str, Any]:
    """Return the mapping of a systolic case, and set the board and the bits of ``target``.

    Most cases get a random legal schedule on one of the block's arrays. The others get the schedule of a search.
    """
    batch = dice.pick((1, 1, 1, 1, 1, 2, 3, 5))
    array, board = drawn_array(Dice(seed, block, dice.whole(0, ARRAYS - 1), 2))
    target |= {"board": board, "bits": array.bits}
    if dice.chance(0.93):
        values = as_stored(array)
        return {
            "kind": "drawn",
            "seed": dice.seed(),
            "array": values,
            "batch": batch,
            "stay": dice.pick((0.0, 0.7, 1.0, 1.0)),
        }
    objective = dice.pick(("fps", "latency", "ddr", "resources"))
    geometry = f"{array.rows}x{array.columns}x{array.lanes}"
    pins = {name: getattr(array, name) for name in ("row_depth", "weight_depth", "map_ports") if dice.chance(0.3)}
    rate = 1.0 if objective in ("ddr", "resources") else 0.0
    return {"kind": "search", "objective": objective, "fps": rate, "array": geometry, "pins": pins, "batch": batch}


def drawn_array(dice: Dice) -> tuple[Array, str]:
    """Return a legal array, and a board that it fits on."""
    while True:
        units = dice.chance(0.9)  # most arrays have every unit that a layer may need
        array = Array(
            rows=dice.whole(2, 9),
            columns=dice.pick((4, 8, 8, 16, 16, 24, 32)),
            lanes=dice.pick((4, 8, 8, 16, 32)),
            save_rows=dice.pick((1, 2, 4)),
            map_ports=dice.pick((1, 2, 4)),
            weight_ports=dice.pick((1, 2, 4)),
            row_depth=dice.pick((512, 1024, 2048)),
            weight_depth=dice.pick((1024, 2048)),
            kept_depth=dice.pick((256, 512)),
            chunk=dice.pick((3, 4, 5, 6, 8, 12, 64)),
            channel_tiles=32,
            dsp=dice.pick(("DSP48E1", "DSP48E2", "DSP48E2", "DSP48E2")),
            bits=dice.pick(BITS),
            weight_words=dice.pick((1, 1, 2, 4)),
            map_depth=dice.pick((0, 512, 1024, 2048, 2048)),
            upscale=2 if units else dice.pick((1, 2)),
            table_depth=256 if units else dice.pick((0, 256)),
            windows=bool(units or dice.pick((0, 1))),
            late_offsets=dice.pick((0, 2, 0, 1)),
            map_products=bool(units or dice.pick((0, 1))),
            added_maps=bool(dice.pick((0, 1))),
            map_stride=dice.pick((2, 2, 7)) if units else 1,
        )
        array = replace(array, table_slopes=array.table_depth > 0 and array.bits == 16)
        positive, *relations = RULES
        if not (positive.holds(array) and all(rule.holds(array) for rule in relations)):
            continue
        fitting = [name for name in boards.names() if _holds(boards.load(name), array)]
        if fitting:
            return array, dice.pick(fitting)


def _holds(board: Board, array: Array) -> bool:
    return board.dsp.kind == array.dsp and ports_fit(array, board) and place(array, board)[1].fits(board)


# --- the streaming style -----------------------------------------------------------------------------------------


def _folding(dice: Dice) -> dict[str, Any]:
    """Return the options of a random legal folding, or of a folding search."""
    kind = dice.pick(("drawn", "drawn", "drawn", "greedy", "greedy", "exact", "annealing"))
    return {
        "kind": kind,
        "seed": dice.seed(),
        "fps": dice.pick((1.0, 1000.0)) if kind == "annealing" or dice.chance(0.4) else None,
        "max_padding": dice.pick((0, 0, 1, 3)),
        "max_pixels": dice.pick((1, 2, 4)),
        "pad_ends": dice.chance(0.3),
        "external": dice.pick((0.0, 0.0, 0.5)),
        "estimated_fifos": dice.chance(0.75),
    }
