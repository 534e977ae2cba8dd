"""`python -m tests.fuzz integers`: compare random quantised graphs with onnxruntime's or qonnx's integers.

Graphs are drawn as QDQ, QOperator and QONNX, and every quantised tensor is compared. They have branches and several
heads, and maps of 2 to 8 bits, signed or unsigned, with or without zero points. Weights have one scale or one scale per
filter, and scales are powers of two or any number. Quantisers follow a function, a Clip, or the sums directly.

Each layer reads the other runtime's integers, if these are known, so that no difference hides another. A layer may
differ by one step if the reader's notes name it, or in the few values for which rounding in float32 decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime
from onnx import helper

from cnn.integer_model import run_node
from cnn.onnx.network import read_model
from cnn.ops import Output, QActivate, QConvolution
from tests.fuzz.campaign import Campaign
from tests.fuzz.graphs.tally import count
from tests.fuzz.networks.dice import Dice
from tests.support.onnx.integers import MICROSOFT
from tests.support.onnx.sums import OfSums
from tests.support.onnx.trained import DOMAIN

Array = np.ndarray[Any, Any]

SIDES = (1, 3, 8, 8)
"""The shape of the input: (1, channels, rows, columns)."""
MAX_LAYERS = 6
FLOAT_TIES, TIED_ENTRIES = 0.002, 1
"""Limits for differences that rounding in float32 explains, because values are near the middle of two integers.

The first is a share of a layer's values. The second is a number of table entries, or of integers of a convolution's
channel.
"""

KINDS = ("QDQ", "QDQ", "QOperator", "QONNX")
FUNCTIONS = ("Tanh", "Sigmoid", "Elu", "HardSwish", "Softplus", "HardSigmoid")
ON_INTEGERS = ("QLinearSigmoid", "QLinearLeakyRelu")


@dataclass(frozen=True)
class Map:
    """A quantised tensor.

    Attributes:
        name: The tensor of its floats; for QOperator, the tensor of its integers.
        side: The number of rows, and of columns.
        grid: The tensors of its scale and zero point; () for QONNX.
        scale: The scale.
    """

    name: str
    channels: int
    side: int
    grid: tuple[str, ...] = ()
    scale: float = 0.0


class Drawn:
    """A random graph.

    Attributes:
        kind: The form of the file, one of KINDS.
        maps: The maps that further layers can read.
        quantised: The tensors that are compared.
        integers: For a tensor of ``quantised``, the tensor of its integers.
        powers: Whether all scales are powers of two.
        signed: Whether the maps of a QOperator graph are int8, not uint8.
        picture_of: The input image.
    """

    def __init__(self, seed: int, number: int) -> None:
        self.dice = Dice(seed, number)
        self.random = np.random.default_rng(self.dice.seed())
        self.kind = self.dice.pick(KINDS)
        self.writer = OfSums(20)
        self.maps: list[Map] = []
        self.quantised: list[str] = []
        self.integers: dict[str, str] = {}
        self.powers = self.dice.chance(0.3)
        self.signed = self.kind == "QOperator" and self.dice.chance(0.5)
        self.picture()
        for _ in range(self.dice.whole(1, MAX_LAYERS)):
            self.layer()
        self.picture_of = self.random.integers(0, 256, SIDES[1:], np.uint8)

    def step(self, low: float, high: float) -> float:
        """Return a scale between both limits. It is a power of two if all scales of the graph are."""
        scale = float(np.exp(self.random.uniform(np.log(low), np.log(high))))
        return float(2.0 ** round(np.log2(scale))) if self.powers else float(np.float32(scale))

    def picture(self) -> None:
        """Append the quantiser of the input."""
        if self.kind == "QONNX":
            scale = 1 / 256 if self.powers else 1 / 255
            name = self.put_quant("picture", 8, scale, 0, signed=False)
            self.maps.append(Map(name, 3, SIDES[2], scale=scale))
            return
        scale, zero = self.dice.pick((1 / 255, 1 / 255, 0.00391, 0.0040)), -128 if self.signed else 0
        self.maps.append(self.quantise("picture", 3, SIDES[2], 8, scale, zero, signed=self.signed))

    # --- quantisers ---------------------------------------------------------------------------------------------------

    def put_quant(self, source: str, bits: int, scale: Any, zero: int, signed: bool, narrow: bool = False) -> str:
        """Append a Quant of QONNX, and return its output."""
        inputs = [source, *(self.writer.constant(value) for value in (scale, zero, bits))]
        attributes: dict[str, Any] = {"signed": int(signed), "narrow": int(narrow), "rounding_mode": "ROUND"}
        return self.writer.put("Quant", inputs, domain=DOMAIN, **attributes)

    def quantise(self, source: str, channels: int, side: int, bits: int, scale: float, zero: int, signed: bool) -> Map:
        """Append a quantiser of floats, and return its map."""
        if self.kind == "QONNX":
            name = self.put_quant(source, bits, scale, zero, signed, bits > 2 and self.dice.chance(0.2))
            self.quantised.append(name)
            return Map(name, channels, side, scale=scale)
        kind = np.int8 if signed else np.uint8
        grid = (self.writer.constant(scale), self.writer.constant(zero, kind))
        integers = self.writer.put("QuantizeLinear", [source, *grid])
        if bits < 8 and self.kind == "QDQ":
            low = -(1 << bits - 1) if signed else 0
            ends = [self.writer.constant(end, kind) for end in (low, low + (1 << bits) - 1)]
            integers = self.writer.put("Clip", [integers, *ends])
        return self.told(Map(integers, channels, side, grid, scale))

    def told(self, map_: Map) -> Map:
        """Append a DequantizeLinear of integers, which is compared, and return the map that layers read.

        Layers of QOperator read the integers; all others read the floats.
        """
        floats = self.writer.put("DequantizeLinear", [map_.name, *map_.grid])
        self.quantised.append(floats)
        self.integers[floats] = map_.name
        return map_ if self.kind == "QOperator" else Map(floats, map_.channels, map_.side, map_.grid, map_.scale)

    def type(self, reach: float) -> tuple[int, float, int, bool]:
        """Draw the bits, the scale, the zero point and the sign of an output with values up to about ``reach``."""
        signed, bits = self.dice.chance(0.5), self.dice.pick((8, 8, 8, 4, 3, 2, 6, 5))
        if self.kind == "QOperator":  # onnxruntime's operators on integers need the same type for all maps
            signed, bits = self.signed, 8
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        zero = self.dice.pick((0, 0, self.dice.whole(low, high))) if self.kind != "QONNX" else 0
        return bits, self.step(reach / high * 0.3, reach / high * 1.2), zero, signed

    # --- layers -------------------------------------------------------------------------------------------------------

    def layer(self) -> None:
        """Append a layer that reads one of the maps, most often the last."""
        source = self.maps[-1] if self.dice.chance(0.7) else self.dice.pick(self.maps)
        others = [each for each in self.maps[1:] if (each.channels, each.side) == (source.channels, source.side)]
        first = source is self.maps[0]
        draws: list[Callable[[Map, list[Map]], Map | None]] = [self.conv] * 4
        if not first:
            draws += [self.mean] if source.side > 1 else []
            draws += [self.added] * 2 if others else []
            draws += [self.function] if self.kind != "QONNX" else []
        made = self.dice.pick(draws)(source, others)
        if made is not None:
            self.maps.append(made)

    def conv(self, source: Map, others: list[Map]) -> Map:
        """Append a convolution, a function or a Clip as exporters write them, and a quantiser."""
        dice = self.dice
        size = dice.pick((1, 3)) if source.side >= 3 else 1
        groups = source.channels if dice.chance(0.2) else 1
        filters = source.channels if groups > 1 else dice.whole(1, 5)
        bits = dice.pick((8, 8, 4, 3, 2))
        most = (1 << bits - 1) - 1
        count = source.channels // groups * size * size
        whole = self.random.integers(-most, most + 1, (filters, source.channels // groups, size, size))
        scales = np.array([self.step(0.3, 1.5) for _ in range(filters)]) / (most * np.sqrt(count))
        scales = scales.astype(np.float32) if not self.powers else 2.0 ** np.rint(np.log2(scales))
        scale: Any = scales if dice.chance(0.4) else scales[0]
        stride = dice.pick((1, 1, 2)) if source.side > 2 else 1
        side = (source.side + 2 * (size // 2) - size) // stride + 1
        options: dict[str, Any] = {"kernel_shape": [size] * 2, "pads": [size // 2] * 4, "strides": [stride] * 2}
        options["group"] = groups
        steps = (scale * np.float64(source.scale)).astype(np.float32)
        biases = self.random.integers(-400, 400, filters) if dice.chance(0.6) else None
        if self.kind == "QOperator":
            return self.integer_conv(source, whole, scale, biases, options, side)
        inputs = [source.name]
        if self.kind == "QONNX":
            column = np.reshape(scale, (-1, 1, 1, 1)) if np.ndim(scale) else scale
            floats = self.writer.constant(whole * np.float32(column))
            inputs.append(self.put_quant(floats, bits, column, 0, signed=True, narrow=bits > 1))
            if biases is not None:
                inputs.append(self.writer.constant(biases * steps))
        else:
            grid = [self.writer.constant(scale), self.writer.constant(np.zeros(np.shape(scale)), np.int8)]
            inputs.append(self.writer.put("DequantizeLinear", [self.writer.constant(whole, np.int8), *grid], axis=0))
            if biases is not None:
                grid = [self.writer.constant(steps), self.writer.constant(np.zeros(np.shape(steps)), np.int32)]
                constant = self.writer.constant(biases, np.int32)
                inputs.append(self.writer.put("DequantizeLinear", [constant, *grid], axis=0))
        sums = self.writer.put("Conv", inputs, **options)
        if dice.chance(0.15) and side >= 2:
            sums = self.writer.put("MaxPool", [sums], kernel_shape=[2, 2], strides=[2, 2])
            side //= 2
        made = self.ended(sums, filters, side)
        if dice.chance(0.15):
            self.maps.append(self.ended(sums, filters, side))  # a second head of the same sums
        return made

    def ended(self, sums: str, channels: int, side: int) -> Map:
        """Append a Relu, a Clip, a function or nothing after sums, and a quantiser."""
        between = self.dice.pick(("", "", "Relu", "Clip", "function", "function"))
        reach = 2.0
        if between == "Relu":
            sums = self.writer.put("Relu", [sums])
        elif between == "Clip":
            low, high = self.dice.pick(((0.0, 1.0), (-1.0, 1.0), (0.0, 6.0), (-0.31, 0.77)))
            sums = self.writer.put("Clip", [sums, self.writer.constant(low), self.writer.constant(high)])
            reach = high
        elif between == "function":
            kind = self.dice.pick(FUNCTIONS)
            sums = self.writer.put(kind, [sums])
            reach = 1.0 if kind in ("Tanh", "Sigmoid", "HardSigmoid") else 2.0
        return self.quantise(sums, channels, side, *self.type(reach))

    def integer_conv(
        self, source: Map, whole: Array, scale: Any, biases: Any, options: dict[str, Any], side: int
    ) -> Map:
        """Append a QLinearConv."""
        _, to, zero, signed = self.type(2.0)
        grid = (self.writer.constant(to), self.writer.constant(zero, np.int8 if signed else np.uint8))
        weights = [self.writer.constant(whole, np.int8), self.writer.constant(scale)]
        weights.append(self.writer.constant(np.zeros(np.shape(scale)), np.int8))
        inputs = [source.name, *source.grid, *weights, *grid]
        if biases is not None:
            inputs.append(self.writer.constant(biases, np.int32))
        name = self.writer.put("QLinearConv", inputs, **options)
        return self.told(Map(name, len(whole), side, grid, to))

    def mean(self, source: Map, others: list[Map]) -> Map:
        """Append a global average pool."""
        if self.kind != "QOperator":
            return self.ended(self.writer.put("GlobalAveragePool", [source.name]), source.channels, 1)
        return self.microsoft("QLinearGlobalAveragePool", [source], source.channels, 1, channels_last=0)

    def added(self, source: Map, others: list[Map]) -> Map | None:
        """Append the sum of two maps, or return None if the two cannot be added."""
        other = self.dice.pick(others)
        if self.kind == "QOperator":
            return self.microsoft("QLinearAdd", [source, other], source.channels, source.side)
        if self.kind == "QONNX" and other.scale != source.scale:
            return None  # Brevitas always gives both maps the same scale
        name = self.writer.put("Add", [source.name, other.name])
        return self.ended(name, source.channels, source.side)

    def function(self, source: Map, others: list[Map]) -> Map:
        """Append a function of a map."""
        if self.kind == "QOperator":
            return self.microsoft(self.dice.pick(ON_INTEGERS), [source], source.channels, source.side)
        name = self.writer.put(self.dice.pick(FUNCTIONS), [source.name])
        return self.quantise(name, source.channels, source.side, *self.type(1.0))

    def microsoft(self, kind: str, sources: list[Map], channels: int, side: int, **options: Any) -> Map:
        """Append one of onnxruntime's own operators on integers. All maps of these have the same integer type."""
        scale, zero = self.step(0.004, 0.03), self.dice.whole(0, 100)
        grid = (self.writer.constant(scale), self.writer.constant(zero, np.int8 if self.signed else np.uint8))
        inputs = [name for source in sources for name in (source.name, *source.grid)]
        name = self.writer.put(kind, [*inputs, *grid], domain=MICROSOFT, **options)
        return self.told(Map(name, channels, side, grid, scale))

    # --- files --------------------------------------------------------------------------------------------------------

    def model(self, ends: list[str]) -> Any:
        """Return the file with these outputs."""
        model = self.writer.model(ends, SIDES)
        model.opset_import.extend(helper.make_opsetid(domain, 1) for domain in (MICROSOFT, DOMAIN))
        for output in model.graph.output:
            output.type.tensor_type.ClearField("shape")
        return model

    def ends(self) -> list[str]:
        """Return the quantised tensors that nothing reads, and some that are read."""
        read = {name for node in self.writer.nodes for name in node.input}
        counts = Counter(name for node in self.writer.nodes for name in node.input)
        last = [n for n in self.quantised if n not in read and counts[self.integers.get(n, n)] <= 1]
        layers = self.quantised[self.kind != "QONNX" :]
        last = [name for name in last if name in layers] or layers[-1:]
        inner = [name for name in layers if name not in last and self.dice.chance(0.15)]
        return last + inner


def theirs(drawn: Drawn) -> dict[str, Array]:
    """Return every quantised tensor as onnxruntime or qonnx computes it."""
    model = drawn.model(drawn.quantised)
    feed = (drawn.picture_of[None] / np.float32(255)).astype(np.float32)
    if drawn.kind == "QONNX":
        from qonnx.core.modelwrapper import ModelWrapper
        from qonnx.core.onnx_exec import execute_onnx
        from qonnx.transformation.infer_shapes import InferShapes

        del model.opset_import[1:2]  # the model check of qonnx does not know Microsoft's domain
        full = ModelWrapper(model).transform(InferShapes())
        context = execute_onnx(full, {"picture": feed}, return_full_exec_context=True)
        return {name: context[name] for name in drawn.quantised}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # no operators are fused
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip(drawn.quantised, session.run(None, {"picture": feed}), strict=True))


def faults(drawn: Drawn, seen: Counter[str]) -> list[str]:
    """Return a sentence about each layer that differs without a note, and not because of rounding in float32.

    Args:
        seen: Counts of layers, integers and differences, to which this graph is added.

    Raises:
        SystolicError: The file is refused.
    """
    read = read_model(drawn.model(drawn.ends()), "graph.onnx", "graph")
    network = read.quantized
    assert network is not None
    right = theirs(drawn)
    known = {name: read.tensors.get(name, read.tensors.get(drawn.integers.get(name, ""))) for name in drawn.quantised}
    names = {index: name for name, index in known.items() if index is not None}
    values: list[Array | None] = [drawn.picture_of]
    told = {0: False}
    found = []
    for index, node in enumerate(network.nodes[1:], 1):
        named = any(f"'{node.name}'" in note or node.name in _listed(note) for note in read.notes)
        # A note about a layer that is not compared itself also covers the layers that read it.
        told[index] = named or any(told[i] for i in node.inputs if i not in names)
        if isinstance(node.op, Output):
            values.append(values[node.inputs[0]])
            continue
        ours = run_node(node, network.nodes, values, drawn.picture_of)
        if index in names:
            floats = np.asarray(right[names[index]], np.float64).reshape(ours.shape)
            exact = np.rint(floats / node.type.scale) + node.type.zero_point
            steps = np.abs(ours - exact)
            share = float((steps > 0).mean())
            seen["layers"] += 1
            seen["integers"] += steps.size
            if share:
                is_tie = share <= FLOAT_TIES
                if isinstance(node.op, QActivate):
                    read_there = values[node.inputs[0]]
                    assert read_there is not None
                    is_tie = is_tie or np.unique(read_there[steps > 0]).size <= TIED_ENTRIES
                elif isinstance(node.op, QConvolution):
                    off = {(int(c), int(ours[c, y, x])) for c, y, x in np.argwhere(steps > 0)}
                    is_tie = is_tie or len(off) <= TIED_ENTRIES
                what = "told" if told[index] else "float32" if is_tie else "off"
                seen[what] += int((steps > 0).sum())
                if steps.max() > 1 or what == "off":
                    kind = type(node.op).__name__
                    found.append(f"{kind} {node.name} is {steps.max():g} steps off, {share:.2%} of its values ({what})")
            ours = exact.astype(ours.dtype)
        values.append(ours)
    return found


def _listed(note: str) -> list[str]:
    """Return the names that a note lists in brackets."""
    return note.partition(" functions (")[2].partition(")")[0].split(", ")


def run(campaign: Campaign) -> int:
    """Try the campaign's graphs; print a report and return the number of defects."""
    seen: Counter[str] = Counter()

    def attempt(number: int) -> str:
        graph = Drawn(campaign.seed, number)
        found = faults(graph, seen)
        return f"{graph.kind}: {'; '.join(found)}" if found else ""

    def model(number: int) -> Any:
        graph = Drawn(campaign.seed, number)
        return graph.model(graph.ends())

    tally = count(campaign, "integers", attempt, model)
    counted = ", ".join(f"{seen[name]} {told}" for name, told in TOLD.items())
    print(f"{tally.tried} quantised graphs, {tally.refused} refused, {counted}, {tally.defects} defects")
    return tally.defects


TOLD = {
    "layers": "layers",
    "integers": "integers compared",
    "told": "off in layers that were named",
    "float32": "off by float32",
    "off": "off without a note",
}
