"""The outputs of ONNX files by name, in floats and in integers, and a comparison with onnxruntime."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import onnxruntime

from boards.errors import SystolicError
from cnn.float_model import run_float
from cnn.integer_model import dequantise, run_integer
from cnn.network import Network
from cnn.onnx.network import OnnxNetwork, read_model
from cnn.quantized import QuantizedNetwork
from host.contract.named_outputs import run_steps, sides_of
from systolic.network_outputs import layer_per_node, tensors
from tests.support.onnx.writer import Writer


def runtime_outputs(model: Any, picture: Any) -> dict[str, Any]:
    """Return onnxruntime's outputs by name for an input without its batch axis."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    values = session.run(None, {session.get_inputs()[0].name: picture[None]})
    return {output.name: value for output, value in zip(session.get_outputs(), values, strict=True)}


def outputs_of(network: Network | QuantizedNetwork, maps: Any) -> dict[str, Any]:
    """Return the outputs by name. ``maps`` has the real values [channels, height, width] of each node."""
    made = {}
    for output in tensors(network, layer_per_node(network)):
        read = [maps[index] for index in output.layers]
        made[output.name] = run_steps(output.steps, read)
        assert made[output.name].shape == sides_of(output.steps, [(1, *array.shape) for array in read])
    return made


def float_outputs(network: Network, picture: Any) -> dict[str, Any]:
    """Return the outputs by name for an image of float32 [channels, height, width]."""
    return outputs_of(network, run_float(network, picture))


def integer_outputs(network: QuantizedNetwork, picture: Any) -> dict[str, Any]:
    """Return the dequantised outputs by name for an image of uint8 [channels, height, width]."""
    pairs = zip(run_integer(network, picture), network.nodes, strict=True)
    return outputs_of(network, [None if array is None else dequantise(array, node.type) for array, node in pairs])


def with_a_reader(writer: Writer, name: str) -> str:
    """Append a Neg that reads the tensor, and return its output. The host does not compute a Neg."""
    return writer.put("Neg", [name])


def check_the_hosts(models: Iterable[Any], picture: Any) -> int:
    """Check the outputs of the models that can be read, and return their number."""
    count = 0
    for model in models:
        for output in model.graph.output:
            output.type.Clear()
        try:
            read_model(model, "net.onnx", "net")
        except SystolicError:
            continue
        check_outputs(model, picture)
        count += 1
    return count


def check_outputs(model: Any, picture: Any) -> OnnxNetwork:
    """Check the outputs of a float model against onnxruntime by name, shape and type, to 1e-4 of the greatest value."""
    read = read_model(model, "net.onnx", "net")
    ours, theirs = float_outputs(read.network, picture), runtime_outputs(model, picture)
    assert list(ours) == list(theirs)
    for name, expected in theirs.items():
        assert (ours[name].shape, ours[name].dtype) == (expected.shape, expected.dtype), name
        most = 1e-4 * max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(ours[name], expected, rtol=0, atol=most, err_msg=name)
    return read
