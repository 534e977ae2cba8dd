"""`python -m tests.fuzz graphs`: compare all outputs of random graphs of ONNX operators with onnxruntime's.

The networks of `networks` are darknet networks as one tool exports them. Here an operator reads any tensor whose shape
it accepts: through several names, before and after activations, flat or as a map. A graph has one or several outputs,
at any tensor, and their names and shapes are compared too. A graph that is refused with a sentence is counted, and is
not a defect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime

from cnn.float_model import run_float
from cnn.network import Network
from cnn.onnx.network import read_model
from tests.fuzz.campaign import Campaign
from tests.fuzz.graphs.operators import DRAWS, Graph, Sides
from tests.fuzz.graphs.tally import count
from tests.fuzz.networks.dice import Dice
from tests.support.onnx.outputs import outputs_of

MAX_OPERATIONS = 12
MAX_VALUES = 4000
"""The limit for the number of values of a tensor."""

TOLD_EVERY = 500
"""The number of graphs after which the count is printed."""


def drawn(seed: int, number: int) -> tuple[Any, Any]:
    """Return a model that the shape inference of onnx accepts, and a float32 image of shape (1, …) for it."""
    graph = Graph(Dice(seed, number))
    for _ in range(graph.dice.whole(1, MAX_OPERATIONS)):
        name, kept = graph.source(), (len(graph.writer.nodes), len(graph.writer.arrays))
        given = graph.dice.pick(DRAWS)(graph, name, graph.tensors[name])
        sides = _sides(graph, given) if given else None
        if sides is None:
            del graph.writer.nodes[kept[0] :], graph.writer.arrays[kept[1] :]
        else:
            graph.tensors |= sides
    read = {name for node in graph.writer.nodes for name in node.input}
    inside = [name for name in graph.tensors if name in read and name != "picture" and graph.dice.chance(0.1)]
    ends = [name for name in graph.tensors if name not in read] + inside
    pixels = graph.random.random(graph.shape).astype(np.float32)
    return _model(graph, ends or [list(graph.tensors)[-1]]), pixels


def _sides(graph: Graph, names: Sequence[str]) -> dict[str, Sides] | None:
    """Return the shapes of the tensors ``names``.

    Return None if the shape inference fails, or if a tensor has too many values or a shape that the graphs do not use.
    """
    try:
        model = onnx.shape_inference.infer_shapes(_model(graph, names), strict_mode=True, data_prop=True)
    except Exception:  # onnx raises no narrower class for shapes that do not fit
        return None
    values = {value.name: value.type.tensor_type.shape.dim for value in model.graph.output}
    sides = {name: tuple(side.dim_value for side in values[name]) for name in names}
    fits = all(2 <= len(s) <= 4 and s[0] == 1 and min(s) >= 1 and np.prod(s) <= MAX_VALUES for s in sides.values())
    return sides if fits else None


def _model(graph: Graph, ends: Sequence[str]) -> Any:
    model = graph.writer.model(ends, graph.shape)
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    return model


def difference(model: Any, picture: Any) -> float:
    """Return the greatest difference from onnxruntime, relative to 1 or to the output's greatest value.

    It is infinite if a shape or a type differs, or a label that the host computes.

    Raises:
        SystolicError: The graph is refused.
    """
    read = read_model(model, "graph.onnx", "graph")
    first = np.moveaxis(picture[0], -1, 0) if "picture" in read.last else picture[0]
    shape = read.network.input_shape
    first = np.ascontiguousarray(first).reshape(shape.channels, shape.height, shape.width)
    values = run_float(read.network, first)
    given = _expected(model, picture)
    named = outputs_of(read.network, values)
    far = 0.0
    for output, right in zip(model.graph.output, given, strict=bool(given)):
        arrived = named[output.name]
        if (arrived.shape, arrived.dtype) != (right.shape, right.dtype):
            return float("inf")
        if right.dtype != np.int64:
            far = max(far, float(np.abs(arrived - right).max() / max(1.0, np.abs(right).max())))
        if output.name not in read.tensors:  # the host computes this output from several tensors
            if right.dtype == np.int64 and not np.array_equal(arrived, right):
                return float("inf")
            continue
        index = read.tensors[output.name]
        ours = values[index]
        if right.dtype == np.int64:
            if output.name in read.last:
                right = np.moveaxis(right, -1, 1)
            ours, right = _chosen(read.network, values, index, right)
            ours = ours.ravel()
        else:
            ours = (np.moveaxis(ours, 0, -1) if output.name in read.last else ours).ravel()
        if ours.size != right.size:
            return float("inf")
        far = max(far, float(np.abs(ours - right.ravel()).max() / max(1.0, np.abs(right).max())))
    return far


def _chosen(network: Network, values: list[Any], index: int, labels: Any) -> tuple[Any, Any]:
    """Return the values of the channels that each side chose.

    Values are compared instead of labels, because values that differ in their last bits may have another order.
    """
    node = network.nodes[index]
    source = values[node.inputs[0]]
    theirs = labels.reshape(values[index].shape)
    pair = (np.take_along_axis(source, chosen.astype(np.int64), axis=0) for chosen in (values[index], theirs))
    return next(pair), next(pair)


def _expected(model: Any, picture: Any) -> list[Any]:
    """Return the outputs of onnxruntime, which runs the model's own operators, without fusing any.

    It is [] if onnxruntime lacks an operator or refuses a negative padding.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        return list(session.run(None, {"picture": picture}))
    except Exception as error:  # onnxruntime's exceptions have no common base class
        if "ONNXRuntimeError" not in str(error):
            raise
        return []


def run(campaign: Campaign) -> int:
    """Try the campaign's graphs; print a report and return the number of defects."""
    operations = 0

    def attempt(number: int) -> str:
        nonlocal operations
        model, picture = drawn(campaign.seed, number)
        far = difference(model, picture)
        operations += len(model.graph.node)
        return f"differs from onnxruntime's by {far:g}" if not far <= 1e-4 else ""

    tally = count(
        campaign,
        "graph",
        attempt,
        lambda number: drawn(campaign.seed, number)[0],
        names_refused=False,
        told_every=TOLD_EVERY,
    )
    share = tally.refused / max(1, tally.tried)
    print(f"{tally.tried} graphs, {operations} operations compared, {share:.0%} refused, {tally.defects} defects")
    return tally.defects
