"""Networks that are no files: PyTorch modules and Keras models, which become ONNX files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from boards.errors import ConflictError, UnsupportedError, cut
from cnn.keras.export import is_keras_model, write_model
from cnn.onnx.pytorch import is_module, write_exported


def is_object(value: object) -> bool:
    """Whether it is a network itself, not the name of a file or of one that is built in."""
    return is_keras_model(value) or is_module(value)


def refuse_keras_file(name: str) -> None:
    """Raise UnsupportedError for the name of a file of Keras, which holds Python code as well as numbers."""
    if name.endswith((".keras", ".h5", ".hdf5")):
        raise UnsupportedError(
            f"the file of Keras {cut(name)}",
            "it may bring code that runs when it is loaded, so that no command loads it",
            remedy="if you know who made it, load it in Python: systolic.load(keras.saving.load_model(FILE))",
        )


def write_object(network: Any, example: Any, seed: int | None, folder: Path) -> Path:
    """The network as an ONNX file in ``folder``. With Keras on PyTorch a model is both.

    example: of a module's input. Raises ConflictError for other numbers, and the errors of both exports.
    """
    if is_keras_model(network):
        if seed is not None or example is not None:
            given = "weights" if seed is None else "seed"
            reason = "the model holds its own numbers"
            raise ConflictError(("a Keras model", given), reason, remedy="leave out weights and seed")
        return write_model(network, folder)
    if seed is not None:
        reason = "the module holds its own numbers"
        raise ConflictError(("a PyTorch module", "seed"), reason, remedy="leave out the seed")
    return write_exported(network, example, folder)
