"""`python -m tests.fuzz sums`: compare random layers whose sums are quantised only after a function or a Clip.

All integers are compared with onnxruntime's. The layers have the forms that exporters write. Outputs have 2 to 8 bits,
signed or unsigned, with or without a zero point. Weights have one scale or one scale per filter, and scales are powers
of two or any number. An integer may differ by one if the reader's notes count it, or if rounding in float32 decides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime

from cnn.integer_model import run_integer
from cnn.onnx.network import OnnxNetwork, read_model
from tests.fuzz.campaign import Campaign
from tests.fuzz.graphs.tally import count
from tests.fuzz.networks.dice import Dice
from tests.support.onnx.sums import OfSums

SIDES = (1, 3, 24, 24)
"""The shape of the input: (1, channels, rows, columns)."""
FUNCTIONS: dict[str, dict[str, Any]] = {
    "Celu": {"alpha": 0.7},
    "Elu": {},
    "Gelu": {},
    "HardSigmoid": {},
    "HardSwish": {},
    "Mish": {},
    "Selu": {},
    "Sigmoid": {},
    "SiLU": {},
    "Softplus": {},
    "Softsign": {},
    "Tanh": {},
    "ThresholdedRelu": {"alpha": 0.6137},
}
FLOAT_TIES = 0.002
"""The share of values that may be so near the middle of two integers that rounding in float32 decides."""


def drawn(seed: int, number: int) -> tuple[Any, Any]:
    """Return a model and a uint8 image for it."""
    dice = Dice(seed, number)
    random, writer = np.random.default_rng(dice.seed()), OfSums(20)
    pixels = writer.stepped("picture", 1 / 255, 0, 8, signed=False)
    filters, size = dice.whole(1, 5), dice.pick((1, 1, 3))
    most = dice.pick((1, 7, 127))
    reach = dice.pick((0.3, 2.0, 5.0, 12.0, 60.0))
    weights = random.integers(-most, most + 1, (filters, 3, size, size)).astype(np.int8)
    scales = np.full(filters, reach / (3 * size * size * most * 0.5))
    if dice.chance(0.3):
        scales = scales * random.uniform(0.1, 1, filters)
    if dice.chance(0.3):
        scales = 2.0 ** np.rint(np.log2(scales))
    scale = scales if dice.chance(0.4) else scales[0]
    grid = [writer.constant(scale), writer.constant(np.zeros(np.shape(scale)), np.int8)]
    kernel = writer.put("DequantizeLinear", [writer.constant(weights, np.int8), *grid], axis=0)
    bias = []
    if dice.chance(0.6):
        steps = [writer.constant(scale / np.float32(255)), writer.constant(np.zeros(np.shape(scale)), np.int32)]
        whole = random.integers(-999, 1000, filters)
        bias = [writer.put("DequantizeLinear", [writer.constant(whole, np.int32), *steps], axis=0)]
    last = writer.put("Conv", [pixels, kernel, *bias], pads=[size // 2] * 4)
    if dice.chance(0.2):
        last = writer.put("MaxPool", [last], kernel_shape=[2, 2], strides=[2, 2])
    ends = [_function(writer, dice, last)]
    if dice.chance(0.2):
        ends.append(_function(writer, dice, last))
    return writer.model(ends, SIDES), random.integers(0, 256, SIDES[1:], np.uint8)


def _function(writer: OfSums, dice: Dice, last: str) -> str:
    """Append a function or a Clip of the sums, and a quantiser of its output."""
    kind = dice.pick((*FUNCTIONS, "Clip", "Clip", "Clip"))
    if kind == "Clip":
        low, high = dice.pick(((0.0, 1.0), (-1.0, 1.0), (0.0, 6.0), (-0.31, 0.77), (0.2, 3.0), (-np.inf, 0.5)))
        bounds = ["" if np.isinf(low) else writer.constant(low), writer.constant(high)]
        last = writer.put("Clip", [last, *bounds])
    elif kind == "SiLU":
        last = writer.put("Mul", [last, writer.put("Sigmoid", [last])])
    else:
        last = writer.put(kind, [last], **FUNCTIONS[kind])
    signed, bits = dice.chance(0.7), dice.pick((2, 3, 4, 5, 6, 8, 8, 8))
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    zero = dice.pick((0, 0, dice.whole(low, high)))
    scale = dice.pick((1.0, 1.0, 6.0, 0.5)) * dice.pick((1.0, 0.987, 0.73)) / high
    return writer.stepped(last, scale if dice.chance(0.7) else 2.0 ** round(np.log2(scale)), zero, bits, signed)


def fault(model: Any, picture: Any) -> str:
    """Return a sentence about the first output whose integers differ without a note, or "" if there is none.

    Raises:
        SystolicError: The model is refused.
    """
    read = read_model(model, "sums.onnx", "sums")
    assert read.quantized is not None
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    floats = session.run(None, {"picture": (picture[None] / 255).astype(np.float32)})
    outputs = run_integer(read.quantized, picture)
    for output, right in zip(model.graph.output, floats, strict=True):
        index = read.tensors[output.name]
        integers, node = outputs[index], read.quantized.nodes[index]
        assert integers is not None
        steps = np.abs(np.rint(right[0] / node.type.scale) + node.type.zero_point - integers)
        most = np.count_nonzero(steps) / steps.size
        if steps.max() > 1 or (most > FLOAT_TIES and not _counted(read, index)):
            return f"{node.name} is {steps.max():g} steps off, {most:.1%} of its values"
    return ""


def _counted(read: OnnxNetwork, index: int) -> bool:
    """Return whether a layer may differ by one: it requantises, it has its input's type, or a note names it."""
    assert read.quantized is not None
    node = read.quantized.nodes[index]
    source = read.quantized.nodes[node.inputs[0]]
    is_cut_behind = node.requantiser is not None or source.type == node.type
    return is_cut_behind or any(node.name in note for note in read.notes)


def run(campaign: Campaign) -> int:
    """Try the campaign's models; print a report and return the number of defects."""
    tally = count(
        campaign,
        "sums",
        lambda number: fault(*drawn(campaign.seed, number)),
        lambda number: drawn(campaign.seed, number)[0],
    )
    print(f"{tally.tried} models of functions on sums, {tally.refused} refused, {tally.defects} defects")
    return tally.defects
