"""The JSON file of a topology; docs/reference/exported.md has the schema.

The file holds only what cannot be computed: kernels, strides, bits and connections. Shapes are computed here.
"""

from __future__ import annotations

from pathlib import Path

from boards.errors import (
    ChoiceError,
    InvalidValueError,
    RangeError,
    UnsupportedError,
)
from boards.json_text import parse_json
from boards.table import is_number
from cnn.darknet.cfg import file_label, read_text
from cnn.darknet.files import identifier
from cnn.exported.json_table import JsonTable
from cnn.exported.layer_kinds import JOINS, KINDS, MAX_EXTRA_BITS, REQUANTISERS, SIDE_LIMIT
from cnn.exported.topology import Ending, Kernel, Topology, TopologyLayer
from cnn.maps import Shape

FORMAT = "systolic exported network 1"
TEXT_LIMIT = 1 << 20
LAYER_LIMIT = 1000
MAX_CHANNELS = 64
"""The most channels of a picture."""
MIN_STD = 0.01
MAP_LIMIT = 1 << 28
"""The most values of one map."""
FITS = ("plain", "letterbox", "smooth")


def read_topology(path: Path) -> Topology:
    """Return the topology (layers without weights) that a JSON file describes.

    The place of every error is the file and the layer, and its subject is the key.

    Raises:
        FileAccessError: The file cannot be read; DamagedFileError if it is not JSON.
        MissingValueError: A key is missing; UnknownKeyError if a key is not known.
        SystolicError: A value is wrong; the class says in which way.
    """
    return parse_topology(read_text(path, TEXT_LIMIT, "network file"), file_label(path))


def parse_topology(text: str, file: str) -> Topology:
    """Return the topology that a JSON text describes; ``file`` is its name in errors."""
    table = JsonTable(parse_json(text, file), file)
    if table.text("format") != FORMAT:
        raise InvalidValueError("'format'", table.values["format"], repr(FORMAT), where=file)
    shape, order, mean, std = _input(table)
    norm = JsonTable(table.get("batch_norm", dict, {}), f"{file}: batch_norm")
    topology = Topology(
        name=identifier(table.text("name")),
        input=shape,
        order=order,
        extra_bits=table.integer("extra_bits", 0, MAX_EXTRA_BITS, 8),
        epsilon=norm.number("epsilon", 0.0, 1.0, 1e-5),
        epsilon_of=norm.choice("added_to", ("root", "variance"), "variance"),
        requantise=table.choice("requantise", REQUANTISERS, "multiply_shift"),
        fit=table.choice("fit", FITS, "plain"),
        labels=table.labels(),
        layers=_layers(table, shape),
        mean=mean,
        std=std,
    )
    norm.finish()
    table.finish()
    return topology


def _input(table: JsonTable) -> tuple[Shape, str, tuple[float, ...], float]:
    """Return the input image's shape, its channel order in training, and the mean and standard deviation of pixels."""
    picture = JsonTable(table.get("input", dict), f"{table.source}: input")
    sides = (
        picture.integer("channels", 1, MAX_CHANNELS, 3),
        *(picture.integer(key, 1, 8192) for key in ("height", "width")),
    )
    order = picture.choice("order", ("RGB", "BGR"), "RGB")
    shape = Shape(*sides)
    mean, stds = (_of_channels(picture, key, shape.channels, default) for key, default in (("mean", 0.0), ("std", 1.0)))
    if min(stds) < MIN_STD or len(set(stds)) > 1:
        required = f"one number of {MIN_STD:g}…1 for all channels, because integer weights cannot scale each channel"
        raise InvalidValueError("'std'", list(stds), required, where=picture.source, remedy="train with one number")
    picture.finish()
    return shape, order, mean, stds[0]


def _of_channels(picture: JsonTable, key: str, channels: int, default: float) -> tuple[float, ...]:
    """Return a number of 0…1 for each image channel, from a list or from one number for all channels."""
    if not isinstance(picture.get(key, (int, float, list), default), list):
        return (picture.number(key, 0.0, 1.0, default),) * channels
    values = picture.get(key, list)
    if len(values) != channels or not all(is_number(value) and 0 <= value <= 1 for value in values):
        required = f"a number of 0…1, or {channels} of them, one for each channel"
        raise InvalidValueError(repr(key), values, required, where=picture.source)
    return tuple(float(value) for value in values)


def _layers(table: JsonTable, picture: Shape) -> tuple[TopologyLayer, ...]:
    listed = table.get("layers", list)
    if not 1 <= len(listed) <= LAYER_LIMIT:
        raise RangeError("the number of layers", len(listed), 1, LAYER_LIMIT, where=table.source)
    layers: list[TopologyLayer] = []
    for number, values in enumerate(listed, 1):
        layers.append(_layer(JsonTable(values, f"{table.source}: layer {number}"), tuple(layers), picture))
    return tuple(layers)


def _layer(table: JsonTable, earlier: tuple[TopologyLayer, ...], picture: Shape) -> TopologyLayer:
    kind = table.choice("type", tuple(KINDS), None)
    name = _name(table, kind, earlier)
    inputs = _inputs(table, earlier)
    if len(inputs) != 1 and kind not in JOINS:
        raise RangeError(f"the number of layers that a {kind} reads", len(inputs), 1, 1, where=table.source)
    shapes = [earlier[i - 1].shape if i else picture for i in inputs]
    op, shape = KINDS[kind](table, shapes, sum(isinstance(layer.op, Kernel) for layer in earlier))
    table.finish()
    longest = max(shape.channels, shape.height, shape.width)
    if longest > SIDE_LIMIT:
        raise RangeError(f"the longest side of its output {shape}", longest, high=SIDE_LIMIT, where=table.source)
    if shape.values > MAP_LIMIT:
        raise RangeError(
            f"the number of values of its output {shape}", shape.values, high=MAP_LIMIT, where=table.source
        )
    return TopologyLayer(name, op, inputs, shape, table.source)


def _name(table: JsonTable, kind: str, earlier: tuple[TopologyLayer, ...]) -> str:
    text = table.text("name") if table.has("name") else f"{kind}{len(earlier) + 1}"
    name = identifier(text)
    if name in {layer.name for layer in earlier} | {"input"}:
        raise InvalidValueError("the name", name, "one that no other layer has", where=table.source)
    return name


def _inputs(table: JsonTable, earlier: tuple[TopologyLayer, ...]) -> tuple[int, ...]:
    """Return the indices of the layers that a layer reads: those named by "from", or the previous layer."""
    names = table.get("from", (str, list), [earlier[-1].name if earlier else "input"])
    names = [names] if isinstance(names, str) else names
    numbers = {"input": 0, **{layer.name: i for i, layer in enumerate(earlier, 1)}}
    for name in names:
        if not isinstance(name, str) or name not in numbers:
            raise ChoiceError("a layer of 'from'", name, list(reversed(numbers)), where=table.source)
    if not 1 <= len(names) <= 64:
        raise RangeError("the number of layers of 'from'", len(names), 1, 64, where=table.source)
    inputs = tuple(numbers[name] for name in names)
    if any(isinstance(earlier[i - 1].op, Ending) for i in inputs if i):
        subject = "a layer that reads a detection head, a softmax or a top_k"
        raise UnsupportedError(subject, "these layers must be the last of the network", where=table.source)
    return inputs
