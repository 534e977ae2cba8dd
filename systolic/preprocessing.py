"""What was done to pictures before a network's file read them, which the accelerator does as its first layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from boards.errors import StateError, UnsupportedError
from cnn.onnx.inputs import Preprocessing
from cnn.onnx.network import preprocessed
from systolic.front_ends.onnx import ONNX_FILE
from systolic.model import Model
from systolic.transforming import PASSES_FILE


def preprocess(model: Model, mean: Sequence[float] = (), std: Sequence[float] = (), order: str = "RGB") -> Model:
    """The model with (p / 255 − mean) / std in front, of pictures whose channels it reads in an order, RGB or BGR.

    mean, std: of pixels 0…1, one number or one a channel in that order; none is 0 and 1.

    Raises:
        UnsupportedError: The model was not read from an ONNX file, a PyTorch module or a Keras model.
        StateError: The model was transformed already.
        SystolicError: One of the errors of ``Preprocessing`` and ``preprocessed``, for numbers that pixels cannot have.
    """
    preprocessing = Preprocessing(tuple(mean), tuple(std), order)
    if preprocessing.is_plain:
        return model
    if ONNX_FILE not in model.files:
        raise UnsupportedError(
            f"a mean, std or order of channels for {model.network.name!r}",
            "only an .onnx file, a PyTorch module or a Keras model takes them: an exported .json has its own, and "
            "darknet's networks read pictures as they are",
            remedy="leave them out",
        )
    if PASSES_FILE in model.files:
        raise StateError(
            f"the network {model.network.name!r}",
            "went through passes already, and preprocessing comes before these",
            remedy="preprocess it, and then transform it",
        )
    read = preprocessed(model.files[ONNX_FILE], model.network.name, preprocessing)
    labels = model.network.labels
    return replace(
        model,
        network=replace(read.network, labels=labels),
        quantized=read.quantized and replace(read.quantized, labels=labels),
        files={**model.files, ONNX_FILE: read.data},
    )
