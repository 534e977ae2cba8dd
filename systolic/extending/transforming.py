"""Passes over what a user loaded, kept by name: a design's floats are those of the network that it was made of."""

from __future__ import annotations

import json
from dataclasses import replace

from boards.errors import StateError
from cnn.passes.transform import transformed
from systolic.extending.added import PASSES_FILE
from systolic.model import Model


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
