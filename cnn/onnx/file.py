"""Open an ONNX file within limits, read its external data into the model, and convert the model into a Graph.

Files are untrusted. Nothing is allocated with a size that the file only claims, and external data must be in the
folder of the file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from boards.errors import (
    MAX_VALUE_LENGTH,
    ChoiceError,
    DamagedFileError,
    FileAccessError,
    InvalidValueError,
    MismatchError,
    MissingToolError,
    MissingValueError,
    RangeError,
    SeveralFaultsError,
    ShapeError,
    UnsupportedError,
    cut,
    listed,
    shown,
)
from cnn.darknet.cfg import file_label
from cnn.limits import MAX_CHANNELS, MAX_SIDE, MAX_WEIGHTS
from cnn.onnx import annotated_input
from cnn.onnx.annotation import annotations_of, check_constants
from cnn.onnx.channels_last import channels_last_reason
from cnn.onnx.graph import Array, Graph, OnnxOperation

# Model-local functions, which some exporters write for modules: each call is replaced by the function's operators.
#
# Functions may call each other, so a small file can expand to very many operators. The number of operators is therefore
# computed and checked before any call is expanded.

MAX_FUNCTIONS = 1 << 10
DEEPEST = 32
"""Limit for the depth of nested function calls."""

Key = tuple[str, str, str]
"""Domain, name and overload of a function, or of the operator that calls it."""


def inlined(model: Any, operations: int, size: int, label: str) -> Any:
    """Return the ONNX model with its function calls replaced by the functions' operators, within limits of size.

    Args:
        model: The protocol buffer.
        operations: Limit for the operators of the expanded model.
        size: Limit for the bytes of these operators.
        label: The file's name in errors.

    Raises:
        RangeError: There are too many functions, nested calls, operators or bytes.
        DamagedFileError: A call does not fit its function, or a function calls itself.
        UnsupportedError: A function has another opset than the model.
    """
    if len(model.functions) > MAX_FUNCTIONS:
        raise RangeError("the number of functions", len(model.functions), high=MAX_FUNCTIONS, where=label)
    functions = {_key(function, function.name): function for function in model.functions}
    sizes: dict[Key, tuple[int, int]] = {}
    count, length = _size_of(model.graph.node, functions, sizes, (), label)
    for what, got, most in (
        ("the number of operations, with its functions expanded,", count, operations),
        ("the number of bytes of its operations, with its functions expanded,", length, size),
    ):
        if got > most:
            raise RangeError(what, got, high=most, where=label)
    from onnx.inliner import inline_local_functions

    try:
        result = inline_local_functions(model)
    except Exception as error:  # onnx's C++ code raises many kinds of exceptions
        raise DamagedFileError(label, f"has a function that cannot be inlined: {cut(error)}") from error
    called = {_key(node, node.op_type) for node in result.graph.node} & functions.keys()
    if called:
        _, name, _ = min(called)
        reason, remedy = "its opset differs from the model's opset", "export the model in one opset"
        raise UnsupportedError(f"the model-local function {shown(name)}", reason, where=label, remedy=remedy)
    del result.functions[:]
    return result


def _key(node: Any, name: str) -> Key:
    return node.domain, name, getattr(node, "overload", "")


def _size_of(
    nodes: Any, functions: Mapping[Key, Any], sizes: dict[Key, tuple[int, int]], calls: tuple[Key, ...], label: str
) -> tuple[int, int]:
    """Return the number of operators, and of their bytes, that ``nodes`` will have after function calls are expanded.

    Args:
        nodes: The nodes of the graph or of a function.
        functions: The model's functions.
        sizes: The results for functions that are known already; extended here.
        calls: The functions whose bodies contain ``nodes``, from the outermost to the innermost.
        label: The file's name in errors.
    """
    count = size = 0
    for node in _with_inner(nodes):
        key = _key(node, node.op_type)
        if key not in functions:
            count, size = count + 1, size + node.ByteSize()
            continue
        if key not in sizes:
            sizes[key] = _size_of_function(node, functions, sizes, calls, label)
        _check_call(node, functions[key], label)
        count, size = count + sizes[key][0], size + sizes[key][1]
    return count, size


def _size_of_function(
    node: Any, functions: Mapping[Key, Any], sizes: dict[Key, tuple[int, int]], calls: tuple[Key, ...], label: str
) -> tuple[int, int]:
    key = _key(node, node.op_type)
    if key in calls:
        raise DamagedFileError(label, f"has a function that calls itself: {shown(node.op_type)}")
    if len(calls) >= DEEPEST:
        raise RangeError("the depth of nested function calls", len(calls) + 1, high=DEEPEST, where=label)
    return _size_of(functions[key].node, functions, sizes, (*calls, key), label)


def _check_call(node: Any, function: Any, label: str) -> None:
    if len(node.input) > len(function.input) or len(node.output) > len(function.output):
        got = f"{len(node.input)} inputs and {len(node.output)} outputs"
        has = f"{len(function.input)} and {len(function.output)}"
        raise DamagedFileError(label, f"calls {shown(node.op_type)} with {got}; it has {has}", shown(node.name))


def _with_inner(nodes: Any) -> Iterator[Any]:
    """Yield the nodes, and also the nodes inside the subgraphs of their branches and loops."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                waiting.extend(graph.node)


MAX_FILE_BYTES = 4 * MAX_WEIGHTS + (1 << 26)
"""Limit for the bytes of a file: the float32 weights of the largest network and 64 MiB more."""

MAX_OPERATIONS = 1 << 13
"""Limit for the operations of a graph. Exporters write many that only compute shapes."""

MAX_EDGES = 1 << 16
"""Limit for the inputs and outputs of all operations of a graph, and for its initialisers."""

MAX_SHARED = 1 << 26
"""Limit for the bytes that reading may add by using a part of a file several times.

It applies to tensors that share a part of an external data file, and to functions that are called several times."""

FIRST_OPSET = 7
"""The oldest opset that is read."""

INSTALL = "run pip install 'systolic-cnn[onnx]'"


def load_onnx() -> Any:
    """Return the package onnx; MissingToolError if it is not installed."""
    try:
        import onnx
        import onnx.numpy_helper
    except ImportError as error:
        raise MissingToolError("the package onnx", "read .onnx files", remedy=INSTALL) from error
    return onnx


def open_model(path: Path, size: tuple[int, int] | None = None, cuts: Sequence[str] = ()) -> Any:
    """Return an ONNX file's protocol buffer with its external data read into it, after checks of its size.

    Args:
        path: The file.
        size: (width, height) of the input; None to keep the file's own.
        cuts: Names of tensors that become the outputs; empty to keep the file's own.

    Raises:
        FileAccessError: The file, or a file with its external data, cannot be read.
        DamagedFileError: It is not an ONNX file, or its content contradicts itself.
        RangeError: It is too large.
        InvalidValueError: Its external data is outside its folder.
        ChoiceError: It has no tensor of a name in ``cuts``; SeveralFaultsError if several are missing.
    """
    onnx, label = load_onnx(), file_label(path)
    model = parsed(_bytes(path), label)
    _load_external_data(onnx, model, path)
    if size is not None:
        source = _input(model, label)
        sides, names = source.type.tensor_type.shape.dim, [value.name for value in model.graph.output]
        operations = needed([_operation(node, label) for node in model.graph.node], cuts or names)
        last = _why_last(model, operations, label)
        for place, side in _sized([side.dim_value for side in sides], size, last != "").items():
            sides[place].dim_value = side
    if cuts:
        _cut(onnx, model, cuts, label)
    return model


def graph_of(model: Any, label: str, whole: bool = False) -> Graph:
    """Return the ``Graph`` (operations and constant arrays) of an ONNX protocol buffer without external data.

    Args:
        model: The protocol buffer.
        label: The file's name in errors.
        whole: Whether to keep the operations that no output needs.
    """
    constants = _constants(model.graph.initializer, label)
    source = _input(model, label)
    operations = [_operation(node, label) for node in model.graph.node]
    outputs = tuple(value.name for value in model.graph.output)
    read = needed(operations, outputs)
    last, onnx_type = _why_last(model, read, label), source.type.tensor_type.elem_type
    _check_once(operations, (source.name, *constants), label)
    annotations = annotations_of(model.graph.quantization_annotation, MAX_EDGES, label)
    check_constants(annotations, constants, label)
    said, lowest = annotations.get(source.name), _lowest(onnx_type, source.name, label)
    of_floats = said if lowest is None else None
    graph = Graph(
        cut(model.graph.name),
        _opset(model, label),
        source.name,
        _shape(source, label, bool(last)),
        outputs,
        tuple(operations) if whole else read,
        constants,
        last,
        lowest if of_floats is None else annotated_input.lowest_of(of_floats),
        max(1, int(source.type.tensor_type.shape.dim[0].dim_value)),
        annotations,
    )
    return graph if of_floats is None else annotated_input.typed(graph, of_floats)


_LOWEST = {"INT8": -128, **dict.fromkeys(("INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"), 0)}
_OF_FLOATS = ("BFLOAT16", "DOUBLE", "FLOAT", "FLOAT16", "UNDEFINED")


def _lowest(kind: int, name: str, label: str) -> int | None:
    """Return the integer of a black pixel in a network input of this element type; None for floats."""
    kinds = load_onnx().TensorProto.DataType
    type_ = kinds.Name(kind) if kind in kinds.values() else str(kind)
    if type_ not in _LOWEST and type_ not in _OF_FLOATS:
        required = "floats from 0 to 1 or integers of at least 8 bits"
        raise ShapeError(f"the input {shown(name)}", type_, required, where=label)
    return _LOWEST.get(type_)


def _check_once(operations: Sequence[OnnxOperation], names: Iterable[str], label: str) -> None:
    """Raise DamagedFileError if a tensor is defined twice: by operations, inputs or initialisers."""
    given = set(names)
    for operation in operations:
        outputs = [name for name in operation.outputs if name]
        twice = [name for i, name in enumerate(outputs) if name in given or name in outputs[:i]]
        if twice:
            raise DamagedFileError(label, f"defines {listed(twice)}, which is defined elsewhere too", str(operation))
        given.update(outputs)


def _why_last(model: Any, operations: Sequence[OnnxOperation], label: str) -> str:
    """Return the reason to take the input's channels as last (cnn.onnx.channels_last); "" if they are first."""
    source, sides = _input(model, label), {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    for operation in operations:
        value = operation.attributes.get("value") if operation.kind == "Constant" else None
        if isinstance(value, np.ndarray) and operation.outputs:
            sides[operation.outputs[0]] = value.shape
    rank = len(source.type.tensor_type.shape.dim)
    return channels_last_reason(operations, source.name, rank, _opset(model, label), sides)


def parsed(data: bytes, label: str) -> Any:
    """Return the ONNX protocol buffer in a file's bytes, checked and with function calls expanded.

    Raises:
        DamagedFileError: The bytes are not a model.
        UnsupportedError: A function of the model has another opset than the model.
        RangeError: It has too many operators or tensors.
    """
    onnx = load_onnx()
    try:
        model = onnx.ModelProto.FromString(data)
    except Exception as error:  # protobuf's implementations raise different exceptions
        raise DamagedFileError(label, f"is not an ONNX file, or is damaged: {cut(error)}") from error
    if not (model.graph.node and model.graph.output):
        raise DamagedFileError(label, "is not an ONNX model: it has no operators or no output")
    _check_counts(model.graph, label)
    _check_names(model.graph, label)
    if model.functions:
        model = inlined(model, MAX_OPERATIONS, len(data) + MAX_SHARED, label)
        _check_counts(model.graph, label)
    return model


def _check_names(graph: Any, label: str) -> None:
    """Raise DamagedFileError if a name of a node, tensor or attribute is not valid UTF-8.

    Depending on its implementation, protobuf returns such a name as bytes or raises UnicodeDecodeError.
    """
    values = (*graph.input, *graph.output, *graph.initializer)
    names = [name for node in graph.node for name in (node.name, node.op_type, node.domain, *node.input, *node.output)]
    names += [value.name for value in values]
    names += [attribute.name for node in graph.node for attribute in node.attribute]
    for entry in graph.quantization_annotation:
        pairs = entry.quant_parameter_tensor_names
        names += [entry.tensor_name, *(pair.key for pair in pairs), *(pair.value for pair in pairs)]
    if not all(isinstance(name, str) for name in names):
        raise DamagedFileError(label, "has a name that is not text in UTF-8")


def _check_counts(graph: Any, label: str) -> None:
    edges = sum(len(node.input) + len(node.output) for node in graph.node)
    for count, limit, subject in (
        (len(graph.node), MAX_OPERATIONS, "operations"),
        (edges, MAX_EDGES, "inputs and outputs of operations"),
        (len(graph.initializer), MAX_EDGES, "initialisers"),
    ):
        if count > limit:
            raise RangeError(f"the number of {subject}", count, high=limit, where=label)


def _bytes(path: Path) -> bytes:
    try:
        if not path.is_file():
            reason = "is a folder or a device" if path.exists() else "does not exist"
            raise FileAccessError(str(path), reason, "network file")
        if path.stat().st_size > MAX_FILE_BYTES:
            raise RangeError("the file's size in bytes", path.stat().st_size, high=MAX_FILE_BYTES, where=str(path))
        return path.read_bytes()
    except OSError as error:
        raise FileAccessError(str(path), f"cannot be read: {error.strerror or error}", "network file") from error


@dataclass(frozen=True)
class _Place:
    """The location of a tensor's external data: file, offset and number of bytes.

    Attributes:
        tensor: The protocol buffer of the tensor.
        file: The file with the data.
        start: Offset of the first byte in the file.
        count: Number of bytes.
    """

    tensor: Any
    file: Path
    start: int
    count: int


SEVERAL_A_BYTE = {"int4": 2, "uint4": 2, "float4_e2m1fn": 2, "int2": 4, "uint2": 4}
"""Number of values that the file packs into one byte, by data type. numpy uses one byte per value."""


def _load_external_data(onnx: Any, model: Any, path: Path) -> None:
    """Read the external data of all initialisers into the model."""
    outside = [tensor for tensor in model.graph.initializer if tensor.data_location == onnx.TensorProto.EXTERNAL]
    places = [_place(onnx, tensor, path) for tensor in outside]
    most = sum(file.stat().st_size for file in {place.file for place in places}) + MAX_SHARED
    total = sum(place.count for place in places)
    if total > min(most, MAX_FILE_BYTES):
        subject = "the number of bytes of its tensors in data files"
        raise RangeError(subject, total, high=min(most, MAX_FILE_BYTES), where=file_label(path))
    for place in places:
        with place.file.open("rb") as data:
            data.seek(place.start)
            place.tensor.raw_data = data.read(place.count)
        place.tensor.data_location = onnx.TensorProto.DEFAULT
        del place.tensor.external_data[:]


def _place(onnx: Any, tensor: Any, path: Path) -> _Place:
    """Return the location of a tensor's external data; an error is raised if it is outside the model's folder.

    Raises:
        InvalidValueError: The data would be outside the folder of the model.
        FileAccessError: The data file cannot be read.
        DamagedFileError: The data file ends too early.
    """
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = PurePosixPath(entries.get("location", ""))
    subject = f"{file_label(path)}: the data of {shown(tensor.name)}"
    count = _bytes_of(onnx, tensor, subject)
    _check_length(entries.get("length", str(count)), count, subject)
    digits = entries.get("offset", "0")
    start = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 16 else -1
    try:
        file = (path.parent / location).resolve()
        inside = not location.is_absolute() and ".." not in location.parts
        if not (inside and file.is_relative_to(path.parent.resolve())):
            required = "a path inside the folder of the model"
            raise InvalidValueError("the location", str(location), required, where=subject)
        if not file.is_file():
            raise FileAccessError(str(location), "does not exist or is not a regular file", "data file", where=subject)
        if start < 0 or start + count > file.stat().st_size:
            reason = f"ends before the {count:,} bytes from offset {shown(digits)} on"
            raise DamagedFileError(str(location), reason, where=subject)
        with file.open("rb"):
            return _Place(tensor, file, start, count)
    except (OSError, RuntimeError, ValueError) as error:  # symbolic links in a circle, a NUL in the name
        raise FileAccessError(str(location), f"cannot be read: {cut(error)}", "data file", where=subject) from error


def _check_length(length: str, count: int, subject: str) -> None:
    if length != str(count):
        raise MismatchError("the length in bytes", length, str(count), where=subject)


def _bytes_of(onnx: Any, tensor: Any, subject: str) -> int:
    try:
        datatype: np.dtype[Any] = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type))
    except (KeyError, TypeError) as error:
        raise InvalidValueError("the element type", tensor.data_type, "a numeric type", where=subject) from error
    count = _count(tensor.dims, subject)
    return -(-count // SEVERAL_A_BYTE.get(datatype.name, 1)) * int(datatype.itemsize)


def _count(sides: Iterable[int], subject: str) -> int:
    sides = tuple(sides)
    count = math.prod(sides)
    if min(sides, default=0) < 0 or count > MAX_WEIGHTS:
        raise ShapeError("the tensor", sides, f"at most {MAX_WEIGHTS:,} values and no negative side", where=subject)
    return count


def _cut(onnx: Any, model: Any, cuts: Sequence[str], label: str) -> None:
    """Replace the model's outputs by the tensors named in ``cuts``."""
    tensors = {name for node in model.graph.node for name in node.output}
    choices = sorted(tensors)
    missing = [
        ChoiceError("a tensor to cut the network at", name, choices, where=label)
        for name in cuts
        if name not in tensors
    ]
    if missing:
        raise missing[0] if len(missing) == 1 else SeveralFaultsError(missing)
    del model.graph.output[:]
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in cuts)


def _opset(model: Any, label: str) -> int:
    newest = load_onnx().defs.onnx_opset_version()
    versions = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    version = versions[0] if versions else 0
    if not FIRST_OPSET <= version <= newest:
        remedy = "convert the file with onnx.version_converter"
        raise RangeError("the opset", version, FIRST_OPSET, newest, where=label, remedy=remedy)
    return int(version)


def _input(model: Any, label: str) -> Any:
    initialised = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in initialised]
    if len(inputs) != 1:
        names = [value.name for value in inputs]
        raise InvalidValueError("the inputs of the network", names, "one tensor, the image", where=label)
    return inputs[0]


def _shape(source: Any, label: str, last: bool) -> tuple[int, ...]:
    """Return the shape of the network's input in the file's order, with the batch set to 1.

    The shape is (1, channels, height, width), (1, channels, length) or (1, values), in the file's order.

    Args:
        source: The protocol buffer of the input.
        label: The file's name in errors.
        last: Whether the channels are the last side.
    """
    sides = [int(side.dim_value) if side.HasField("dim_value") else 0 for side in source.type.tensor_type.shape.dim]
    subject = f"the input {shown(source.name)}"
    if not 2 <= len(sides) <= 4:
        required = "sides batch × channels × height × width, batch × channels × length or batch × values"
        raise ShapeError(subject, f"{len(sides)} sides", required, where=label)
    _, *places = (sides[0], sides[-1], *sides[1:-1]) if last else sides
    channels, height, width = places[0], *(1,) * (4 - len(sides)), *places[1:]
    _check_open(sides, last, subject, label)
    for side, got, most in (
        ("channels", channels, MAX_CHANNELS),
        ("height", height, MAX_SIDE),
        ("width", width, MAX_SIDE),
    ):
        if not 1 <= got <= most:
            raise RangeError(f"{side} of {subject}", got, 1, most, where=label)
    return 1, *sides[1:]


def _check_open(sides: Sequence[int], last: bool, subject: str, label: str) -> None:
    """Raise MissingValueError if the network's input has dimensions that the file does not set and no option sets."""
    open_sides = [place for place, side in enumerate(sides) if place and side < 1]
    if not open_sides:
        return
    names = {2: ("values",), 3: ("channels", "length"), 4: ("channels", "height", "width")}[len(sides)]
    names = (*names[1:], names[0]) if last and len(sides) > 2 else names
    told = listed(f"dimension {place} ({names[place - 1]})" for place in open_sides)
    remedy = {2: "give --size VALUESx1", 3: "give --size LENGTHx1", 4: "give --size WIDTHxHEIGHT"}[len(sides)]
    if any(names[place - 1] == "channels" for place in open_sides):
        remedy = "export the model with the number of its channels"
        if len(sides) == 3 and not last:
            remedy = "give --size WIDTHxHEIGHT if it is a grey image, or " + remedy
    raise MissingValueError(f"{told} of {subject}", "the file leaves it open", where=label, remedy=remedy)


def _sized(sides: Sequence[int], size: tuple[int, int], last: bool) -> dict[int, int]:
    """Return the input dimensions that --size sets, as indices in the input's shape and their values.

    An input of 3 sides is a signal if the width or the height is 1: its length is their product. Otherwise, or if the
    file does not set its channels, it is a grey image without a side for the channels.
    """
    width, height = size
    if len(sides) == 4:
        return {1: height, 2: width} if last else {2: height, 3: width}
    if len(sides) == 3 and not last and (sides[1] < 1 or min(size) > 1):
        return {1: height, 2: width}
    return {1 if last or len(sides) == 2 else 2: width * height}


def _constants(tensors: Iterable[Any], label: str) -> Mapping[str, Array]:
    return {tensor.name: array_of(tensor, label, f"the tensor {shown(tensor.name)}") for tensor in tensors}


def array_of(tensor: Any, label: str, place: str) -> Array:
    """Return the values of an ONNX tensor as an array; float64, float16 and similar types become float32.

    Args:
        tensor: The protocol buffer.
        label: The file's name in errors.
        place: The tensor's name in errors.

    Raises:
        MismatchError: Its dimensions do not agree with its number of bytes.
        DamagedFileError: Its values cannot be read.
        UnsupportedError: Its data is in another file.
    """
    onnx, subject = load_onnx(), f"{label}: {place}"
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise UnsupportedError("data in another file", "only initialisers may have it", where=subject)
    _count(tensor.dims, subject)
    if tensor.HasField("raw_data"):
        _check_length(str(len(tensor.raw_data)), _bytes_of(onnx, tensor, subject), subject)
    try:
        array: Array = onnx.numpy_helper.to_array(tensor)
    except Exception as error:  # the exception depends on the tensor's type: TypeError, ValueError and others
        raise DamagedFileError(label, f"has values that cannot be read: {cut(error)}", place) from error
    return array.astype(np.float32) if array.dtype.kind == "f" else array


def _operation(node: Any, label: str) -> OnnxOperation:
    domain = "" if node.domain in ("", "ai.onnx") else f"{node.domain}."
    kind = f"{domain}{node.op_type}"
    if not (kind.replace(".", "_").isidentifier() and len(kind) <= MAX_VALUE_LENGTH):
        kind = shown(kind)
    attributes = {attribute.name: _value(attribute, label) for attribute in node.attribute}
    return OnnxOperation(node.name, kind, tuple(node.input), tuple(node.output), attributes)


def _value(attribute: Any, label: str) -> Any:
    onnx = load_onnx()
    if attribute.type == onnx.AttributeProto.TENSOR:
        return array_of(attribute.t, label, f"the attribute {shown(attribute.name)}")
    try:
        value = onnx.helper.get_attribute_value(attribute)
    except ValueError:  # a reference to a parameter of a function, outside of a function
        return None
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, (int, float)) else tuple(value) if isinstance(value, (list, tuple)) else None


def needed(operations: Sequence[OnnxOperation], outputs: Iterable[str]) -> tuple[OnnxOperation, ...]:
    """Return the operations that these output tensors depend on, in the order of the file."""
    read, needed = set(outputs), []
    for operation in reversed(operations):
        if read.intersection(operation.outputs):
            read.update(operation.inputs)
            needed.append(operation)
    return tuple(reversed(needed))
