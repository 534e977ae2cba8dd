"""A Keras 3 model → the ONNX file of its layers (extra [keras]).

Nothing of the model is executed: its layers are looked at, one after the other, and their numbers are copied. Keras has
channels last, the file has them first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from boards.errors import NetworkError, cut, faults
from cnn.darknet.files import identifier
from cnn.keras.graph import Graph, RefusedError, require
from cnn.keras.layers import LAYERS as COMPUTING
from cnn.keras.layers import Writer, channels_last, same
from cnn.keras.operations import HOME, operation
from cnn.keras.views import averaged, cropped, normalised, repeated, reshaped, resized
from cnn.onnx.file import load_onnx
from cnn.onnx.operators import INSTEAD

LONGEST_NAME = 60
AUGMENTED = ("Brightness", "Contrast", "Flip", "Rotation", "Shear", "Translation", "Zoom")
"""What the layers Random… change in pictures of training, and of training alone."""

LAYERS: dict[str, Writer] = {
    **COMPUTING,
    **{f"Random{kind}": same for kind in AUGMENTED},
    "Average": averaged,
    "Cropping1D": cropped,
    "Cropping2D": cropped,
    "Normalization": normalised,
    "Reshape": reshaped,
    "Resizing": resized,
    "UpSampling1D": repeated,
}
"""By the name of their class."""


def is_keras_model(value: object) -> bool:
    """Whether it is a model of Keras 3; Keras is not imported for the answer."""
    return any(kind.__module__ == "keras.src.models.model" for kind in type(value).__mro__)


def write_model(model: Any, folder: Path) -> Path:
    """The model as a file in ``folder``, called by the model's name.

    NetworkError where it has no graph of layers or several inputs, and for all its layers that are no operators.
    """
    label = cut(identifier(model.name), LONGEST_NAME)
    inner = getattr(model, "_functional", None) or model
    if not hasattr(inner, "_nodes_by_depth"):
        raise NetworkError(
            f"{label} must be built of layers, Sequential (with an Input) or Functional: a model whose call is code of "
            "its own has no graph"
        )
    if len(inner.inputs) != 1 or None in inner.inputs[0].shape[1:]:
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in inner.inputs)
        raise NetworkError(f"{label} must have one input of a known shape, not {shapes}")
    graph = Graph(load_onnx())
    refused: list[str] = []
    outputs = _walked(graph, inner, ["picture"], refused)
    if refused:
        raise NetworkError(f"{label}: {len(refused)} layers are no operators here: {faults(refused)}")
    *sides, channels = inner.inputs[0].shape[1:]
    path = folder / f"{label}.onnx"
    path.write_bytes(graph.model((channels, *sides), outputs).SerializeToString())
    return path


def _walked(graph: Graph, model: Any, inputs: Sequence[str], refused: list[str]) -> list[str]:
    """The outputs of a model that reads these tensors; what is refused is told once and read as if it did nothing."""
    names = {id(tensor): name for tensor, name in zip(model.inputs, inputs, strict=True)}
    for node in _nodes(model):
        layer = node.operation
        sources = [names[id(tensor)] for tensor in node.input_tensors]
        try:
            if type(layer).__module__.startswith(HOME):
                require(not graph.flattened.keys() & {*sources}, "a Dense has to read what is flattened")
                results = [operation(graph, node, names)]
            else:
                results = _written(graph, layer, sources, refused)
        except RefusedError as error:
            refused.append(f"{type(layer).__name__} {layer.name!r}: {error}")
            results = sources[:1] * len(node.output_tensors)
        names.update(zip(map(id, node.output_tensors), results, strict=True))
    return [names[id(tensor)] for tensor in model.outputs]


def _nodes(model: Any) -> Iterator[Any]:
    """Uses of layers, in the order in which they are computed."""
    for depth in sorted(model._nodes_by_depth, reverse=True):
        yield from (node for node in model._nodes_by_depth[depth] if node.input_tensors)


def _written(graph: Graph, layer: Any, sources: Sequence[str], refused: list[str]) -> list[str]:
    inner = getattr(layer, "_functional", None) or layer
    if hasattr(inner, "_nodes_by_depth"):
        return _walked(graph, inner, sources, refused)
    kind = type(layer).__name__
    own = type(layer).__module__.startswith("keras.src.layers.")
    others = "this layer is none of those that become operators (docs/reference/onnx.md)"
    require(own and kind in LAYERS, INSTEAD.get(kind, others) if own else others)
    require(channels_last(layer), "channels come last: data_format channels_last")
    result = LAYERS[kind](graph, layer, sources)
    if sources[0] in graph.flattened and kind != "Dense":
        require(kind in ("Dropout", "Activation", "ReLU", "LeakyReLU", "ELU"), "a Dense has to read what is flattened")
        graph.flattened[result] = graph.flattened[sources[0]]
    return [result]
