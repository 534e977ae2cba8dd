"""Tests of a row of values that is read as a map, as at the start of decoders, against onnxruntime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from cnn.onnx.network import network_of
from cnn.ops import Convolution, Dense, DepthToSpace
from tests.fuzz.graphs.run import difference
from tests.support.cases import cases
from tests.support.executed import executed
from tests.support.onnx.quantising import Form, quantised, steps_on_noise
from tests.support.onnx.writer import Writer

RANDOM = np.random.default_rng(61)
SIDES = (1, 3, 6, 6)
Part = Callable[[Writer, str], str]


def numbers(writer: Writer, *sides: int) -> str:
    return writer.constant(RANDOM.normal(0, 0.4, sides))


def reshaped(writer: Writer, source: str, *sides: int) -> str:
    return writer.put("Reshape", [source, writer.constant(sides, np.int64)])


def enlarged(writer: Writer, source: str) -> str:
    return writer.put("ConvTranspose", [source, numbers(writer, 4, 2, 2, 2)], strides=[2, 2])


def of_pytorch(writer: Writer, values: str) -> str:
    """Write a linear layer, a ReLU and a view, as PyTorch exports them."""
    return enlarged(writer, reshaped(writer, writer.put("Relu", [values]), 1, 4, 3, 2))


def of_tensorflow(writer: Writer, values: str) -> str:
    """Write Dense, a Reshape to channels last, and a Transpose that moves the channels to the front."""
    last = writer.put("Relu", [reshaped(writer, values, 1, 3, 2, 4)])
    return enlarged(writer, writer.put("Transpose", [last], perm=[0, 3, 1, 2]))


def before_a_norm(writer: Writer, values: str) -> str:
    """Write a batch norm over the channels of the map."""
    view = reshaped(writer, values, 1, 4, 3, 2)
    norm = [writer.constant(RANDOM.uniform(0.5, 1, 4)) for _ in range(4)]
    return enlarged(writer, writer.put("Relu", [writer.put("BatchNormalization", [view, *norm])]))


def twice(writer: Writer, values: str) -> str:
    """Read the values as a map and as a row."""
    pooled = writer.put("GlobalAveragePool", [reshaped(writer, values, 1, 4, 3, 2)])
    row = writer.put("Gemm", [values, numbers(writer, 24, 4)])
    return writer.put("Add", [pooled, reshaped(writer, row, 1, 4, 1, 1)])


def signal(writer: Writer, values: str) -> str:
    """Read the values as a signal, a map of one row."""
    return writer.put("Conv", [reshaped(writer, values, 1, 4, 6), numbers(writer, 2, 4, 3)])


PARTS: dict[str, Part] = {part.__name__: part for part in (of_pytorch, of_tensorflow, before_a_norm, twice, signal)}


def decoder(part: Part) -> Any:
    writer = Writer()
    flat = writer.put("Flatten", [writer.put("Conv", ["picture", numbers(writer, 2, 3, 3, 3)], strides=[2, 2])])
    code = writer.put("Relu", [writer.put("Gemm", [flat, numbers(writer, 8, 5)])])
    model = writer.model([part(writer, writer.put("Gemm", [code, numbers(writer, 5, 24), numbers(writer, 24)]))], SIDES)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model


@cases("name", PARTS)
def test_row_of_values_read_as_a_map_equals_onnxruntime(name: str) -> None:
    assert difference(decoder(PARTS[name]), RANDOM.random(SIDES).astype(np.float32)) < 1e-5


@cases("name, moved", [("of_pytorch", 0), ("of_tensorflow", 0), ("twice", 1)])
def test_layer_before_the_map_writes_its_values_in_order(name: str, moved: int) -> None:
    """Expect reordered filters, or a convolution that reorders the values if they have another reader."""
    network = network_of(decoder(PARTS[name]), "net.onnx", "net")
    places = [i for i, node in enumerate(network.nodes) if isinstance(node.op, DepthToSpace)]
    before = network.nodes[network.nodes[places[0]].inputs[0]]
    assert isinstance(before.op, Convolution if moved else Dense)


def test_quantised_decoder_is_within_a_step_of_onnxruntime(tmp_path: Path) -> None:
    steps = steps_on_noise(quantised(decoder(of_pytorch), tmp_path, Form(), SIDES))
    assert max(steps.values()) <= 1, steps


@pytest.mark.engine
@pytest.mark.parametrize("style", ["systolic", "streaming"])
def test_design_of_a_decoder_equals_golden_model(style: str, tmp_path: Path) -> None:
    onnx.save(decoder(of_pytorch), tmp_path / "net.onnx")
    assert executed(tmp_path / "net.onnx", style).mismatches == 0
