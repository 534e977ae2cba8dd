"""The ONNX format. PyTorch modules and Keras models are converted to it before they are read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cnn.network import Network
from cnn.onnx.network import read_onnx
from systolic.front_ends.front_end import FrontEnd, LoadOptions
from systolic.model import Model

ONNX_FILE = "model/network.onnx"
"""The path of the network file in a design that was generated from an ONNX file."""


def read(path: Path, options: LoadOptions) -> Model:
    """Return the model of an ONNX file. Raises the errors of ``read_onnx``."""
    onnx = read_onnx(path, options.size, options.cuts, options.check)
    quantized = onnx.quantized and replace(onnx.quantized, labels=onnx.network.labels)
    return Model(onnx.network, "plain", {ONNX_FILE: onnx.data}, quantized, onnx.notes)


def reread(path: Path) -> Network:
    """Return the float network of a design's ONNX file, also if the file is quantised."""
    return read_onnx(path).network


ONNX = FrontEnd("an .onnx file", read, reread, takes=("names", "size", "cuts"), holds="weights")
