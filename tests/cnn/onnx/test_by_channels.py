"""Tests of the maximum or minimum of a map and a constant per channel, and of slopes per channel (PRelu)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from cnn.onnx.network import read_onnx
from tests.support.cases import cases
from tests.support.onnx.networks import check_against_runtime, convolved, pixels
from tests.support.onnx.quantising import steps_on_noise
from tests.support.onnx.writer import Writer

SHAPE = (1, 3, 9, 7)
NUMBERS = (-0.9, 0.0, 0.4, 2.5)
SLOPES = {"some": (0.1, -0.5, 0.9, 0.0), "above 1": (0.25, 1.0, 1.75, -0.3)}


def column(writer: Writer, numbers: Sequence[float]) -> str:
    return writer.constant(np.reshape(numbers, (-1, 1, 1)))


@cases("reversed_inputs", [False, True])
@cases("kind", ["Max", "Min"])
def test_max_of_a_map_and_a_constant_per_channel_equals_onnxruntime(kind: str, reversed_inputs: bool) -> None:
    writer = Writer()
    source = convolved(writer, "picture", 3, 4)
    inputs = [source, column(writer, NUMBERS)]
    last = writer.put(kind, inputs[::-1] if reversed_inputs else inputs)
    network = check_against_runtime(writer.model([last], SHAPE), pixels(*SHAPE[1:]))
    assert [node.name for node in network.nodes] == ["input", "conv1", "conv2"], (
        "the first convolution must include the offset and the ReLU"
    )


def test_max_does_not_change_a_map_with_other_readers() -> None:
    writer = Writer()
    source = writer.put("Sigmoid", [convolved(writer, "picture", 3, 4)])
    last = writer.put("Max", [source, column(writer, NUMBERS)])
    last = writer.put("Add", [last, writer.put("Mul", [last, source])])
    check_against_runtime(writer.model([last, source], SHAPE), pixels(*SHAPE[1:]))


class Stepped(Writer):
    """Writer of maps of unsigned 8-bit integers with a zero point of 117."""

    def stepped(self, source: str, scale: float, zero: int) -> str:
        grid = [self.constant(scale), self.constant(zero, np.uint8)]
        return self.put("DequantizeLinear", [self.put("QuantizeLinear", [source, *grid]), *grid])

    def sums(self) -> str:
        random = np.random.default_rng(6)
        kernel = [self.constant(random.integers(-127, 128, (4, 3, 3, 3)), np.int8), self.constant(0.004)]
        kernel = [self.put("DequantizeLinear", kernel)]
        return self.stepped(self.put("Conv", [self.stepped("picture", 1 / 255, 0), *kernel]), 0.021, 117)


def steps(writer: Writer, last: str, folder: Path) -> dict[str, int]:
    path = folder / "net.onnx"
    onnx.save(writer.model([last], SHAPE), path)
    return steps_on_noise(path)


@cases("kind", ["Max", "Min"])
def test_max_of_integers_is_within_a_step_of_onnxruntime(kind: str, tmp_path: Path) -> None:
    writer = Stepped()
    last = writer.put(kind, [writer.sums(), column(writer, NUMBERS)])
    found = steps(writer, writer.stepped(last, 0.017, 130), tmp_path)
    assert len(found) == 3
    assert max(found.values()) <= 1, found


@cases("slopes", SLOPES.values(), ids=[*SLOPES])
def test_prelu_of_integers_is_within_a_step_of_onnxruntime(slopes: Any, tmp_path: Path) -> None:
    writer = Stepped()
    last = writer.put("PRelu", [writer.sums(), column(writer, slopes)])
    found = steps(writer, writer.stepped(last, 0.019, 99), tmp_path)
    assert len(found) == 3
    assert max(found.values()) <= 1, found
    network = read_onnx(tmp_path / "net.onnx").quantized
    assert network is not None
    (added,) = (node for node in network.nodes if hasattr(node.op, "multipliers"))
    assert len({network.nodes[i].type for i in added.inputs}) == 1, "the inputs must have one scale"
