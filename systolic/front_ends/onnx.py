"""The format ONNX; PyTorch modules and Keras models are read as files of it, too."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cnn.network import Network
from cnn.onnx.network import read_onnx
from systolic.front_ends.front_end import FrontEnd, LoadOptions
from systolic.model import Model

ONNX_FILE = "model/network.onnx"
"""The file of a design that was made from an ONNX file."""


def read(path: Path, options: LoadOptions) -> Model:
    """Return the model of an ONNX file. Raises the errors of ``read_onnx``."""
    onnx = read_onnx(path, options.size, options.cuts, options.check)
    quantized = onnx.quantized and replace(onnx.quantized, labels=onnx.network.labels)
    return Model(onnx.network, "plain", {ONNX_FILE: onnx.data}, quantized, onnx.notes)


def reread(path: Path) -> Network:
    """Return the network of a design's ONNX file; of one that holds integers its float form."""
    return read_onnx(path).network


ONNX = FrontEnd("an .onnx file", read, reread, takes=("names", "size", "cuts"), holds="numbers")
