"""Export a Keras 3 model to an ONNX file (extra [keras]).

The model is not executed: its layers are read one after the other, and their weights are copied. Keras has the channels
last, the file has them first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from boards.errors import InvalidValueError, SeveralFaultsError, SystolicError, UnsupportedError, cut
from cnn.darknet.files import identifier
from cnn.keras.layers import LAYERS as COMPUTING
from cnn.keras.layers import (
    GraphWriter,
    Writer,
    averaged,
    channels_last,
    cropped,
    normalised,
    passthrough,
    repeated,
    reshaped,
    resized,
)
from cnn.keras.operations import HOME, operation
from cnn.onnx.file import load_onnx
from cnn.onnx.graph import named, require
from cnn.onnx.operators import INSTEAD

MAX_NAME_LENGTH = 60
FLATTENED = "its input is flattened, and only a Dense reads a flattened map"
AUGMENTED = ("Brightness", "Contrast", "Flip", "Rotation", "Shear", "Translation", "Zoom")
"""The ends of the names of the Random… layers, which change images only during training."""

LAYERS: dict[str, Writer] = {
    **COMPUTING,
    **{f"Random{kind}": passthrough for kind in AUGMENTED},
    "Average": averaged,
    "Cropping1D": cropped,
    "Cropping2D": cropped,
    "Normalization": normalised,
    "Reshape": reshaped,
    "Resizing": resized,
    "UpSampling1D": repeated,
}
"""The function that writes each layer, by the name of the layer's class."""


def is_keras_model(value: object) -> bool:
    """Return whether a value is a model of Keras 3, without importing Keras."""
    return any(kind.__module__ == "keras.src.models.model" for kind in type(value).__mro__)


def write_model(model: Any, folder: Path) -> Path:
    """Write the model as an ONNX file in ``folder``, named after the model, and return its path.

    Raises:
        UnsupportedError: The model has no graph of layers.
        InvalidValueError: It has several inputs, or an input with an open shape.
        SeveralFaultsError: Layers cannot become operators; it holds an error for each of them.
    """
    label = cut(identifier(model.name), MAX_NAME_LENGTH)
    inner = getattr(model, "_functional", None) or model
    if not hasattr(inner, "_nodes_by_depth"):
        reason, remedy = "it has no graph of layers", "build it as Sequential (with an Input) or Functional"
        raise UnsupportedError("a model with its own call method", reason, where=label, remedy=remedy)
    if len(inner.inputs) != 1 or None in inner.inputs[0].shape[1:]:
        shapes = [tuple(tensor.shape) for tensor in inner.inputs]
        raise InvalidValueError("the shapes of the model's inputs", shapes, "one, with all sides known", where=label)
    graph = GraphWriter(load_onnx())
    refused: list[SystolicError] = []
    outputs = _walked(graph, inner, ["picture"], refused)
    if refused:
        raise SeveralFaultsError(refused, f"{len(refused)} layers cannot become operators", where=label)
    *sides, channels = inner.inputs[0].shape[1:]
    path = folder / f"{label}.onnx"
    path.write_bytes(graph.model((channels, *sides), outputs).SerializeToString())
    return path


def _walked(graph: GraphWriter, model: Any, inputs: Sequence[str], refused: list[SystolicError]) -> list[str]:
    """Return the outputs that a Keras model computes from these tensors, after writing its layers as ONNX operators.

    The error of a layer that cannot become an operator is added to ``refused``; the walk continues as if the layer did
    nothing.
    """
    names = {id(tensor): name for tensor, name in zip(model.inputs, inputs, strict=True)}
    for node in _nodes(model):
        layer = node.operation
        sources = [names[id(tensor)] for tensor in node.input_tensors]
        try:
            if type(layer).__module__.startswith(HOME):
                require(not graph.flattened.keys() & {*sources}, FLATTENED)
                results = [operation(graph, node, names)]
            else:
                results = _written(graph, layer, sources, refused)
        except SystolicError as error:  # the walk continues, to report the faults of all layers together
            refused.append(named(error, f"{type(layer).__name__} {layer.name!r}"))
            results = sources[:1] * len(node.output_tensors)
        names.update(zip(map(id, node.output_tensors), results, strict=True))
    return [names[id(tensor)] for tensor in model.outputs]


def _nodes(model: Any) -> Iterator[Any]:
    """Yield the uses of layers in a Keras model, in the order in which they are computed."""
    for depth in sorted(model._nodes_by_depth, reverse=True):
        yield from (node for node in model._nodes_by_depth[depth] if node.input_tensors)


def _written(graph: GraphWriter, layer: Any, sources: Sequence[str], refused: list[SystolicError]) -> list[str]:
    """Write one use of a Keras layer, which may be a model itself, and return the names of its outputs."""
    inner = getattr(layer, "_functional", None) or layer
    if hasattr(inner, "_nodes_by_depth"):
        return _walked(graph, inner, sources, refused)
    kind = type(layer).__name__
    own = type(layer).__module__.startswith("keras.src.layers.")
    others = "it is not one of the layers that become operators (docs/reference/onnx.md)"
    require(own and kind in LAYERS, INSTEAD.get(kind, others) if own else others)
    require(channels_last(layer), "its channels are first; set data_format to channels_last")
    result = LAYERS[kind](graph, layer, sources)
    if sources[0] in graph.flattened and kind != "Dense":
        require(kind in ("Dropout", "Activation", "ReLU", "LeakyReLU", "ELU"), FLATTENED)
        graph.flattened[result] = graph.flattened[sources[0]]
    return [result]
