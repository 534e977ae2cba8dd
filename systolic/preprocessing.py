"""What was done to pictures before a network's file read them, which the accelerator does as its first layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from boards.errors import NetworkError
from cnn.onnx.ends.preprocessing import Preprocessing
from cnn.onnx.network import preprocessed
from systolic.extending.added import PASSES_FILE
from systolic.model import ONNX_FILE, Model


def preprocess(model: Model, mean: Sequence[float] = (), std: Sequence[float] = (), order: str = "RGB") -> Model:
    """The model with (p / 255 − mean) / std in front, of pictures whose channels it reads in an order, RGB or BGR.

    mean, std: of pixels 0…1, one number or one a channel in that order; none is 0 and 1. NetworkError where the numbers
    are none that pixels can have, or the model was read from no ONNX file, PyTorch module or Keras model, or was
    transformed.
    """
    preprocessing = Preprocessing(tuple(mean), tuple(std), order)
    if preprocessing.is_plain:
        return model
    if ONNX_FILE not in model.files:
        raise NetworkError(
            f"mean, std and order of channels are of an .onnx file, a PyTorch module or a Keras model, and "
            f"{model.network.name!r} was read from none: leave them out; an exported .json has its own, and darknet's "
            "networks read pictures as they are"
        )
    if PASSES_FILE in model.files:
        raise NetworkError(
            f"what is done to pictures comes before passes, and {model.network.name!r} went through some: preprocess "
            "it, and then transform it"
        )
    read = preprocessed(model.files[ONNX_FILE], model.network.name, preprocessing)
    labels = model.network.labels
    return replace(
        model,
        network=replace(read.network, labels=labels),
        quantized=read.quantized and replace(read.quantized, labels=labels),
        files={**model.files, ONNX_FILE: read.data},
    )
