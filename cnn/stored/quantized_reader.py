"""Makes a quantised network from the header and the arrays of its file, without trusting the file.

The header is JSON. The type and the range of every value are checked, and the data type, shape and size of every array.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import (
    ChoiceError,
    InvalidValueError,
    MissingValueError,
    RangeError,
    ShapeError,
    SystolicError,
    cut,
    shown,
)
from boards.json_text import parse_json
from cnn.datatype import DataType, TensorType
from cnn.maps import Padding, Shape
from cnn.named_outputs import MAP, MAX_OUTPUTS, NamedOutput, OutputStep
from cnn.network import is_label
from cnn.ops import (
    HEADS,
    MAX_BINS,
    MAX_SCALE,
    Concat,
    Custom,
    DepthToSpace,
    Detection,
    MaxPool,
    Output,
    Pad,
    QActivate,
    QAdd,
    QAveragePool,
    QConvolution,
    QDense,
    QInput,
    QMultiply,
    QOp,
    QSoftmax,
    Reorg,
    Slice,
    Softmax,
    TopK,
    Upsample,
)
from cnn.ops.softmax import METHODS
from cnn.quantized import QNode, QuantizedNetwork
from cnn.requantise import UP, MultiplyShift, Requantiser, Requantising, Thresholds
from cnn.stored.npz import read_header
from cnn.tables import Table

FORMAT = "systolic quantised network 1"
HEADER = "network.json"
HEADER_LIMIT = 1 << 24
NODE_LIMIT = 4096
TEXT_LIMIT = 1000
LATER_OPTIONS = ("around", "dilation", "bias", "order", "scale_xy", "bins", "across", "each", "logarithm")
"""Options that older files lack. They are not written if they have their default value."""

Array = npt.NDArray[Any]

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
        DepthToSpace,
        Pad,
        Upsample,
        QAdd,
        QMultiply,
        QActivate,
        QSoftmax,
        Custom,
        Softmax,
        TopK,
        Output,
        Detection,
    )
}
_REQUANTISING: dict[str, type[Requantising]] = {
    kind.__name__: kind for kind in (Requantiser, MultiplyShift, Thresholds)
}


def read_network(members: Mapping[str, bytes]) -> QuantizedNetwork:
    """Return the integer network from the members (name to bytes) of its .npz file; ``check_quantized`` must follow.

    Raises an error whose place is the number of the node if the header or an array differs from the format that
    ``cnn.stored.quantized_file.to_npz`` writes: MissingValueError, InvalidValueError, ChoiceError, RangeError,
    ShapeError or DamagedFileError.
    """
    header = _header(members)
    nodes = _get(header, "nodes", list)
    if len(nodes) > NODE_LIMIT:
        raise RangeError("the number of nodes", len(nodes), high=NODE_LIMIT)
    labels = tuple(_label(label) for label in _get(header, "labels", list))
    read = tuple(_placed_node(index, node, members) for index, node in enumerate(nodes))
    return QuantizedNetwork(_text(_get(header, "name", str)), read, labels, _named_outputs(header, read))


def _named_outputs(header: Any, nodes: Sequence[QNode]) -> tuple[NamedOutput, ...]:
    """Return the named outputs in the file's JSON header; () for older files and formats that do not name outputs."""
    tables = _get(header, "named_outputs", list) if "named_outputs" in header else []
    if len(tables) > MAX_OUTPUTS:
        raise RangeError("the number of named outputs", len(tables), high=MAX_OUTPUTS)
    known = {node.name for node in nodes}
    return tuple(_named_output(table, known) for table in tables)


def _named_output(table: Any, known: Set[str]) -> NamedOutput:
    names, steps = _get(table, "nodes", list), _get(table, "steps", list)
    if not names or not all(isinstance(name, str) and name in known for name in names):
        raise InvalidValueError("the nodes of a named output", names, "names of nodes")
    if len(steps) > NODE_LIMIT:
        raise RangeError("the number of steps of a named output", len(steps), high=NODE_LIMIT)
    read = [
        OutputStep(_text(_get(step, "kind", str)), _integers(_get(step, "numbers", list), "numbers")) for step in steps
    ]
    for step in read:
        if step.kind == MAP and (len(step.numbers) != 1 or not 0 <= step.numbers[0] < len(names)):
            raise InvalidValueError("the numbers of a step map", step.numbers, f"one of {len(names)} nodes")
    return NamedOutput(_label(_get(table, "name", str)), tuple(names), tuple(read))


def _placed_node(index: int, table: Any, members: Mapping[str, bytes]) -> QNode:
    try:
        return _read_node(index, table, members)
    except SystolicError as error:  # the functions that read values do not know the node's number
        raise error.at(f"node {index}") from error


def _header(members: Mapping[str, bytes]) -> dict[str, Any]:
    text = members.get(HEADER)
    if text is None:
        raise MissingValueError(f"the member {HEADER!r}")
    if len(text) > HEADER_LIMIT:
        raise RangeError(f"the size of {HEADER!r} in bytes", len(text), high=HEADER_LIMIT)
    header = parse_json(text, HEADER)
    got = header.get("format") if isinstance(header, dict) else header
    if not isinstance(header, dict) or got != FORMAT:
        raise InvalidValueError(f"the format of {HEADER}", got, repr(FORMAT))
    return header


_KINDS: dict[type[Any], str] = {
    str: "a text",
    int: "a whole number below 2^31",
    float: "a number",
    list: "a list",
    dict: "an object",
    bool: "true or false",
}


def _get(table: Any, key: str, kind: type[Any]) -> Any:
    if not isinstance(table, dict):
        raise InvalidValueError(f"the value with {key!r}", table, "an object")
    if key not in table:
        raise MissingValueError(repr(key))
    if not _is(table[key], kind):
        raise InvalidValueError(repr(key), table[key], _KINDS[kind])
    return table[key]


def _is(value: Any, kind: type[Any]) -> bool:
    """Return whether a JSON value is of the type ``kind``: true is not a number, and an integer is also a float."""
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and abs(value) < 1 << 31
    if kind is float:
        return isinstance(value, float) or (isinstance(value, int) and abs(value) < 1 << 31)
    return isinstance(value, kind)


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > TEXT_LIMIT or not value.isprintable():
        raise InvalidValueError("a text", value, f"printable and at most {TEXT_LIMIT:,} characters long")
    return value


def _label(value: Any) -> str:
    """Return a class label from the JSON header, of any characters; InvalidValueError if it is not a text."""
    if not is_label(value):
        raise InvalidValueError("a label", value, "a text")
    return str(value)


def _integers(values: Any, title: str, count: int | None = None) -> tuple[int, ...]:
    fits = isinstance(values, list) and all(_is(v, int) for v in values)
    if not fits or len(values) > NODE_LIMIT or count not in (None, len(values)):
        raise InvalidValueError(title, values, f"a list of {'' if count is None else f'{count} '}whole numbers")
    return tuple(values)


def _read_node(index: int, table: Any, members: Mapping[str, bytes]) -> QNode:
    shape = Shape(*_integers(_get(table, "shape", list), "a shape", 3))
    datatype = DataType.parse(_get(table, "datatype", str))
    return QNode(
        _text(_get(table, "name", str)),
        _read_op(index, table, members),
        _integers(_get(table, "inputs", list), "inputs"),
        shape,
        TensorType(datatype, float(_get(table, "scale", float)), _get({"zero_point": 0, **table}, "zero_point", int)),
        _text(_get(table, "source", str)),
    )


def _read_op(index: int, table: Any, members: Mapping[str, bytes]) -> QOp:
    name, options = _get(table, "op", str), _get(table, "options", dict)
    if name not in _OPS:
        raise ChoiceError("the operation", name, tuple(_OPS))
    kind = HEADS[_kind(options)] if name == Detection.__name__ else _OPS[name]
    values: dict[str, Any] = {}
    for field in fields(kind):
        if field.name == "weights":
            values["weights"] = _read_array(f"{index}.weights.npy", members)
        elif field.name == "table":
            looks_up = kind is not QSoftmax or _method(options) != "argmax"
            values["table"] = _read_table(index, members) if looks_up else None
        elif field.name == "requantiser":
            values["requantiser"] = _read_requantising(index, options, members)
        elif field.name not in LATER_OPTIONS or field.name in options:
            values[field.name] = _OPTIONS[field.name](options)
    op: QOp = kind(**values)
    return op


def _read_table(index: int, members: Mapping[str, bytes]) -> Table:
    slopes = f"{index}.slopes.npy"
    return Table(
        _read_array(f"{index}.values.npy", members), _read_array(slopes, members) if slopes in members else None
    )


def _read_requantising(index: int, options: Any, members: Mapping[str, bytes]) -> Requantising:
    name = _get({"requantising": Requantiser.__name__, **options}, "requantising", str)
    kind = _REQUANTISING.get(name)
    if kind is None:
        raise ChoiceError("the requantising", name, tuple(_REQUANTISING))
    names = [field.name for field in fields(kind) if field.name != "halves"]
    arrays: dict[str, Any] = {field: _read_array(f"{index}.{field}.npy", members) for field in names}
    if "flip" in arrays:
        arrays["flip"] = _flags(arrays["flip"])
    else:  # files whose network rounds halves up have no such entry
        arrays["halves"] = _get({"halves": UP, **options}, "halves", str)
    requantising: Requantising = kind(**arrays)
    return requantising


def _flags(array: Array) -> Array:
    wrong = array[~np.isin(array, (0, 1))]
    if wrong.size:
        raise InvalidValueError("flip", int(wrong[0]), "0 or 1 in every channel")
    return array.astype(np.bool_)


def _bias(options: Any) -> tuple[float, ...]:
    bias = _get(options, "bias", list)
    if len(bias) > TEXT_LIMIT * 100 or not all(_is(v, float) and math.isfinite(v) for v in bias):
        raise InvalidValueError("a bias", bias, "a list of finite numbers")
    return tuple(float(v) for v in bias)


def _order(options: Any) -> str:
    order: str = _get(options, "order", str)
    if order not in ("darknet", "block"):
        raise ChoiceError("the order of a reorg", order, ("darknet", "block"))
    return order


def _padding(options: Any) -> Padding:
    table = _get(options, "padding", dict)
    return Padding(**{side: _get(table, side, int) for side in ("top", "left", "bottom", "right")})


def _anchors(options: Any) -> tuple[tuple[float, float], ...]:
    anchors = _get(options, "anchors", list)
    for pair in anchors:
        if not isinstance(pair, list) or len(pair) != 2 or not all(_is(v, float) for v in pair):
            raise InvalidValueError("an anchor", pair, "a width and a height")
    return tuple((float(pair[0]), float(pair[1])) for pair in anchors)


def _kind(options: Any) -> str:
    kind: str = _get(options, "kind", str)
    if kind not in HEADS:
        raise ChoiceError("the kind of a detection", kind, tuple(HEADS))
    return kind


def _method(options: Any) -> str:
    method: str = _get(options, "method", str)
    if method not in METHODS:
        raise ChoiceError("the method of a softmax", method, METHODS)
    return method


def _scale_xy(options: Any) -> float:
    scale = float(_get(options, "scale_xy", float))
    if not 0 < scale <= MAX_SCALE:
        raise RangeError("'scale_xy'", scale, 0, MAX_SCALE, exclusive=True)
    return scale


def _bins(options: Any) -> int:
    bins: int = _get(options, "bins", int)
    if not 1 <= bins <= MAX_BINS:
        raise RangeError("'bins'", bins, 1, MAX_BINS)
    return bins


def _dilation(options: Any) -> tuple[int, int]:
    down, across = _integers(_get(options, "dilation", list), "'dilation'", 2)
    return down, across


def _option(name: str, kind: type[Any]) -> Callable[[Any], Any]:
    return lambda options: _get(options, name, kind)


_OPTIONS: dict[str, Callable[[Any], Any]] = {
    "weight_type": lambda options: DataType.parse(_get(options, "weight_type", str)),
    "padding": _padding,
    "dilation": _dilation,
    "anchors": _anchors,
    "bias": _bias,
    "order": _order,
    "method": _method,
    "mode": lambda options: _text(_get(options, "mode", str)),
    "layer": lambda options: _text(_get(options, "layer", str)),
    "parameters": lambda options: _integers(_get(options, "parameters", list), "parameters"),
    "multipliers": lambda options: _integers(_get(options, "multipliers", list), "multipliers"),
    "scale": lambda options: float(_get(options, "scale", float)),
    "scale_xy": _scale_xy,
    "bins": _bins,
    "softmax": _option("softmax", bool),
    **{name: _option(name, bool) for name in ("labels", "each", "logarithm")},
    **{
        name: _option(name, int)
        for name in (
            "stride",
            "k",
            "groups",
            "around",
            "size",
            "first",
            "channels",
            "classes",
            "coords",
            "across",
            "rows",
            "columns",
        )
    },
}


def _read_array(name: str, members: Mapping[str, bytes]) -> Array:
    data = members.get(name)
    if data is None:
        raise MissingValueError(f"the member {name!r}")
    header = read_header(data, name)
    dtype, shape = header.dtype, header.shape
    if header.fortran or dtype.str not in ("|i1", "<i2", "<i8"):
        got = f"type {cut(dtype.str)} in {'Fortran' if header.fortran else 'C'} order"
        raise ShapeError(repr(name), got, "type int8, int16 or int64 in C order")
    numbers = data[header.size :]
    if any(side < 1 for side in shape):
        raise ShapeError(repr(name), shape, "no empty side")
    # Python integers, so that a product of huge sides cannot wrap around to the right size.
    size = dtype.itemsize * math.prod(shape)
    if size != len(numbers):
        required = f"{shown(size)} bytes for shape {shown(shape)}"
        raise ShapeError(repr(name), f"{len(numbers)} bytes", required)
    return np.frombuffer(numbers, dtype).reshape(shape).astype(dtype.newbyteorder("="))
