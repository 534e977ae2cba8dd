"""A PyTorch module → the ONNX file that PyTorch's own exporter writes of it (extra [torch]); where it has layers of
Brevitas, that of Brevitas, which holds the integers that it was trained to."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from pathlib import Path
from typing import Any

from boards.errors import LONGEST_FAULT, NetworkError, cut, shown
from cnn.darknet.files import identifier
from cnn.onnx.file import load_onnx

OPSET = 18
LONGEST_NAME = 60
"""Characters of a class's name that its file is called by."""
INSTALL = "pip install 'systolic-cnn[torch]' brings it"


def is_module(value: object) -> bool:
    """Whether it is a PyTorch module; torch is not imported for the answer."""
    return any(kind.__module__ == "torch.nn.modules.module" for kind in type(value).__mro__)


def write_exported(module: Any, example: Any, folder: Path) -> Path:
    """The module as a file in ``folder``, called by the module's class. It is exported as for inference, and it and its
    parts are left in the modes that they were in.

    example: an input float [1, channels, height, width], [1, channels, length] or [1, values]. NetworkError where it is
    none, where a package is missing, or where the module cannot be exported.
    """
    if len(getattr(example, "shape", ())) not in (2, 3, 4):
        raise NetworkError(
            "a PyTorch module needs an example of its input, a tensor [1, channels, height, width], "
            f"[1, channels, length] or [1, values], not {shown(example)}"
        )
    load_onnx()
    try:
        import onnxscript  # noqa: F401  the exporter asks for it when it is at work already
        import torch
    except ImportError as error:
        raise NetworkError(
            f"a PyTorch module is exported by {error.name}, which is not installed; {INSTALL}"
        ) from error
    if not isinstance(example, torch.Tensor):
        raise NetworkError(f"the example of a PyTorch module's input must be a tensor, not {shown(type(example))}")
    _refuse_left_out(module)
    label = cut(identifier(type(module).__name__), LONGEST_NAME)
    write = _write_quantised if _is_of_brevitas(module) else _write
    path, modes = folder / f"{label}.onnx", [(part, part.training) for part in module.modules()]
    try:
        module.eval()
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):  # it tells of its steps
            warnings.simplefilter("ignore")
            write(module, example, path)
    except NetworkError:
        raise
    except (Exception, SystemExit) as error:  # whatever the module and the exporter raise; Ctrl-C is the user's
        raise NetworkError(f"PyTorch cannot export {label}: {_told(error)}") from error
    finally:
        for part, training in modes:
            part.training = training
    return path


def _refuse_left_out(module: Any) -> None:
    """NetworkError for what PyTorch's exporter leaves out without a word."""
    for name, part in module.named_modules():
        divisor = getattr(part, "divisor_override", None)
        if divisor is not None:
            raise NetworkError(
                f"PyTorch exports an average pool without a divisor of its own, but {cut(name) or 'the module'} has "
                f"divisor_override={divisor}: take it away and multiply behind the pool"
            )


def _is_of_brevitas(module: Any) -> bool:
    """Whether any of its layers is quantised by Brevitas."""
    return any(kind.__module__.startswith("brevitas.") for part in module.modules() for kind in type(part).__mro__)


def _write(module: Any, example: Any, path: Path) -> None:
    from torch.onnx import export

    export(module, (example,), path, dynamo=True, opset_version=OPSET, external_data=False, verbose=False)


def _write_quantised(module: Any, example: Any, path: Path) -> None:
    """As QONNX."""
    try:
        import onnxoptimizer  # noqa: F401  Brevitas asks for it in a sentence that names no extra
        from brevitas.export import export_qonnx
    except ImportError as error:
        raise NetworkError(
            f"a module of Brevitas is exported by {error.name}, which is not installed; pip install onnxoptimizer "
            "beside brevitas"
        ) from error
    export_qonnx(module, args=example, export_path=str(path), opset_version=OPSET)


def _told(error: BaseException) -> str:
    """What the exporter found at last, on one line and without the terminal's colours."""
    while error.__cause__ is not None:
        error = error.__cause__
    text = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", str(error)).split())
    return f"{type(error).__name__}: " + cut("".join(filter(str.isprintable, text)), LONGEST_FAULT)
