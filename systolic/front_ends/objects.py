"""Networks that are Python objects, not files: PyTorch modules and Keras models. They are exported to ONNX files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from boards.errors import ConflictError, UnsupportedError, cut
from cnn.keras.export import is_keras_model, write_model
from cnn.onnx.pytorch import is_module, write_exported


def is_object(value: object) -> bool:
    """Return whether ``value`` is a PyTorch module or a Keras model, and not the name of a network."""
    return is_keras_model(value) or is_module(value)


def refuse_keras_file(name: str) -> None:
    """Raise UnsupportedError for the name of a Keras file, because such a file may contain Python code."""
    if name.endswith((".keras", ".h5", ".hdf5")):
        raise UnsupportedError(
            f"the Keras file {cut(name)}",
            "it may contain code that runs when it is loaded, so no command loads it",
            remedy="if you trust its author, load it in Python: systolic.load(keras.saving.load_model(FILE))",
        )


def write_object(network: Any, example: Any, seed: int | None, folder: Path) -> Path:
    """Export a PyTorch module or a Keras model to an ONNX file in ``folder``, and return the file's path.

    Args:
        network: A Keras model or a PyTorch module.
        example: An example of a PyTorch module's input, for its export. Not allowed for a Keras model.
        seed: Not allowed, because the network has its own weights. The parameter exists for the error.
        folder: An existing folder.

    Raises:
        ConflictError: A seed is given, or an example for a Keras model. The errors of both exports are raised too.
    """
    # A Keras model with the PyTorch backend is a PyTorch module as well, so Keras is checked first.
    if is_keras_model(network):
        if seed is not None or example is not None:
            given = "weights" if seed is None else "seed"
            reason = "the model has its own weights"
            raise ConflictError(("a Keras model", given), reason, remedy="leave out weights and seed")
        return write_model(network, folder)
    if seed is not None:
        reason = "the module has its own weights"
        raise ConflictError(("a PyTorch module", "seed"), reason, remedy="leave out the seed")
    return write_exported(network, example, folder)
