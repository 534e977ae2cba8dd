"""Passes over what a user loaded, kept by name: a design's floats are those of the network that it was made of."""

from __future__ import annotations

import json
from dataclasses import replace

from boards.errors import NetworkError
from cnn.passes.transform import transformed
from systolic.extending.added import PASSES_FILE
from systolic.model import Model


def transform(model: Model, *passes: str) -> Model:
    """The model with its network transformed, by passes that have a name (cnn.passes.transform.PASSES).

    Golden results are compared after each. NetworkError where a pass is not known or changes results, or the model has
    integers of its own, which are its file's.
    """
    if model.quantized is not None:
        raise NetworkError(
            f"{model.network.name!r} was quantised already, and keeps the integers of its file; passes are for float "
            "networks, or for a QuantizedNetwork itself: cnn.passes.transform.transformed"
        )
    network = transformed(model.network, *passes)
    earlier = json.loads(model.files.get(PASSES_FILE, b"[]"))
    return replace(model, network=network, files={**model.files, PASSES_FILE: json.dumps([*earlier, *passes]).encode()})
