"""Export a PyTorch module to an ONNX file with PyTorch's own exporter (extra [torch]).

A module with layers of Brevitas is exported with Brevitas's exporter, which keeps the integers of training."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from pathlib import Path
from typing import Any

from boards.errors import (
    MAX_FAULT_LENGTH,
    InvalidValueError,
    MissingToolError,
    ToolError,
    UnsupportedError,
    cut,
)
from cnn.darknet.files import identifier
from cnn.onnx.file import load_onnx

OPSET = 18
MAX_NAME_LENGTH = 60
"""Limit for the characters of a file name, which is the name of the module's class."""
INSTALL = "run pip install 'systolic-cnn[torch]'"


def is_module(value: object) -> bool:
    """Return whether a value is a PyTorch module, without importing torch."""
    return any(kind.__module__ == "torch.nn.modules.module" for kind in type(value).__mro__)


def write_exported(module: Any, example: Any, folder: Path) -> Path:
    """Write the module as an ONNX file in ``folder``, named after the module's class, and return its path.

    The module is exported for inference. Afterwards it and its parts have the modes that they had before.

    Args:
        module: The module.
        example: An input of float32, (1, channels, height, width), (1, channels, length) or (1, values).
        folder: The folder of the file.

    Raises:
        InvalidValueError: The example is not such a tensor.
        MissingToolError: A package is not installed.
        UnsupportedError: The module has a part that the exporter leaves out silently.
        ToolError: The exporter failed.
    """
    what = "the example of a PyTorch module's input"
    shape = getattr(example, "shape", None)
    if shape is None or len(shape) not in (2, 3, 4):
        required = "a tensor [1, channels, height, width], [1, channels, length] or [1, values]"
        raise InvalidValueError(what, example if shape is None else tuple(shape), required)
    load_onnx()
    try:
        import onnxscript  # noqa: F401  the exporter imports it only halfway through
        import torch
    except ImportError as error:
        raise MissingToolError(f"the package {error.name}", "export PyTorch modules", remedy=INSTALL) from error
    if not isinstance(example, torch.Tensor):
        raise InvalidValueError(what, type(example), "a tensor of PyTorch")
    _refuse_left_out(module)
    label = cut(identifier(type(module).__name__), MAX_NAME_LENGTH)
    write = _write_quantised if _is_of_brevitas(module) else _write
    path, modes = folder / f"{label}.onnx", [(part, part.training) for part in module.modules()]
    try:
        module.eval()
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):  # it prints its steps
            warnings.simplefilter("ignore")
            write(module, example, path)
    except MissingToolError:  # a package that only this module needs
        raise
    except (Exception, SystemExit) as error:  # the module and the exporter can raise anything; Ctrl-C passes
        raise ToolError("PyTorch's exporter", f"cannot export {label}: {_last_cause(error)}") from error
    finally:
        for part, training in modes:
            part.training = training
    return path


def _refuse_left_out(module: Any) -> None:
    """Raise UnsupportedError if the module has a ``divisor_override``, which PyTorch's exporter leaves out silently."""
    for name, part in module.named_modules():
        divisor = getattr(part, "divisor_override", None)
        if divisor is not None:
            subject = f"divisor_override={divisor} of {cut(name) or 'the module'}"
            remedy = "leave it out and multiply after the pool"
            raise UnsupportedError(subject, "PyTorch's exporter leaves it out silently", remedy=remedy)


def _is_of_brevitas(module: Any) -> bool:
    """Return whether any part of the module is a layer of Brevitas."""
    return any(kind.__module__.startswith("brevitas.") for part in module.modules() for kind in type(part).__mro__)


def _write(module: Any, example: Any, path: Path) -> None:
    from torch.onnx import export

    export(module, (example,), path, dynamo=True, opset_version=OPSET, external_data=False, verbose=False)


def _write_quantised(module: Any, example: Any, path: Path) -> None:
    """Write a module with Brevitas layers as a QONNX file, with Brevitas's own exporter."""
    try:
        import onnxoptimizer  # noqa: F401  Brevitas needs it, but its own error does not say how to install it
        from brevitas.export import export_qonnx
    except ImportError as error:
        purpose, remedy = "export modules of Brevitas", "run pip install brevitas onnxoptimizer"
        raise MissingToolError(f"the package {error.name}", purpose, remedy=remedy) from error
    export_qonnx(module, args=example, export_path=str(path), opset_version=OPSET)


def _last_cause(error: BaseException) -> str:
    """Return the text of the exporter's innermost error, on one line and without terminal colours."""
    while error.__cause__ is not None:
        error = error.__cause__
    text = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", str(error)).split())
    return f"{type(error).__name__}: " + cut("".join(filter(str.isprintable, text)), MAX_FAULT_LENGTH)
