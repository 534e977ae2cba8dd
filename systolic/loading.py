"""Loads a model by the name of a file or built-in network, and reads the network of a generated design again."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cnn import zoo
from cnn.darknet.files import read_names
from cnn.network import Network
from cnn.passes.transform import transformed
from systolic.front_ends.darknet import DARKNET
from systolic.front_ends.front_end import FrontEnd, LoadOptions
from systolic.front_ends.objects import is_object, write_object
from systolic.front_ends.onnx import ONNX
from systolic.front_ends.registry import KEPT, front_end_named, front_end_of
from systolic.model import Model
from systolic.transforming import passes_of

TRAINED_FIT = {"shapes": "letterbox"}
"""The fit with which a built-in network was trained, if it differs from its file's.

A .cfg file without letterboxing is read as "plain", because darknet's YOLOv2 stretched pictures in training.
"""


def load_model(
    name: Path | str | Any,
    weights: Path | str | Any = None,
    names: Path | str | None = None,
    seed: int | None = None,
    size: tuple[int, int] | None = None,
    cuts: Sequence[str] = (),
) -> Model:
    """Load a network from a file of a known format, a built-in network, a PyTorch module or a Keras model.

    Args:
        name: The path of a file, the name of a built-in network, or a module or model.
        weights: The weights file of a .cfg or .json file. For a PyTorch module: an example of its input, a tensor of
            shape (1, channels, …).
        names: The file of the class labels, for a network whose file has none.
        seed: The seed of random weights, instead of trained ones.
        size: The (width, height) of the input, instead of the size in the file. A fully convolutional network accepts
            any size.
        cuts: The tensors of an ONNX file at which the network ends.

    Raises:
        ConflictError: One of the arguments is not allowed for this kind of network.
        SystolicError: One of the errors of the file's reader.
    """
    labels = None if names is None else Path(names)
    if is_object(name):
        with tempfile.TemporaryDirectory() as folder:
            path = write_object(name, weights, seed, Path(folder))
            return _read(ONNX, path, LoadOptions(names=labels, size=size, cuts=tuple(cuts)))
    numbers = None if weights is None else Path(weights)
    return load_named(str(name), LoadOptions(numbers, labels, seed, size, tuple(cuts)))


def load_named(name: str, options: LoadOptions) -> Model:
    """Load a network file, or a built-in network, by its name.

    Raises the errors of ``front_end_named`` and ``load_model``.
    """
    front_end = front_end_named(name)
    front_end.check(name, options)
    if name not in zoo.names():
        return _read(front_end, Path(name), options)
    if options.names is None and "names" in front_end.takes:
        options = replace(options, names=zoo.labels_file(name))
    if options.weights is None and options.seed is None:
        options = replace(options, weights=zoo.weights_file(name))
    model = _read(front_end, zoo.topology_file(name), options)
    return replace(model, fit=TRAINED_FIT.get(name, model.fit))


def _read(front_end: FrontEnd, path: Path, options: LoadOptions) -> Model:
    model = replace(front_end.read(path, options), random=options.seed is not None)
    if options.names is None:
        return model
    labels = read_names(options.names, model.network)
    return replace(
        model,
        network=replace(model.network, labels=labels),
        quantized=model.quantized and replace(model.quantized, labels=labels),
    )


def trained_integers(folder: Path) -> bool:
    """Return whether the design's network was quantised in training, not by calibration."""
    return (folder / "model" / "network.json").is_file()


def reload(folder: Path) -> Network:
    """Return the float network of a design's folder, transformed by the graph passes that ``passes.json`` lists."""
    kept = sorted(folder.glob(f"{KEPT}.*"))
    readers = ((front_end_of(path.name), path) for path in kept)
    front_end, path = next(
        ((front_end, path) for front_end, path in readers if front_end is not None),
        (DARKNET, folder / f"{KEPT}.cfg"),  # if there is no file, this reader raises the error for it
    )
    return transformed(front_end.reread(path), *passes_of(folder))
