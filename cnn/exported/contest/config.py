"""config.json of UltraNet's own exporter: each layer's shapes, kernel, stride and padding, in execution order.

    "conv_0": {"in_shape": [3, 160, 320], "out_shape": [16, 160, 320], "k": 3, "s": 1, "p": 1},
    "pool_0": {"in_shape": [16, 160, 320], "p": 2, "out_shape": [16, 80, 160]},
    "linear_0": {"in_len": 128, "out_len": 10}

The exporter writes neither bit widths, nor the preprocessing of the picture, nor the head after the last layer. Keys of
this project add them, and the exporter's own tools ignore these keys. A layer may have w_bit, out_bit and l_shift. The
object "network" holds the exported form's keys other than its layers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boards.errors import DamagedFileError, InvalidValueError, MismatchError, RangeError, UnknownKeyError
from boards.json_text import parse_json
from cnn.darknet.cfg import file_label, read_text
from cnn.exported.contest.numbered import Parts
from cnn.exported.json_table import JsonTable
from cnn.exported.layer_kinds import MAX_EXTRA_BITS, SIDE_LIMIT, WEIGHT_LIMIT
from cnn.exported.topology import Topology
from cnn.exported.topology_file import FORMAT, LAYER_LIMIT, TEXT_LIMIT, parse_topology
from cnn.maps import Shape

WEIGHT_BITS, VALUE_BITS, L_SHIFT = 4, 4, 8
"""The bits of weights, the bits of activations and the l_shift of every layer, as the exporter's own script sets them.

Pixels have 8 bits.
"""
NETWORK = "network"
MAX_WINDOW = 255
"""The largest side of a kernel or a pool, and the largest stride and padding."""

_KEY = re.compile(r"(conv|pool|linear)_\d{1,4}")


@dataclass(frozen=True)
class Entry:
    """A layer of UltraNet's config.json, translated to a layer of a topology JSON, with the file's stated shapes.

    Attributes:
        layer: The layer as an object of a topology JSON.
        reads: The input shape that config.json states: (channels, rows, columns), or (values,).
        gives: The output shape that config.json states, in the same form.
        source: The file and the layer, for errors.
    """

    layer: dict[str, Any]
    reads: tuple[int, ...]
    gives: tuple[int, ...]
    source: str


def config_values(path: Path) -> dict[str, Any] | None:
    """Return the parsed content of a JSON file, or None if it is not a config.json of UltraNet's exporter.

    Raises:
        FileAccessError: The file cannot be read; other errors are those that ``read_text`` raises.
    """
    text = read_text(path, TEXT_LIMIT, "network file")
    try:
        values = parse_json(text, path.name)
    except DamagedFileError:
        return None
    named = isinstance(values, dict) and any(_KEY.fullmatch(key) for key in values)
    return values if named and "format" not in values else None


def read_config(path: Path, parts: Sequence[Parts] | None, name: str) -> Topology:
    """Return the topology (layers without weights) that a config.json of UltraNet's exporter describes.

    The place of every error is the layer, and its subject is the key.

    Args:
        path: The config.json.
        parts: The arrays that the .npz holds for each layer with weights. None if there is no .npz. Every layer except
            the last is then taken to have a batch norm.
        name: The network's name if the file gives none.
    """
    file = file_label(path)
    values = config_values(path)
    if values is None:
        raise DamagedFileError(file, "has no layers conv_0, pool_0, linear_0 …, as UltraNet's exporter writes them")
    entries = _entries(values, file, parts)
    first = next((entry.reads for entry in entries), ())
    if len(first) != 3:
        required = "a conv with an 'in_shape' [channels, rows, columns]"
        raise InvalidValueError("the input shape of the first layer", list(first), required, where=file)
    return described(file, first, entries, {"name": name, **network_keys(values, file)})


def described(file: str, picture: tuple[int, ...], entries: Sequence[Entry], network: Mapping[str, Any]) -> Topology:
    """Return the topology of a chain of config.json layers; the shapes that the file states are checked.

    Args:
        file: The file's name, for errors.
        picture: The shape of the picture: (channels, rows, columns).
        entries: The layers, in order.
        network: The exported form's other keys, with "head" and "scale" as ``network_keys`` returns them.

    Raises:
        MismatchError: A shape that the file states is not the one computed from the layers.
    """
    head = network.get("head")
    order = {"order": "BGR"} if picture[0] == 3 else {}
    plain_keys = {key: value for key, value in network.items() if key not in ("head", "input", "scale")}
    layers = [entry.layer for entry in entries]
    if "scale" in network:
        layers = [*layers[:-1], {**layers[-1], "scale": network["scale"]}]
    sides = dict(zip(("channels", "height", "width"), picture, strict=True))
    text = {
        "fit": "smooth",
        "batch_norm": {"added_to": "root"},
        **plain_keys,
        "format": FORMAT,
        "input": {**order, **network.get("input", {}), **sides},
        "layers": layers if head is None else [*layers, head],
    }
    topology = parse_topology(json.dumps(text), file)
    for number, entry in enumerate(entries):
        _check(entry, topology.shape_of(number), topology.shape_of(number + 1))
    return topology


def _check(entry: Entry, reads: Shape, gives: Shape) -> None:
    for key, stated, shape in (("in", entry.reads, reads), ("out", entry.gives, gives)):
        if stated not in ((shape.channels, shape.height, shape.width), (shape.values,)):
            expected = [shape.channels, shape.height, shape.width]
            raise MismatchError(f"the {key} shape", list(stated), expected, where=entry.source)


def network_keys(values: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Return the object "network" of UltraNet's config.json: all keys of a topology JSON except its layers.

    Two further keys may be present: "head" is the detection head's layer, and "scale" is a factor of the last sums.

    Raises:
        InvalidValueError: The value of "network" is not an object.
        UnknownKeyError: The object has a key that belongs elsewhere.
    """
    network = dict(JsonTable(values, file).get(NETWORK, dict, {}))
    JsonTable(network.get("input", {}), f"{file}: {NETWORK}: input")
    for key in ("format", "layers"):
        if key in network:
            remedy = f"leave it out, and give the layers next to {NETWORK!r}"
            raise UnknownKeyError([key], (), where=f"{file}: {NETWORK}", remedy=remedy)
    return network


def _entries(values: Mapping[str, Any], file: str, parts: Sequence[Parts] | None) -> list[Entry]:
    keys = [key for key in values if key != NETWORK]
    wrong = next((key for key in keys if not _KEY.fullmatch(key)), None)
    if wrong is not None:
        raise InvalidValueError("a key", wrong, f"conv_0, pool_0, linear_0 … or {NETWORK!r}", where=file)
    if len(keys) > LAYER_LIMIT:
        raise RangeError("the number of layers", len(keys), high=LAYER_LIMIT, where=file)
    of_kernels = _of_kernels([key for key in keys if not key.startswith("pool")], file, parts)
    return [_entry(JsonTable(values[key], f"{file}: {key}"), key, of_kernels.get(key)) for key in keys]


def _of_kernels(keys: Sequence[str], file: str, parts: Sequence[Parts] | None) -> dict[str, Parts]:
    """Return, per layer with weights, whether it has a bias and a batch norm, by the layer's key."""
    if parts is None:
        return {key: Parts(bias=key == keys[-1], norm=key != keys[-1]) for key in keys}
    if len(parts) != len(keys):
        what = "the number of layers with weights in the .npz"
        raise MismatchError(what, len(parts), len(keys), where=file)
    return dict(zip(keys, parts, strict=True))


def _entry(table: JsonTable, key: str, parts: Parts | None) -> Entry:
    if key.startswith("linear"):
        table.get("last_layer_shape", list, [])
        reads, gives = _lengths(table)
        layer = {"type": "dense", "name": key, "outputs": gives[0], **_bits(table, parts)}
    else:
        reads, gives = (_shape(table, name) for name in ("in_shape", "out_shape"))
        if parts is None:
            layer = {"type": "max_pool", "name": key, "size": table.integer("p", 1, MAX_WINDOW)}
        else:
            sides = {"kernel": table.integer("k", 1, MAX_WINDOW), "stride": table.integer("s", 1, MAX_WINDOW)}
            sides["padding"] = table.integer("p", 0, MAX_WINDOW)
            layer = {"type": "convolution", "name": key, "filters": gives[0], **sides, **_bits(table, parts)}
    table.finish()
    return Entry(layer, reads, gives, table.source)


def _lengths(table: JsonTable) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return (table.integer("in_len", 1, WEIGHT_LIMIT),), (table.integer("out_len", 1, SIDE_LIMIT),)


def _bits(table: JsonTable, parts: Parts | None) -> dict[str, Any]:
    assert parts is not None  # only pools have no parts
    weights = {"weight_bits": table.integer("w_bit", 1, 8, WEIGHT_BITS)}
    values, shift = table.integer("out_bit", 1, 8, VALUE_BITS), table.integer("l_shift", 0, MAX_EXTRA_BITS, L_SHIFT)
    if not parts.norm:
        return weights
    return {**weights, "output_bits": values, "extra_bits": shift, "bias": parts.bias}


def _shape(table: JsonTable, key: str) -> tuple[int, ...]:
    sides = table.get(key, list)
    if len(sides) != 3 or not all(type(side) is int and 1 <= side <= SIDE_LIMIT for side in sides):
        required = f"[channels, rows, columns], each 1…{SIDE_LIMIT}"
        raise InvalidValueError(repr(key), sides, required, where=table.source)
    return tuple(sides)
