"""An ONNX file is opened within bounds, made one that stands alone, and read into a Graph.

Files are untrusted: nothing is taken of a size that the file only claims, and external data lies beside the file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from boards.errors import LONGEST_VALUE, NetworkError, cut, listed, shown
from cnn.darknet.cfg import file_label
from cnn.limits import MAX_CHANNELS, MAX_SIDE, MAX_WEIGHTS
from cnn.onnx.channels_last import why_last
from cnn.onnx.graph import Array, Graph, Operation

LARGEST_FILE = 4 * MAX_WEIGHTS + (1 << 26)
"""Bytes: the weights of the largest network and 64 MiB besides."""

MOST_OPERATIONS = 1 << 13
"""Of a graph; many of an exporter's work out shapes."""

MOST_EDGES = 1 << 16
"""Of a graph: the inputs and outputs of all its operations, and its initialisers."""

MOST_SHARED = 1 << 26
"""Bytes of data beside a file that several of its tensors may have, besides the data that each has for itself."""

FIRST_OPSET = 7

INSTALL = "pip install 'systolic-cnn[onnx]' brings it"


def load_onnx() -> Any:
    """The package onnx; NetworkError where it is not installed."""
    try:
        import onnx
        import onnx.numpy_helper
    except ImportError as error:
        raise NetworkError(f"an .onnx file is read by the package onnx, which is not installed; {INSTALL}") from error
    return onnx


def open_model(path: Path, size: tuple[int, int] | None = None, cuts: Sequence[str] = ()) -> Any:
    """The file's protocol buffer with its external data inside, so that it stands alone.

    size: (width, height) of its input instead of its own. cuts: tensors that become its outputs, where there are any.

    NetworkError where it is no ONNX file, too large, points outside its folder, or has no tensor of that name.
    """
    onnx, label = load_onnx(), file_label(path)
    model = parsed(_bytes(path), label)
    _bring_inside(onnx, model, path)
    if size is not None:
        source = _input(model, label)
        sides, names = source.type.tensor_type.shape.dim, [value.name for value in model.graph.output]
        operations = needed([_operation(node) for node in model.graph.node], cuts or names)
        last = _why_last(model, operations, label)
        for dimension, side in zip(sides[1:3] if last else sides[2:4], size[::-1], strict=False):
            dimension.dim_value = side
    if cuts:
        _cut(onnx, model, cuts, label)
    return model


def graph_of(model: Any, label: str) -> Graph:
    """The graph of a file that stands alone. label: the file's name, for sentences."""
    constants = _constants(model.graph.initializer, label)
    source = _input(model, label)
    operations = [_operation(node) for node in model.graph.node]
    outputs = tuple(value.name for value in model.graph.output)
    read = needed(operations, outputs)
    last, onnx_type = _why_last(model, read, label), source.type.tensor_type.elem_type
    _check_once(operations, (source.name, *constants), label)
    return Graph(
        cut(model.graph.name),
        _opset(model, label),
        source.name,
        _shape(source, label, bool(last)),
        outputs,
        read,
        constants,
        last,
        _lowest(onnx_type, f"{label}: the input {shown(source.name)}"),
    )


_LOWEST = {"INT8": -128, **dict.fromkeys(("INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"), 0)}
_OF_FLOATS = ("BFLOAT16", "DOUBLE", "FLOAT", "FLOAT16", "UNDEFINED")


def _lowest(kind: int, subject: str) -> int | None:
    """The integer that a black pixel is in an input of this type; None of floats."""
    kinds = load_onnx().TensorProto.DataType
    name = kinds.Name(kind) if kind in kinds.values() else str(kind)
    if name not in _LOWEST and name not in _OF_FLOATS:
        raise NetworkError(f"{subject} must hold floats of 0…1 or integers of 8 bits and more, not {name}")
    return _LOWEST.get(name)


def _check_once(operations: Sequence[Operation], names: Iterable[str], label: str) -> None:
    """NetworkError where a tensor comes from two places."""
    given = set(names)
    for operation in operations:
        outputs = [name for name in operation.outputs if name]
        twice = [name for i, name in enumerate(outputs) if name in given or name in outputs[:i]]
        if twice:
            raise NetworkError(f"{label}: {operation} gives {listed(twice)}, which something else gives too")
        given.update(outputs)


def _why_last(model: Any, operations: Sequence[Operation], label: str) -> str:
    source, sides = _input(model, label), {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    for operation in operations:
        value = operation.attributes.get("value") if operation.kind == "Constant" else None
        if isinstance(value, np.ndarray) and operation.outputs:
            sides[operation.outputs[0]] = value.shape
    rank = len(source.type.tensor_type.shape.dim)
    return why_last(operations, source.name, rank, _opset(model, label), sides)


def parsed(data: bytes, label: str) -> Any:
    """The protocol buffer of a file's bytes; NetworkError where it is none, or no model."""
    onnx = load_onnx()
    try:
        model = onnx.ModelProto.FromString(data)
    except Exception as error:  # what protobuf raises differs by its implementation
        raise NetworkError(f"{label} is not an ONNX file, or a damaged one: {cut(error)}") from error
    if not (model.graph.node and model.graph.output):
        raise NetworkError(f"{label} is not an ONNX model: it has no operations or no output")
    if model.functions:
        raise NetworkError(f"{label} has functions of its own; inline them: onnx.inliner.inline_local_functions")
    _check_counts(model.graph, label)
    return model


def _check_counts(graph: Any, label: str) -> None:
    edges = sum(len(node.input) + len(node.output) for node in graph.node)
    for count, limit, subject in (
        (len(graph.node), MOST_OPERATIONS, "operations"),
        (edges, MOST_EDGES, "inputs and outputs of operations"),
        (len(graph.initializer), MOST_EDGES, "initialisers"),
    ):
        if count > limit:
            raise NetworkError(f"{label} must have at most {limit:,} {subject}, not {count:,}")


def _bytes(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise NetworkError(f"the network file {path} must be a file that exists, not a folder or a device")
        if path.stat().st_size > LARGEST_FILE:
            raise NetworkError(f"{path} must have at most {LARGEST_FILE:,} bytes, not {path.stat().st_size:,}")
        return path.read_bytes()
    except OSError as error:
        raise NetworkError(f"the network file {path} cannot be read: {error.strerror or error}") from error


@dataclass(frozen=True)
class _Place:
    """Where data of a tensor lies: so many bytes of a file from ``start`` on."""

    tensor: Any
    file: Path
    start: int
    count: int


SEVERAL_A_BYTE = {"int4": 2, "uint4": 2, "float4_e2m1fn": 2, "int2": 4, "uint2": 4}
"""Values that the format packs into a byte, where numpy has a byte for each."""


def _bring_inside(onnx: Any, model: Any, path: Path) -> None:
    """External data becomes a part of its tensors."""
    outside = [tensor for tensor in model.graph.initializer if tensor.data_location == onnx.TensorProto.EXTERNAL]
    places = [_place(onnx, tensor, path) for tensor in outside]
    most = sum(file.stat().st_size for file in {place.file for place in places}) + MOST_SHARED
    if sum(place.count for place in places) > min(most, LARGEST_FILE):
        raise NetworkError(
            f"{file_label(path)}: its tensors must have at most {min(most, LARGEST_FILE):,} bytes of the data beside "
            f"it, not {sum(place.count for place in places):,}"
        )
    for place in places:
        with place.file.open("rb") as data:
            data.seek(place.start)
            place.tensor.raw_data = data.read(place.count)
        place.tensor.data_location = onnx.TensorProto.DEFAULT
        del place.tensor.external_data[:]


def _place(onnx: Any, tensor: Any, path: Path) -> _Place:
    """Of external data; NetworkError where it lies elsewhere than beside the file, or ends too early."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = PurePosixPath(entries.get("location", ""))
    subject, shortened = f"{file_label(path)}: the data of {shown(tensor.name)}", shown(str(location))
    count = _bytes_of(onnx, tensor, subject)
    _check_length(entries.get("length", str(count)), count, subject)
    digits = entries.get("offset", "0")
    start = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 16 else -1
    try:
        file = (path.parent / location).resolve()
        inside = not location.is_absolute() and ".." not in location.parts
        if not (inside and file.is_relative_to(path.parent.resolve())):
            raise NetworkError(f"{subject} must lie beside the file, not in {shortened}")
        if not file.is_file():
            raise NetworkError(f"{subject} must lie in a file, and {shortened} is none")
        if start < 0 or start + count > file.stat().st_size:
            raise NetworkError(f"{subject} are {count:,} bytes from {shown(digits)} on, but {shortened} ends before")
        with file.open("rb"):
            return _Place(tensor, file, start, count)
    except (OSError, RuntimeError, ValueError) as error:  # links in a circle, a NUL in a name
        raise NetworkError(f"{subject} cannot be read from {shortened}: {cut(error)}") from error


def _check_length(length: str, count: int, subject: str) -> None:
    if length != str(count):
        raise NetworkError(f"{subject} are {count:,} bytes by its sides, and {shown(length)} by its length")


def _bytes_of(onnx: Any, tensor: Any, subject: str) -> int:
    try:
        datatype: np.dtype[Any] = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type))
    except (KeyError, TypeError) as error:
        raise NetworkError(f"{subject} have a type that is no number's: {tensor.data_type}") from error
    count = _count(tensor.dims, subject)
    return -(-count // SEVERAL_A_BYTE.get(datatype.name, 1)) * int(datatype.itemsize)


def _count(sides: Iterable[int], subject: str) -> int:
    sides = tuple(sides)
    count = math.prod(sides)
    if min(sides, default=0) < 0 or count > MAX_WEIGHTS:
        raise NetworkError(f"{subject} must have at most {MAX_WEIGHTS:,} values, not {listed(sides)}")
    return count


def _cut(onnx: Any, model: Any, cuts: Sequence[str], label: str) -> None:
    """Ends the network at the named tensors."""
    tensors = {name for node in model.graph.node for name in node.output}
    missing = [name for name in cuts if name not in tensors]
    if missing:
        raise NetworkError(
            f"{label} can be cut at a tensor that an operation of it gives, and none gives {listed(missing)}; there "
            f"are {listed(sorted(tensors))}"
        )
    del model.graph.output[:]
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in cuts)


def _opset(model: Any, label: str) -> int:
    newest = load_onnx().defs.onnx_opset_version()
    versions = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    version = versions[0] if versions else 0
    if not FIRST_OPSET <= version <= newest:
        raise NetworkError(
            f"{label} must be of opset {FIRST_OPSET} to {newest}, not {version}; onnx.version_converter brings it there"
        )
    return int(version)


def _input(model: Any, label: str) -> Any:
    initialised = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in initialised]
    if len(inputs) != 1:
        names = listed(value.name for value in inputs) or "none"
        raise NetworkError(f"{label} must have one input, the picture, but has {len(inputs)}: {names}")
    return inputs[0]


def _shape(source: Any, label: str, last: bool) -> tuple[int, ...]:
    """Batch 1, channels, height, width; where the file has them so: batch 1, channels, length; batch 1, values. last:
    channels stand last."""
    sides = [int(side.dim_value) if side.HasField("dim_value") else 0 for side in source.type.tensor_type.shape.dim]
    subject = f"{label}: the input {shown(source.name)}"
    if not 2 <= len(sides) <= 4:
        raise NetworkError(
            f"{subject} must be pictures, batch × channels × height × width, signals, batch × channels × length, or "
            f"batch × values, not {len(sides)} sides"
        )
    batch, *places = (sides[0], sides[-1], *sides[1:-1]) if last else sides
    channels, height, width = places[0], *(1,) * (4 - len(sides)), *places[1:]
    if batch > 1:
        raise NetworkError(f"{subject} must be of one picture, not {batch}: export it with a batch of 1, or any")
    if height < 1 or width < 1:
        raise NetworkError(f"{subject} leaves its height and width open: give --size WIDTHxHEIGHT")
    if not (1 <= channels <= MAX_CHANNELS and max(height, width) <= MAX_SIDE):
        raise NetworkError(
            f"{subject} must have 1…{MAX_CHANNELS:,} channels and sides of at most {MAX_SIDE:,}, not "
            f"{channels}×{height}×{width}"
        )
    return 1, *sides[1:]


def _constants(tensors: Iterable[Any], label: str) -> Mapping[str, Array]:
    return {tensor.name: array_of(tensor, f"{label}: the values of {shown(tensor.name)}") for tensor in tensors}


def array_of(tensor: Any, subject: str) -> Array:
    """The array of a tensor, float32 where it holds other floats; NetworkError where dims and data do not agree."""
    onnx = load_onnx()
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise NetworkError(f"{subject} are in a file of their own, which only initialisers may be")
    count = _count(tensor.dims, subject)
    if tensor.HasField("raw_data") and len(tensor.raw_data) != _bytes_of(onnx, tensor, subject):
        raise NetworkError(f"{subject} must be {count:,}, as its dimensions say, not {len(tensor.raw_data):,} bytes")
    try:
        array: Array = onnx.numpy_helper.to_array(tensor)
    except Exception as error:  # TypeError, ValueError and others, by type of the tensor
        raise NetworkError(f"{subject} cannot be read: {cut(error)}") from error
    return array.astype(np.float32) if array.dtype.kind == "f" else array


def _operation(node: Any) -> Operation:
    domain = "" if node.domain in ("", "ai.onnx") else f"{node.domain}."
    kind = f"{domain}{node.op_type}"
    if not (kind.replace(".", "_").isidentifier() and len(kind) <= LONGEST_VALUE):
        kind = shown(kind)
    attributes = {attribute.name: _value(attribute) for attribute in node.attribute}
    return Operation(node.name, kind, tuple(node.input), tuple(node.output), attributes)


def _value(attribute: Any) -> Any:
    onnx = load_onnx()
    if attribute.type == onnx.AttributeProto.TENSOR:
        return array_of(attribute.t, f"the values of an attribute {shown(attribute.name)}")
    try:
        value = onnx.helper.get_attribute_value(attribute)
    except ValueError:  # of a function's parameter, which no function gives
        return None
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, (int, float)) else tuple(value) if isinstance(value, (list, tuple)) else None


def needed(operations: Sequence[Operation], outputs: Iterable[str]) -> tuple[Operation, ...]:
    """Those that an output needs, in the order of the file."""
    read, needed = set(outputs), []
    for operation in reversed(operations):
        if read.intersection(operation.outputs):
            read.update(operation.inputs)
            needed.append(operation)
    return tuple(reversed(needed))
