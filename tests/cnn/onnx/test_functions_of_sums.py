"""Tests of functions applied directly to quantised sums, against onnxruntime for every possible sum."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from cnn.integer_model import run_integer
from cnn.onnx.network import read_onnx
from cnn.ops import Activate, QActivate, QConvolution
from tests.support.cases import by_default, cases
from tests.support.onnx.sums import SIDE, OfSums, every_sum, off

FUNCTIONS: dict[str, tuple[float, bool, dict[str, Any]]] = {
    "Tanh": (1.0, True, {}),
    "Sigmoid": (1.0, False, {}),
    "Elu": (6.0, True, {}),
    "HardSwish": (6.0, True, {}),
    "Gelu": (6.0, True, {}),
    "SiLU": (6.0, True, {}),
    "ThresholdedRelu": (6.0, True, {"alpha": 1.7123}),
    "HardSigmoid": (1.0, False, {}),
}
"""Per function: the upper limit of its outputs, whether they are signed, and the attributes."""

CASES: tuple[tuple[int, float, tuple[float, ...]], ...] = (
    (8, 0.02, ()),
    (8, 1 / 256, ()),
    (8, 0.0013, ()),
    (6, 0.0071, ()),
    (4, 0.003, ()),
    (3, 1 / 64, ()),
    (2, 0.011, ()),
    (8, 0.003, (1.0, 0.37)),
    (4, 0.0013, (1.0, 0.37)),
)
"""Bits of the output, the float value of one unit of a sum, and the gain per channel if the channels differ."""


FLOAT_TIES = 4
"""Number of values, of 7,688, so close to the middle between two integers that float32 rounding decides."""


def function(writer: OfSums, kind: str, source: str) -> str:
    """Write the function of a tensor, and return the output."""
    if kind == "SiLU":
        return writer.put("Mul", [source, writer.put("Sigmoid", [source])])
    return writer.put(kind, [source], **FUNCTIONS[kind][2])


@pytest.mark.parametrize("kind", by_default(3, FUNCTIONS))
def test_function_of_sums_equals_onnxruntime_for_every_sum(kind: str, tmp_path: Path) -> None:
    """Expect equality if the sums of all channels are multiples of one unit, up to 4,096 of them.

    Otherwise some values may differ by one step.
    """
    reach, signed, _ = FUNCTIONS[kind]
    for bits, step, gains in CASES:
        writer = OfSums(20)
        last = function(writer, kind, writer.sums(step, gains=gains))
        scale = 0.98713 * reach / ((1 << bits - 1) - 1 if signed else (1 << bits) - 1)
        path = writer.saved(writer.stepped(last, scale, 0, bits, signed), tmp_path)
        steps = off(path, read_onnx(path))
        assert steps.max() <= 1, (step, bits, int(steps.max()))
        most = FLOAT_TIES if not gains else 0.02 * steps.size if bits == 8 else 0.001 * steps.size
        assert np.count_nonzero(steps) <= most, (step, bits)


def test_image_reaches_every_sum() -> None:
    sums = (every_sum().astype(np.int64) * np.array((1, 7, -7))[:, None, None]).sum(axis=0)
    assert np.array_equal(np.unique(sums), np.arange(-7 * 255, 8 * 255 + 1))


@cases(
    "step, bits, exact",
    [
        (0.03, 8, True),
        (0.02, 9, True),
        (0.01, 10, True),
        (1 / 256, 11, True),
        (0.0015, 12, True),
        (0.0011, 12, False),
    ],
)
def test_function_of_up_to_4096_sums_has_a_table_entry_per_sum(
    step: float, bits: int, exact: bool, tmp_path: Path
) -> None:
    """Expect sums of at most 12 bits. More than 4,096 sums share entries, which is noted and may differ by a step."""
    writer = OfSums(20)
    offsets = (0, -300) if exact else (0, -900)
    path = writer.saved(writer.stepped(writer.put("Tanh", [writer.sums(step, offsets)]), 0.0078), tmp_path)
    read = read_onnx(path)
    assert read.quantized is not None
    assert [node.type.datatype.bits for node in read.quantized.nodes[1:]] == [bits, 8]
    steps = off(path, read)
    assert steps.max() <= (not exact)
    assert bool(read.notes) is not exact


@cases("gains", [(1.0, 3.0, 2.0), (0.25, 1.0, 0.5)])
@cases("kind", ["Tanh", "Elu"])
def test_function_of_channels_with_multiple_gains_equals_onnxruntime(
    gains: tuple[float, ...], kind: str, tmp_path: Path
) -> None:
    """Use gains that are multiples of the lowest, which sets the table's step, and zero points between those steps."""
    writer = OfSums(20)
    last = function(writer, kind, writer.sums(1 / 60, (7, -300, 11), gains))
    path = writer.saved(writer.stepped(last, 0.9 * FUNCTIONS[kind][0] / 127), tmp_path)
    read = read_onnx(path)
    assert np.count_nonzero(off(path, read)) <= FLOAT_TIES
    assert read.notes == ()


def test_function_of_channels_with_float_biases_rarely_differs(tmp_path: Path) -> None:
    """Use biases that are fractions of a step, as Brevitas exports them. They are added to the product."""
    writer = OfSums(20)
    bias = writer.constant(np.array([0.3718, -1.0271]).reshape(1, 2, 1, 1))
    shifted = writer.put("Add", [writer.sums(1 / 256), bias])
    path = writer.saved(writer.stepped(writer.put("Sigmoid", [shifted]), 1 / 255, signed=False), tmp_path)
    steps = off(path, read_onnx(path))
    assert steps.max() == 1
    assert np.count_nonzero(steps) <= 0.01 * steps.size


def test_sums_that_differ_from_the_file_are_counted_in_a_note(tmp_path: Path) -> None:
    """Use channels with different steps, for which no shared table is right for every sum."""
    writer = OfSums(20)
    last = writer.put("Tanh", [writer.sums(1 / 1024, gains=(1.0, 0.37))])
    path = writer.saved(writer.stepped(last, 1 / 127), tmp_path)
    read = read_onnx(path)
    steps = off(path, read)
    assert steps.max() == 1
    sums = (every_sum().astype(np.int64) * np.array((1, 7, -7))[:, None, None]).sum(axis=0).ravel()
    _, first = np.unique(sums, return_index=True)
    differ = int(np.count_nonzero(steps.reshape(2, -1)[:, first]))
    (note,) = read.notes
    assert f" differ from the file for {differ:,} of {2 * first.size:,} integers " in note
    assert "(tanh1)" in note


@cases(
    "low, high, scale, zero, signed, table",
    [
        (0.0, 1.0, 1 / 255, 0, False, False),  # both saturate at the same integers
        (-1.0, 1.0, 1 / 127, 0, True, True),  # −128 is below the range of the Clip
        (0.0, 1.3, 1 / 127, 0, True, False),  # a ReLU; the integers saturate below 1.3
        (-0.31, 0.77, 1 / 100, 3, True, True),
        (0.0, 6.0, 0.0507, 20, False, True),
    ],
)
def test_clip_between_sums_and_their_quantiser_is_exact(
    low: float, high: float, scale: float, zero: int, signed: bool, table: bool, tmp_path: Path
) -> None:
    writer = OfSums(20)
    ends = [writer.constant(low), writer.constant(high)]
    last = writer.put("Clip", [writer.sums(1 / 256), *ends])
    path = writer.saved(writer.stepped(last, scale, zero, 8, signed), tmp_path)
    read = read_onnx(path)
    assert read.quantized is not None
    kinds = [type(node.op) for node in read.quantized.nodes[1:]]
    assert kinds == [QConvolution, *([QActivate] if table else [])]
    assert [isinstance(node.op, Activate) for node in read.network.nodes[2:]] == [True] * table
    steps = off(path, read)
    plain = OfSums(20)
    bare = plain.saved(plain.stepped(plain.sums(1 / 256), scale, zero, 8, signed), tmp_path)
    assert np.count_nonzero(steps) <= np.count_nonzero(off(bare, read_onnx(bare))), "the Clip must not round"
    assert steps.max() <= 1


def test_clip_of_sums_with_other_readers_becomes_a_function(tmp_path: Path) -> None:
    writer = OfSums(20)
    sums = writer.sums(0.02)
    clipped = writer.put("Clip", [sums, writer.constant(-0.5), writer.constant(0.9)])
    first = writer.stepped(clipped, 1 / 100)
    second = writer.stepped(writer.put("Tanh", [sums]), 1 / 100)
    path = writer.saved(writer.stepped(writer.put("Add", [first, second]), 1 / 60), tmp_path)
    assert off(path, read_onnx(path)).max() <= 1


def test_functions_of_shared_sums_are_exact(tmp_path: Path) -> None:
    """Use a Clip to 0…6 of shared sums, which becomes a convolution. Both readers need exact sums."""
    writer = OfSums(20)
    sums = writer.sums(1 / 256, (0,))
    writer.stepped(writer.put("Clip", [sums, writer.constant(0.0), writer.constant(6.0)]), 1 / 32.7)
    clipped = writer.nodes[-1].output[0]
    curved = writer.stepped(writer.put("Tanh", [sums]), 1 / 127)
    path = tmp_path / "net.onnx"
    onnx.save(writer.model([clipped, curved], (1, 3, SIDE, SIDE)), path)
    read = read_onnx(path)
    assert read.quantized is not None
    picture = every_sum()
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    integers = run_integer(read.quantized, picture)
    for name, right in zip(
        (clipped, curved), session.run(None, {"picture": (picture[None] / 255).astype(np.float32)}), strict=True
    ):
        type_, ours = read.quantized.nodes[read.tensors[name]].type, integers[read.tensors[name]]
        assert ours is not None
        steps = np.abs(np.rint(right[0] / type_.scale) + type_.zero_point - ours)
        assert np.count_nonzero(steps) <= FLOAT_TIES, name


@cases("kind", ["Add", "Mul", "GlobalAveragePool"])
def test_function_of_combined_maps_equals_onnxruntime(kind: str, tmp_path: Path) -> None:
    """Use maps of equal scales, so that their sums are multiples of one step. A mean has about a million values."""
    writer = OfSums(20)
    first = writer.stepped(writer.sums(0.00371), 1 / 20)
    second = writer.stepped(writer.sums(0.00419, (5, 77)), 1 / 20)
    sums = writer.put(kind, [first] if kind == "GlobalAveragePool" else [first, second])
    path = writer.saved(writer.stepped(writer.put("Tanh", [sums]), 1 / 127), tmp_path)
    read = read_onnx(path)
    steps = off(path, read)
    assert np.count_nonzero(steps) <= 0.005 * steps.size
    assert steps.max() <= 1
    assert not any("functions" in note for note in read.notes) or kind == "GlobalAveragePool"


def test_quantisers_of_one_sum_equal_onnxruntime(tmp_path: Path) -> None:
    """Use one quantiser after a function, one that saturates early, and one of few bits."""
    writer = OfSums(20)
    sums = writer.sums(1 / 256, (0, -300))
    ends = [
        writer.stepped(writer.put("Tanh", [sums]), 1 / 127),
        writer.stepped(sums, 1 / 97, 5),
        writer.stepped(sums, 1 / 2.9, 1, 4, signed=False),
    ]
    path = tmp_path / "net.onnx"
    onnx.save(writer.model(ends, (1, 3, SIDE, SIDE)), path)
    read = read_onnx(path)
    assert read.quantized is not None
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    integers = run_integer(read.quantized, every_sum())
    told = session.run(None, {"picture": (every_sum()[None] / 255).astype(np.float32)})
    for name, right in zip(ends, told, strict=True):
        type_, ours = read.quantized.nodes[read.tensors[name]].type, integers[read.tensors[name]]
        assert ours is not None
        steps = np.abs(np.rint(right[0] / type_.scale) + type_.zero_point - ours)
        assert np.count_nonzero(steps) <= FLOAT_TIES, name
