"""A QuantizedNetwork as one file: an .npz with the arrays and a JSON text ``network.json``.

The bytes depend on the network alone: fixed order and time stamps, nothing compressed. Reading takes
nothing on trust: no pickle, no compression (so that no array is larger than the file), every array
checked before it is taken, and the whole network by ``check_quantized``.
"""

from __future__ import annotations

import io
import json
import math
import struct
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import NetworkError, QuantiseError
from cnn.datatype import DataType
from cnn.network import Concat, Detection, MaxPool, Padding, Reorg, Shape, Slice, Softmax, Upsample
from cnn.npz import npy, put
from cnn.quantized import (
    MultiplyShift,
    QAdd,
    QAveragePool,
    QConvolution,
    QDense,
    QInput,
    QNode,
    QOp,
    QuantizedNetwork,
    Requantiser,
    Requantising,
    TensorType,
    Thresholds,
)
from cnn.quantized_check import check_quantized

FORMAT = "systolic quantised network 1"
HEADER = "network.json"
FILE_LIMIT = 1 << 30
HEADER_LIMIT = 1 << 24
NODE_LIMIT = 4096
TEXT_LIMIT = 1000

Array = npt.NDArray[Any]

# What zipfile raises for bytes that are no archive, beside its own error.
_DAMAGE = (zipfile.BadZipFile, struct.error, NotImplementedError, EOFError, RuntimeError, ValueError, OSError)

_OPS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        QInput,
        QConvolution,
        QDense,
        MaxPool,
        QAveragePool,
        Concat,
        Slice,
        Reorg,
        Upsample,
        QAdd,
        Softmax,
        Detection,
    )
}
_REQUANTISING: dict[str, type[Requantising]] = {
    kind.__name__: kind for kind in (Requantiser, MultiplyShift, Thresholds)
}
_LATER = ("bias", "order")  # options with a default that files written before them lack


def to_npz(network: QuantizedNetwork) -> bytes:
    """The file's bytes; the same network gives the same bytes. ``numpy.load`` reads its arrays too."""
    nodes = [_node_header(node) for node in network.nodes]
    header = {"format": FORMAT, "name": network.name, "labels": list(network.labels), "nodes": nodes}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        put(archive, HEADER, json.dumps(header, ensure_ascii=False, indent=1, sort_keys=True).encode())
        for index, node in enumerate(network.nodes):
            for name, array in _arrays(node.op).items():
                put(archive, f"{index}.{name}.npy", npy(array))
    return buffer.getvalue()


def from_npz(data: bytes, where: str = "network.npz") -> QuantizedNetwork:
    """The network in bytes that ``to_npz`` wrote; ``where`` names the file in errors.

    Raises NetworkError for a file that is damaged or not of this kind, and where the network in it
    breaks the arithmetic contract.
    """
    if len(data) > FILE_LIMIT:
        raise NetworkError(f"{where} must have at most {FILE_LIMIT} bytes, not {len(data)}")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = _members(archive)
        return check_quantized(_read_network(members))
    except _DAMAGE as error:
        raise NetworkError(f"{where} must be an .npz file, but is damaged: {error}; write it again") from error
    except (_UnusableError, QuantiseError) as error:
        raise NetworkError(f"{where} must hold a quantised network: {error}; write it again") from error


class _UnusableError(Exception):
    """What is wrong inside the file; ``from_npz`` adds which file it is."""


# ---------------------------------------------------------------- writing


def _arrays(op: QOp) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    if isinstance(op, (QConvolution, QDense)):
        arrays["weights"] = op.weights
    if isinstance(op, (QConvolution, QDense, QAveragePool, QAdd)):
        arrays.update({field.name: getattr(op.requantiser, field.name) for field in fields(op.requantiser)})
    if "flip" in arrays:
        arrays["flip"] = arrays["flip"].astype(np.int8)
    return arrays


def _node_header(node: QNode) -> dict[str, Any]:
    return {
        "name": node.name,
        "op": type(node.op).__name__,
        "options": _options(node.op),
        "inputs": list(node.inputs),
        "shape": [node.shape.channels, node.shape.height, node.shape.width],
        "datatype": node.type.datatype.name,
        "scale": node.type.scale,
        "source": node.source,
    }


def _options(op: QOp) -> dict[str, Any]:
    """Every field of the operation that is not an array; what older readers do not know only where it is needed."""
    plain = [f for f in fields(op) if f.name not in ("weights", "requantiser")]
    needed = [f.name for f in plain if f.name not in _LATER or getattr(op, f.name) != f.default]
    options = {name: _plain(getattr(op, name)) for name in needed}
    if isinstance(op, (QConvolution, QDense, QAveragePool, QAdd)) and not isinstance(op.requantiser, Requantiser):
        options["requantising"] = type(op.requantiser).__name__
    return options


def _plain(value: Any) -> Any:
    if isinstance(value, DataType):
        return value.name
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


# ---------------------------------------------------------------- reading


def _members(archive: zipfile.ZipFile) -> dict[str, bytes]:
    entries = archive.infolist()
    if len(entries) > 8 * NODE_LIMIT:
        raise _UnusableError(f"it has {len(entries)} members, at most {8 * NODE_LIMIT} make sense")
    packed = [entry.filename for entry in entries if entry.compress_type != zipfile.ZIP_STORED]
    if packed:
        raise _UnusableError(f"members are stored, but {packed[0]!r} is compressed")
    if len({entry.filename for entry in entries}) != len(entries):
        raise _UnusableError("a member is there twice")
    # Stored members may still overlap: together they hold no more than the file may.
    if sum(entry.file_size for entry in entries) > FILE_LIMIT:
        raise _UnusableError(f"its members have more than {FILE_LIMIT} bytes")
    return {entry.filename: archive.read(entry) for entry in entries}


def _read_network(members: Mapping[str, bytes]) -> QuantizedNetwork:
    header = _header(members)
    nodes = _get(header, "nodes", list)
    if len(nodes) > NODE_LIMIT:
        raise _UnusableError(f"it has {len(nodes)} nodes, at most {NODE_LIMIT} are read")
    labels = tuple(_text(label) for label in _get(header, "labels", list))
    read = tuple(_read_node(index, node, members) for index, node in enumerate(nodes))
    network = QuantizedNetwork(_text(_get(header, "name", str)), read, labels)
    expected = {HEADER} | {f"{i}.{a}.npy" for i, node in enumerate(read) for a in _arrays(node.op)}
    if set(members) != expected:
        raise _UnusableError(f"it has members that no node reads: {sorted(set(members) - expected)[:3]}")
    return network


def _header(members: Mapping[str, bytes]) -> dict[str, Any]:
    text = members.get(HEADER)
    if text is None or len(text) > HEADER_LIMIT:
        raise _UnusableError(f"a member {HEADER!r} of at most {HEADER_LIMIT} bytes is missing")
    try:
        header = json.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise _UnusableError(f"{HEADER} is not JSON text: {error}") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise _UnusableError(f"{HEADER} must have the format {FORMAT!r}")
    return header


def _get(table: Any, key: str, kind: type[Any]) -> Any:
    value = table.get(key) if isinstance(table, dict) else None
    if not _is(value, kind):
        raise _UnusableError(f"{key!r} must be of type {kind.__name__}, not {str(value)[:80]!r}")
    return value


def _is(value: Any, kind: type[Any]) -> bool:
    """isinstance, but True is no number and a whole number is a float as well."""
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and abs(value) < 1 << 31
    if kind is float:
        return isinstance(value, float) or (isinstance(value, int) and abs(value) < 1 << 31)
    return isinstance(value, kind)


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > TEXT_LIMIT or not value.isprintable():
        raise _UnusableError(f"a text must be printable and at most {TEXT_LIMIT} long, not {str(value)[:80]!r}")
    return value


def _whole(values: Any, what: str, count: int | None = None) -> tuple[int, ...]:
    right = isinstance(values, list) and all(_is(v, int) for v in values)
    if not right or len(values) > NODE_LIMIT or count not in (None, len(values)):
        raise _UnusableError(f"{what} must be a list of whole numbers, not {str(values)[:80]!r}")
    return tuple(values)


def _read_node(index: int, table: Any, members: Mapping[str, bytes]) -> QNode:
    shape = Shape(*_whole(_get(table, "shape", list), "a shape", 3))
    datatype = DataType.parse(_get(table, "datatype", str))
    return QNode(
        _text(_get(table, "name", str)),
        _read_op(index, table, members),
        _whole(_get(table, "inputs", list), "inputs"),
        shape,
        TensorType(datatype, float(_get(table, "scale", float))),
        _text(_get(table, "source", str)),
    )


def _read_op(index: int, table: Any, members: Mapping[str, bytes]) -> QOp:
    name, options = _get(table, "op", str), _get(table, "options", dict)
    kind = _OPS.get(name)
    if kind is None:
        raise _UnusableError(f"node {index} is a {name[:80]!r}, which is none of {', '.join(_OPS)}")
    values: dict[str, Any] = {}
    for field in fields(kind):
        if field.name == "weights":
            values["weights"] = _read_array(f"{index}.weights.npy", members)
        elif field.name == "requantiser":
            values["requantiser"] = _read_requantising(index, options, members)
        elif field.name not in _LATER or field.name in options:
            values[field.name] = _OPTIONS[field.name](options)
    op: QOp = kind(**values)
    return op


def _read_requantising(index: int, options: Any, members: Mapping[str, bytes]) -> Requantising:
    name = _get({"requantising": Requantiser.__name__, **options}, "requantising", str)
    kind = _REQUANTISING.get(name)
    if kind is None:
        raise _UnusableError(f"a requantising is one of {', '.join(_REQUANTISING)}, not {name[:80]!r}")
    arrays = {field.name: _read_array(f"{index}.{field.name}.npy", members) for field in fields(kind)}
    if "flip" in arrays:
        arrays["flip"] = _flags(arrays["flip"])
    requantising: Requantising = kind(**arrays)
    return requantising


def _flags(array: Array) -> Array:
    if not np.isin(array, (0, 1)).all():
        raise _UnusableError("flip must be 0 or 1 in every channel")
    return array.astype(np.bool_)


def _bias(options: Any) -> tuple[float, ...]:
    bias = _get(options, "bias", list)
    if len(bias) > TEXT_LIMIT * 100 or not all(_is(v, float) and math.isfinite(v) for v in bias):
        raise _UnusableError(f"a bias must be a list of finite numbers, not {str(bias)[:80]!r}")
    return tuple(float(v) for v in bias)


def _order(options: Any) -> str:
    order: str = _get(options, "order", str)
    if order not in ("darknet", "block"):
        raise _UnusableError(f"the order of a reorg is 'darknet' or 'block', not {order[:80]!r}")
    return order


def _padding(options: Any) -> Padding:
    table = _get(options, "padding", dict)
    return Padding(**{side: _get(table, side, int) for side in ("top", "left", "bottom", "right")})


def _anchors(options: Any) -> tuple[tuple[float, float], ...]:
    anchors = _get(options, "anchors", list)
    for pair in anchors:
        if not isinstance(pair, list) or len(pair) != 2 or not all(_is(v, float) for v in pair):
            raise _UnusableError(f"an anchor must be a width and a height, not {str(pair)[:80]!r}")
    return tuple((float(pair[0]), float(pair[1])) for pair in anchors)


def _kind(options: Any) -> str:
    kind: str = _get(options, "kind", str)
    if kind not in ("region", "yolo", "one-object"):
        raise _UnusableError(f"a detection is 'region', 'yolo' or 'one-object', not {kind[:80]!r}")
    return kind


def _option(name: str, kind: type[Any]) -> Callable[[Any], Any]:
    return lambda options: _get(options, name, kind)


_OPTIONS: dict[str, Callable[[Any], Any]] = {
    "weight_type": lambda options: DataType.parse(_get(options, "weight_type", str)),
    "padding": _padding,
    "anchors": _anchors,
    "kind": _kind,
    "bias": _bias,
    "order": _order,
    "multipliers": lambda options: _whole(_get(options, "multipliers", list), "multipliers"),
    "scale": lambda options: float(_get(options, "scale", float)),
    "softmax": _option("softmax", bool),
    **{name: _option(name, int) for name in ("stride", "groups", "size", "first", "channels", "classes", "coords")},
}


def _read_array(name: str, members: Mapping[str, bytes]) -> Array:
    data = members.get(name)
    if data is None:
        raise _UnusableError(f"the member {name!r} is missing")
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    except ValueError as error:
        raise _UnusableError(f"{name!r} is not an array: {error}") from error
    if version != (1, 0) or fortran or dtype.str not in ("|i1", "<i2", "<i8"):
        raise _UnusableError(f"{name!r} must be int8, int16 or int64 in C order, not {dtype.str}")
    rest = data[stream.tell() :]
    if any(side < 1 for side in shape):
        raise _UnusableError(f"{name!r} must have no empty side, not {shape}")
    # Python integers, so that a product of huge sides cannot wrap around to the right size.
    size = dtype.itemsize
    for side in shape:
        size *= side
    if size != len(rest):
        raise _UnusableError(f"{name!r} of shape {shape} must have {size} bytes, not {len(rest)}")
    return np.frombuffer(rest, dtype).reshape(shape).astype(dtype.newbyteorder("="))
