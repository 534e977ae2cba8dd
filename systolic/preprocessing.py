"""Adds (pixel / 255 − mean) / std, which an exported ONNX network lacks, as the accelerator's first layer."""

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
    """Return the model with the step (pixel / 255 − mean) / std before its first layer.

    Args:
        model: The model.
        mean: The mean of pixels between 0 and 1: one number, or one per channel in ``order``. () means 0.
        std: The standard deviation of the same pixels: one number, or one per channel. () means 1.
        order: The order of the channels that the network expects, "RGB" or "BGR".

    Raises:
        UnsupportedError: The model was not read from an ONNX file, a PyTorch module or a Keras model.
        StateError: Passes were applied to the model already.
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
