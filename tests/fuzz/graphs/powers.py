"""`python -m tests.fuzz powers`: compare random quantised networks with onnxruntime or qonnx in every integer.

Networks are drawn in three dialects. All floats are exact because all scales are powers of two. So values in the middle
between two integers occur exactly, and often.

A network is not compared if the reader's notes name an addition of maps whose scales differ by a factor of 128 or more.
Such an addition cannot be exact, and the note says how many sums differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper

from cnn.integer_model import run_integer
from cnn.onnx.network import OnnxNetwork, read_model
from cnn.ops import QAdd
from tests.fuzz.campaign import Campaign
from tests.fuzz.graphs.tally import count
from tests.fuzz.networks.dice import Dice
from tests.support.onnx.integers import MICROSOFT
from tests.support.onnx.qonnx_execution import executed
from tests.support.onnx.trained import DOMAIN
from tests.support.onnx.writer import Writer

DIALECTS = ("qdq", "qoperator", "qonnx")
SIDES = (1, 3, 8, 8)
"""The shape of the input: (1, channels, rows, columns)."""
MAX_LAYERS = 6


@dataclass(frozen=True)
class Values:
    """A quantised map.

    Attributes:
        name: The tensor of its floats.
        integers: The tensors of its integers, their scale and their zero point; () in QONNX.
        side: The number of rows, and of columns.
        most: An upper limit for the floats.
    """

    name: str
    integers: tuple[str, ...]
    channels: int
    side: int
    most: float


class Powers(Writer):
    """A network to which layers are added."""

    def __init__(self, dice: Dice) -> None:
        super().__init__()
        self.dice, self.dialect = dice, dice.pick(DIALECTS)
        self.random = np.random.default_rng(dice.seed())
        self.kind = dice.pick((np.int8, np.uint8))
        self.ends: list[str] = []

    def grid(self, most: float) -> tuple[float, int, int, bool]:
        """Draw the step, the zero point, the bits and the sign of a quantiser.

        Dialects other than QONNX have 8 bits.

        Args:
            most: An upper limit for the floats that are quantised.
        """
        bits = self.dice.pick((3, 4, 6, 8)) if self.dialect == "qonnx" else 8
        signed = self.dice.chance(0.7) if self.dialect == "qonnx" else self.kind is np.int8
        step = 2.0 ** (np.ceil(np.log2(most)) - bits + self.dice.whole(0, 1))
        zero = self.dice.whole(-3, 3) if signed else (1 << (bits - 1)) + self.dice.whole(-3, 3)
        return float(step), zero if self.dice.chance(0.8) else 0, bits, signed

    def quantised(self, floats: str, channels: int, side: int, most: float) -> Values:
        """Append a quantiser of floats."""
        step, zero, bits, signed = self.grid(most)
        reach = step * 2.0**bits
        if self.dialect == "qonnx":
            inputs = [floats, *(self.constant(number) for number in (step, zero, bits))]
            options: dict[str, Any] = {"signed": int(signed), "narrow": 0, "rounding_mode": "ROUND"}
            return Values(self.put("Quant", inputs, domain=DOMAIN, **options), (), channels, side, reach)
        constants = (self.constant(step), self.constant(zero, self.kind))
        return self.of_integers(self.put("QuantizeLinear", [floats, *constants]), constants, channels, side, reach)

    def of_integers(self, name: str, grid: tuple[str, str], channels: int, side: int, most: float) -> Values:
        """Append a DequantizeLinear of the integers ``name``, which are compared with the other runtime's."""
        self.ends.append(name)
        return Values(self.put("DequantizeLinear", [name, *grid]), (name, *grid), channels, side, most)

    def then(self, kind: str, sources: list[Values], channels: int, side: int, most: float, **options: Any) -> Values:
        """Append an operator on floats and a quantiser, or one of Microsoft's operators on integers."""
        if self.dialect == "qoperator" and self.dice.chance(0.7):
            step, zero, _, _ = self.grid(most)
            grid = (self.constant(step), self.constant(zero, self.kind))
            inputs = [name for source in sources for name in source.integers]
            inputs = [*grid, *inputs] if kind == "Concat" else [*inputs, *grid]
            name = self.put(f"QLinear{kind}", inputs, domain=MICROSOFT, **options)
            return self.of_integers(name, grid, channels, side, step * 256)
        return self.quantised(self.put(kind, [source.name for source in sources], **options), channels, side, most)

    def convolution(self, source: Values, same: bool = False) -> Values:
        """Append a convolution of 1×1 or 3×3, over all channels or depthwise, with one scale per filter.

        Args:
            same: Whether the number of filters equals the number of channels.
        """
        each, size = self.dice.chance(0.3), self.dice.pick((1, 3))
        filters = source.channels if same or each else self.dice.whole(2, 6)
        channels, inputs = filters, 1 if each else source.channels
        whole = self.random.integers(-7, 8, (channels, inputs, size, size))
        scales = 2.0 ** -self.random.integers(2, 5, channels)
        options: dict[str, Any] = {"kernel_shape": [size] * 2, "pads": [size // 2] * 4}
        options |= {"group": channels if each else 1}
        most = source.most / 2 * float((np.abs(whole).sum(axis=(1, 2, 3)) * scales).max()) / 2
        if self.dialect == "qonnx":
            sizes = scales.reshape(-1, 1, 1, 1)
            inputs_of = [self.constant(whole * sizes), self.constant(sizes), self.constant(0), self.constant(4)]
            options_of: dict[str, Any] = {"signed": 1, "narrow": 1, "rounding_mode": "ROUND"}
            kernel = self.put("Quant", inputs_of, domain=DOMAIN, **options_of)
            return self.quantised(self.put("Conv", [source.name, kernel], **options), channels, source.side, most)
        weights = [self.constant(whole, np.int8), self.constant(scales), self.constant([0] * channels, np.int8)]
        if self.dialect == "qoperator":
            step, zero, _, _ = self.grid(most)
            grid = (self.constant(step), self.constant(zero, self.kind))
            bias = self.constant(self.random.integers(-99, 100, channels), np.int32)
            name = self.put("QLinearConv", [*source.integers, *weights, *grid, bias], **options)
            return self.of_integers(name, grid, channels, source.side, step * 256)
        kernel = self.put("DequantizeLinear", weights, axis=0)
        return self.quantised(self.put("Conv", [source.name, kernel], **options), channels, source.side, most)

    def layer(self, source: Values) -> Values:
        """Append a random layer that can read the map."""
        kind = self.dice.pick(("Conv", "Conv", "Add", "Mul", "AveragePool", "LeakyRelu", "Concat", "step", "Resize"))
        other = self.convolution(source, kind in ("Add", "Mul"))
        if kind in ("Add", "Mul"):
            most = source.most + other.most if kind == "Add" else source.most * other.most / 2
            return self.then(kind, [source, other], source.channels, source.side, most / 2)
        if kind == "AveragePool" and other.side > 2:
            options: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
            return self.then(kind, [other], other.channels, other.side // 2, other.most / 2, **options)
        if kind == "LeakyRelu":
            return self.then(kind, [other], other.channels, other.side, other.most, alpha=0.25)
        if kind == "Concat":
            return self.then(kind, [source, other], source.channels + other.channels, other.side, other.most, axis=1)
        if kind == "Resize" and other.side < 8:
            modes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
            inputs = [other.name, "", self.constant([1, 1, 2, 2])]
            larger = helper.make_node(kind, inputs, [f"larger{len(self.nodes)}"], name=f"/l{len(self.nodes)}", **modes)
            self.nodes.append(larger)
            return self.quantised(larger.output[0], other.channels, 2 * other.side, other.most)
        if kind == "step":
            return self.quantised(other.name, other.channels, other.side, other.most)
        return other


def drawn(seed: int, number: int) -> tuple[Any, Any, list[str]]:
    """Return a model, a uint8 image for it, and the names of its integer tensors ([] in QONNX)."""
    dice = Dice(seed, number)
    writer = Powers(dice)
    if writer.dialect == "qonnx":
        numbers = [writer.constant(value) for value in (2.0**-8, 0, 8)]
        options: dict[str, Any] = {"signed": 0, "narrow": 0, "rounding_mode": "ROUND"}
        last = Values(writer.put("Quant", ["picture", *numbers], domain=DOMAIN, **options), (), 3, 8, 1.0)
    else:
        grid = (writer.constant(2.0**-8), writer.constant(-128 if writer.kind is np.int8 else 0, writer.kind))
        last = writer.of_integers(writer.put("QuantizeLinear", ["picture", *grid]), grid, 3, 8, 1.0)
    for _ in range(dice.whole(1, MAX_LAYERS)):
        last = writer.layer(last)
    if dice.chance(0.4):
        last = writer.then("GlobalAveragePool", [last], last.channels, 1, last.most / 4)
    model = writer.model([last.name], SIDES)
    model.opset_import.append(helper.make_opsetid(MICROSOFT, 1))
    model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    return model, writer.random.integers(0, 256, SIDES[1:], np.uint8), writer.ends


def fault(read: OnnxNetwork, model: Any, picture: Any, tensors: list[str]) -> str:
    """Return a sentence about the first layer whose integers differ, or "" if no integers differ."""
    assert read.quantized is not None
    maps, nodes = run_integer(read.quantized, picture), read.quantized.nodes
    if tensors:
        given = _given(model, picture, tensors)
    else:
        name = model.graph.output[0].name
        node = nodes[read.tensors[name]]
        floats = executed(model.SerializeToString(), picture)[0]
        given = {name: np.rint(floats / node.type.scale) + node.type.zero_point}
    for name, right in given.items():
        index = read.tensors.get(name, 0)
        ours = maps[index]
        if not index or ours is None:
            continue
        less = 128 if right.dtype == np.uint8 else 0
        steps = np.abs(right.astype(np.int64).ravel() - less - ours.astype(np.int64).ravel())
        if steps.max():
            return f"{nodes[index].name} is {steps.max()} steps off, {np.count_nonzero(steps)} of {steps.size} values"
    return ""


def _given(model: Any, picture: Any, tensors: list[str]) -> dict[str, Any]:
    """Return the tensors that onnxruntime computes with the model's own operators, without fusing any."""
    more = onnx.ModelProto()
    more.CopyFrom(model)
    more.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in tensors)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(more.SerializeToString(), options, providers=["CPUExecutionProvider"])
    values = session.run(None, {"picture": (picture[None] / np.float32(255)).astype(np.float32)})
    named = dict(zip((output.name for output in session.get_outputs()), values, strict=True))
    return {name: named[name] for name in tensors}


def _added(read: OnnxNetwork) -> list[str]:
    """Return the names of additions whose scales differ too much for the 7-bit multipliers that give both one scale."""
    assert read.quantized is not None
    nodes = read.quantized.nodes
    adding = [node for node in nodes if isinstance(node.op, QAdd)]
    scales = [[nodes[i].type.scale for i in node.inputs] for node in adding]
    return [node.name for node, each in zip(adding, scales, strict=True) if max(each) >= 128 * min(each)]


def run(campaign: Campaign) -> int:
    """Try the campaign's models; print a report and return the number of defects."""
    counted = 0

    def attempt(number: int) -> str:
        nonlocal counted
        model, picture, tensors = drawn(campaign.seed, number)
        read = read_model(model, "powers.onnx", "powers")
        added = [note for note in read.notes if any(repr(name) in note for name in _added(read))]
        counted += bool(added)
        others = "; ".join(note for note in read.notes if note not in added)
        return others or ("" if added else fault(read, model, picture, tensors))

    tally = count(campaign, "powers", attempt, lambda number: drawn(campaign.seed, number)[0])
    print(
        f"{tally.tried} networks, {counted} not compared because of a note, {tally.refused} refused, "
        f"{tally.defects} defects"
    )
    return tally.defects
