"""Passes over what a user loaded, kept by name: a design's floats are those of the network that it was made of."""

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
"""The file of a design with the names of the passes that its network went through."""


def transform(model: Model, *passes: str) -> Model:
    """The model with its network transformed, by passes that have a name (cnn.passes.transform.PASSES).

    Golden results are compared after each. Raises StateError for a model that has the integers of its file, and the
    errors of ``transformed`` for a pass that is not known or changes results.
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
    """Return the names of the passes that the network of a generated folder went through."""
    path = folder / PASSES_FILE
    names = parse_json(read_text(path, MAX_CFG_BYTES, "list of passes"), str(path)) if path.is_file() else []
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise DamagedFileError(str(path), "is not a list of names of passes")
    return tuple(names)
