"""Files that onnxruntime quantises, and a comparison with onnxruntime tensor by tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from cnn.integer_model import run_node
from cnn.onnx.network import OnnxNetwork, read_onnx

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Form:
    """Options of onnxruntime's quantisation."""

    format: str = "QDQ"
    per_channel: bool = False
    symmetric: bool = False
    activations: str = "QInt8"
    weights: str = "QInt8"

    def __str__(self) -> str:
        return "-".join(
            [
                self.format,
                "per-channel" if self.per_channel else "per-tensor",
                "symmetric" if self.symmetric else "asymmetric",
                self.activations,
                self.weights,
            ]
        )


class Pictures(CalibrationDataReader):  # type: ignore[misc]
    """Calibration images with values from 0 to 1. The first two are black and white."""

    def __init__(self, shape: Sequence[int], count: int = 6) -> None:
        random = np.random.default_rng(5)
        pictures = [np.full(shape, value, np.float32) for value in (0, 1)]
        pictures += [(random.integers(0, 256, shape) / 255).astype(np.float32) for _ in range(count)]
        self.left = iter(pictures)

    def get_next(self) -> dict[str, Array] | None:
        """Return the next image, or None after the last."""
        picture = next(self.left, None)
        return None if picture is None else {"picture": picture}


def folded(model: Any, folder: Path) -> Any:
    """Return the model with its batch norms folded into convolutions, as onnxruntime's quantiser requires."""
    source, target = folder / "unfolded.onnx", folder / "folded.onnx"
    onnx.save(model, source)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(target)
    onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    return onnx.load(target)


def quantised(model: Any, folder: Path, form: Form, shape: Sequence[int]) -> Path:
    """Return the path of a float model that onnxruntime has quantised. The model's input is named "picture"."""
    source, target = folder / "float.onnx", folder / f"{form}.onnx"
    onnx.save(model, source)
    quantize_static(
        source,
        target,
        Pictures(shape),
        quant_format=QuantFormat[form.format],
        per_channel=form.per_channel,
        activation_type=QuantType[form.activations],
        weight_type=QuantType[form.weights],
        extra_options={"ActivationSymmetric": form.symmetric},
    )
    return target


def run_file(path: Path, picture: Array, tensors: Sequence[str] = ()) -> dict[str, Array]:
    """Return onnxruntime's outputs and further tensors by name, for an image of uint8 [channels, height, width].

    No operators are fused, so that each one is computed as its documentation says.
    """
    model = onnx.load(path)
    kept = {value.name for value in model.graph.output}
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in tensors if name not in kept)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    feed = {"picture": (picture[None] / np.float32(255)).astype(np.float32)}
    return dict(zip(names, session.run(None, feed), strict=True))


def steps_on_noise(path: Path, seed: int = 3) -> dict[str, int]:
    """Return ``differences`` for a file of a quantised network, on noise."""
    read = read_onnx(path)
    assert read.quantized is not None
    shape = read.network.input_shape
    sides = (shape.channels, shape.height, shape.width)
    return differences(path, read, np.random.default_rng(seed).integers(0, 256, sides, np.uint8))


def differences(path: Path, read: OnnxNetwork, picture: Array) -> dict[str, int]:
    """Return the greatest difference from onnxruntime in steps, for each tensor that the file quantises.

    Each layer reads onnxruntime's values, so that differences do not propagate. All tensors have their channels first.
    """
    network = read.quantized
    assert network is not None
    names = {node.output[0]: node for node in onnx.load(path).graph.node if node.op_type.startswith("Q")}
    entry = onnx.load(path).graph.input[0].name
    given = run_file(path, np.moveaxis(picture, 0, -1) if entry in read.last else picture, tuple(names))
    theirs: dict[int, Array] = {0: picture.astype(np.int64)}
    for name, index in read.tensors.items():
        if name in names and index:
            node = network.nodes[index]
            integers = given[name].astype(np.int64) - (128 if given[name].dtype == np.uint8 else 0)
            sides = (node.shape.channels, node.shape.height, node.shape.width)
            last = name in read.last
            theirs[index] = (
                np.moveaxis(integers.reshape(*sides[1:], sides[0]), -1, 0) if last else integers.reshape(sides)
            )
    steps = {}
    values: list[Array] = []
    for index, node in enumerate(network.nodes):
        if node.op.on_host:
            values.append(values[node.inputs[0]])
            continue
        carried: list[Array | None] = [
            np.asarray(value, node.type.datatype.carrier) for node, value in zip(network.nodes, values, strict=False)
        ]
        ours = np.asarray(run_node(node, network.nodes, carried, picture), np.int64)
        if index in theirs:
            steps[node.name] = int(np.abs(ours - theirs[index]).max())
        values.append(theirs.get(index, ours))
    return steps
