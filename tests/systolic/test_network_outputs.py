"""Test the heads and outputs in the manifest, which describe how the host reads a network's results."""

from __future__ import annotations

import numpy as np

from cnn.onnx.network import network_of
from cnn.quantisation.calibration import calibrate
from cnn.quantisation.quantise import quantise
from host.vision.heads.head import SEGMENTATION
from systolic.network_outputs import heads, outputs
from tests.support.cases import cases
from tests.support.onnx.writer import Writer


@cases("kind", ["Softmax", "LogSoftmax"])
@cases("chosen", [False, True])
def test_softmax_per_position_is_one_segmentation_head(kind: str, chosen: bool) -> None:
    """Expect one head, even if an ArgMax reads the softmax."""
    writer = Writer()
    kernel = writer.constant(np.random.default_rng(1).normal(size=(5, 3, 3, 3)))
    last = writer.put(kind, [writer.put("Conv", ["picture", kernel])], axis=1)
    last = writer.put("ArgMax", [last], axis=1) if chosen else last
    network = network_of(writer.model([last], (1, 3, 6, 8)), "net.onnx", "net")
    quantized = quantise(network, calibrate(network, [np.random.default_rng(2).random((3, 6, 8)).astype(np.float32)]))
    (head,) = heads(quantized, {1: 0})
    assert (head.head.kind, head.head.classes, head.layers) == (SEGMENTATION, 5, (0,))
    assert outputs(quantized, {1: 0}) == ()


def test_softmax_of_one_position_is_not_a_segmentation() -> None:
    writer = Writer()
    kernel = writer.constant(np.random.default_rng(1).normal(size=(5, 3, 6, 8)))
    last = writer.put("Softmax", [writer.put("Conv", ["picture", kernel])], axis=1)
    network = network_of(writer.model([last], (1, 3, 6, 8)), "net.onnx", "net")
    quantized = quantise(network, calibrate(network, [np.random.default_rng(2).random((3, 6, 8)).astype(np.float32)]))
    assert heads(quantized, {1: 0}) == ()
