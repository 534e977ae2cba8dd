"""A PyTorch module → the ONNX file that PyTorch's own exporter writes of it (extra [torch])."""

from __future__ import annotations

import contextlib
import io
import warnings
from pathlib import Path
from typing import Any

from boards.errors import NetworkError, cut, shown
from cnn.onnx.file import load_onnx

OPSET = 18
INSTALL = "pip install 'systolic-cnn[torch]' brings it"


def is_module(value: object) -> bool:
    """Whether it is a PyTorch module; torch is not imported for the answer."""
    return any(kind.__module__ == "torch.nn.modules.module" for kind in type(value).__mro__)


def write_exported(module: Any, example: Any, folder: Path) -> Path:
    """The module as a file in ``folder``, called by the module's class. It is exported as for inference, and left in
    the mode that it was in.

    example: an input float [1, channels, height, width]. NetworkError where it is none, where a package is missing, or
    where PyTorch cannot export the module.
    """
    if len(getattr(example, "shape", ())) != 4:
        raise NetworkError(
            "a PyTorch module needs an example of its input, a tensor [1, channels, height, width], not "
            f"{shown(example)}"
        )
    load_onnx()
    try:
        import onnxscript  # noqa: F401  the exporter asks for it when it is at work already
        import torch
    except ImportError as error:
        raise NetworkError(
            f"a PyTorch module is exported by {error.name}, which is not installed; {INSTALL}"
        ) from error
    path, was_training = folder / f"{type(module).__name__}.onnx", module.training
    module.eval()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):  # it tells of its steps
            warnings.simplefilter("ignore")
            torch.onnx.export(
                module, (example,), path, dynamo=True, opset_version=OPSET, external_data=False, verbose=False
            )
    except Exception as error:  # whatever the module and the exporter raise
        raise NetworkError(f"PyTorch cannot export {type(module).__name__}: {cut(error)}") from error
    finally:
        module.train(was_training)
    return path
