"""Tests of the cut that an error offers: it must keep a layer and the heads, and map in the chosen style."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from boards.errors import SeveralFaultsError
from cnn.onnx.advice import Check
from cnn.onnx.network import read_onnx
from cnn.ops import Detection
from scheduler.streaming.refusals import check_mappable
from tests.support.command_line import call
from tests.support.onnx.writer import Writer

RANDOM = np.random.default_rng(13)
BINS, CLASSES = 4, 3


def conv(writer: Writer, x: str, filters: int, channels: int) -> str:
    return writer.put("Conv", [x, writer.constant(RANDOM.normal(0, 0.3, (filters, channels, 3, 3)))], pads=[1] * 4)


def saved(model: Any, folder: Path) -> Path:
    onnx.save(model, folder / "net.onnx")
    return folder / "net.onnx"


def offered(path: Path, check: Check | None = None, cuts: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the tensors at which the error for this file offers to cut the graph."""
    with pytest.raises(SeveralFaultsError) as caught:
        read_onnx(path, cuts=cuts, check=check)
    found = re.search("--cut (.*)$", caught.value.remedy)
    return tuple(found[1].split()) if found else ()


def test_cut_at_a_view_of_the_input_is_not_offered(tmp_path: Path) -> None:
    writer = Writer()
    view = writer.put("Reshape", ["picture", writer.constant([1, 3, 48], np.int64)])
    path = saved(writer.model([writer.put("Sin", [view])], (1, 3, 6, 8)), tmp_path)
    assert offered(path) == ()


def test_offered_cut_is_a_tensor_of_the_file(tmp_path: Path) -> None:
    """Use a fused operator, whose inner sum is not a tensor of the file."""
    writer = Writer()
    x = conv(writer, "picture", 4, 3)
    fused = writer.put(
        "FusedConv", [x, writer.constant(np.ones((4, 4, 1, 1)))], domain="com.microsoft", activation="Relu"
    )
    path = saved(writer.model([writer.put("Sin", [fused])], (1, 3, 6, 8)), tmp_path)
    assert offered(path) == (fused,)
    assert len(read_onnx(path, cuts=(fused,)).network.nodes) == 3


def halves(writer: Writer) -> tuple[str, Any]:
    """Write a convolution, a slice of half of its channels, and a Sin, which no layer computes.

    Returns:
        The output of the convolution, and the model.
    """
    x = conv(writer, "picture", 8, 3)
    half = writer.put("Slice", [x, *(writer.constant([n], np.int64) for n in (0, 4, 1))])
    return x, writer.model([writer.put("Sin", [half])], (1, 3, 6, 8))


def test_offered_cut_maps_in_the_chosen_style(tmp_path: Path) -> None:
    """Use a slice of channels, with which a streaming pipeline cannot end."""
    x, model = halves(Writer())
    path = saved(model, tmp_path)
    assert offered(path) != (x,)
    assert offered(path, check_mappable) == (x,)
    check_mappable(read_onnx(path, cuts=(x,)).network)


def test_command_offers_a_cut_that_its_style_maps(tmp_path: Path) -> None:
    x, model = halves(Writer())
    path = saved(model, tmp_path)
    pipeline = ("--board", "zcu104", "--fps", "100")
    for command in (("fold",), ("generate", "--style", "streaming", "-o", tmp_path / "design")):
        done = call(command[0], path, *command[1:], *pipeline)
        assert done.refusal is not None
        assert done.refusal.remedy.endswith(f"--cut {x}")
    assert call("fold", path, *pipeline, "--cut", x).code == 0


def detector(writer: Writer, *curves: str) -> tuple[list[tuple[str, str]], Any]:
    """Write a head of YOLOv8's layout with one scale per curve.

    Args:
        curves: per scale, the operator applied to its class map, or "" for none.

    Returns:
        The box and class tensors per scale, and the model.
    """
    x, pairs, rows = "picture", [], []
    for number, curve in enumerate(curves):
        x = writer.put("Relu", [conv(writer, x, 4, 4 if number else 3)])
        boxes, classes = conv(writer, x, 4 * BINS, 4), conv(writer, x, CLASSES, 4)
        classes = writer.put(curve, [classes]) if curve else classes
        pairs.append((boxes, classes))
        both = writer.put("Concat", [boxes, classes], axis=1)
        rows.append(writer.put("Reshape", [both, writer.constant([1, 4 * BINS + CLASSES, -1], np.int64)]))
        x = writer.put("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    joined = writer.put("Concat", rows, axis=2)
    bins = writer.put("Split", [joined, writer.constant([4 * BINS, CLASSES], np.int64)], 2, axis=1)
    bins = writer.put("Reshape", [bins, writer.constant([1, 4, BINS, -1], np.int64)])
    bins = writer.put("Softmax", [writer.put("Transpose", [bins], perm=(0, 2, 1, 3))], axis=1)
    mean = writer.constant(np.arange(BINS).reshape(1, BINS, 1, 1))
    return pairs, writer.model([writer.put("Conv", [bins, mean])], (1, 3, 16, 16))


def test_offered_cut_keeps_the_heads_that_map(tmp_path: Path) -> None:
    pairs, model = detector(Writer(), "", "Sin")
    path = saved(model, tmp_path)
    cuts = offered(path)
    assert cuts == pairs[0]
    network = read_onnx(path, cuts=cuts).network
    assert [node.op.kind for node in network.nodes if isinstance(node.op, Detection)] == ["anchor-free"]


def test_cut_at_all_tensors_of_a_head_keeps_the_head(tmp_path: Path) -> None:
    pairs, model = detector(Writer(), "", "")
    path = saved(model, tmp_path)
    automatic = [node.name for node in read_onnx(path).network.nodes]
    assert [node.name for node in read_onnx(path, cuts=(*pairs[0], *pairs[1])).network.nodes] == automatic
    heads = [isinstance(node.op, Detection) for node in read_onnx(path, cuts=(*pairs[0], pairs[1][0])).network.nodes]
    assert heads.count(True) == 1
    assert Detection not in [type(node.op) for node in read_onnx(path, cuts=(pairs[0][1],)).network.nodes]
