"""Networks that are no files: PyTorch modules and Keras models, which become ONNX files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from boards.errors import NetworkError, cut
from cnn.keras.export import is_keras_model, write_model
from cnn.onnx.pytorch import is_module, write_exported


def is_object(value: object) -> bool:
    """Whether it is a network itself, not the name of a file or of one that is built in."""
    return is_keras_model(value) or is_module(value)


def refuse_keras_file(name: str) -> None:
    """NetworkError where the name is that of a file of Keras, which holds Python code as well as numbers."""
    if name.endswith((".keras", ".h5", ".hdf5")):
        raise NetworkError(
            f"{cut(name)} is a file of Keras, which may bring code that runs when it is loaded, so no command loads "
            "it; where you know who made it, do so in Python: systolic.load(keras.saving.load_model(FILE))"
        )


def write_object(network: Any, example: Any, seed: int | None, folder: Path) -> Path:
    """The network as an ONNX file in ``folder``. With Keras on PyTorch a model is both.

    example: of a module's input. NetworkError where numbers come beside it, and as those of both exports.
    """
    if is_keras_model(network):
        if seed is not None or example is not None:
            raise NetworkError("a Keras model holds its own numbers: leave out weights and seed")
        return write_model(network, folder)
    if seed is not None:
        raise NetworkError("a PyTorch module holds its own numbers: leave out the seed")
    return write_exported(network, example, folder)
