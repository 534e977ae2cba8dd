"""Applies graph passes, such as batch-norm folding, to a loaded network and stores their names in the design.

When the float network of the design is read again, the same passes are applied to it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from boards.errors import DamagedFileError, StateError
from boards.json_text import parse_json
from cnn.darknet.cfg import MAX_CFG_BYTES, read_text
from cnn.passes.transform import transformed
from systolic.model import Model

PASSES_FILE = "model/passes.json"
"""The file of a design with the names of the passes that were applied to its network."""


def transform(model: Model, *passes: str) -> Model:
    """Return the model with its float network transformed by graph passes, such as ``fold_batch_norms``.

    After each pass the golden results are compared with the results before it.

    Args:
        model: A model with a float network.
        passes: The names of the passes, keys of ``cnn.passes.transform.PASSES``.

    Raises:
        StateError: The model was quantised in training, so its integers are fixed.
        SystolicError: One of the errors of ``transformed``: a pass is unknown or changes the results.
    """
    if model.quantized is not None:
        raise StateError(
            f"the network {model.network.name!r}",
            "was quantised already, and keeps the integers of its file",
            remedy="transform a float network, or a QuantizedNetwork itself with cnn.passes.transform.transformed",
        )
    network = transformed(model.network, *passes)
    earlier = json.loads(model.files.get(PASSES_FILE, b"[]"))
    return replace(model, network=network, files={**model.files, PASSES_FILE: json.dumps([*earlier, *passes]).encode()})


def passes_of(folder: Path) -> tuple[str, ...]:
    """Return the names of the graph passes that were applied to a design's network, from ``model/passes.json``."""
    path = folder / PASSES_FILE
    names = parse_json(read_text(path, MAX_CFG_BYTES, "list of passes"), str(path)) if path.is_file() else []
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise DamagedFileError(str(path), "is not a list of names of passes")
    return tuple(names)
