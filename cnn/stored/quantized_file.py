"""A QuantizedNetwork as one file: an .npz with the arrays and a JSON text ``network.json``.

The bytes depend on the network only: order and time stamps are fixed, and nothing is compressed. Reading does not trust
the file. Pickles and compression are refused, so that no array is larger than the file. Every array is checked before
it is used (cnn.stored.quantized_reader), and ``check_quantized`` checks the whole network at the end.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import InvalidValueError, RangeError, SystolicError, UnknownKeyError, shown
from cnn.datatype import DataType
from cnn.ops import Accumulating, Detection, QActivate, QConvolution, QDense, QOp, QSoftmax
from cnn.quantized import QNode, QuantizedNetwork
from cnn.quantized_check import check_quantized
from cnn.requantise import UP, Requantiser, Thresholds, numbers_of
from cnn.stored.npz import npy, opened, put
from cnn.stored.quantized_reader import FORMAT, HEADER, LATER_OPTIONS, NODE_LIMIT, read_network

FILE_LIMIT = 1 << 30
AGAIN = "write it again"

Array = npt.NDArray[Any]


def to_npz(network: QuantizedNetwork) -> bytes:
    """Return an integer network as the bytes of one .npz file. The same network gives the same bytes."""
    nodes = [_node_header(node) for node in network.nodes]
    header = {"format": FORMAT, "name": network.name, "labels": list(network.labels), "nodes": nodes}
    if network.named_outputs:
        header["named_outputs"] = [asdict(output) for output in network.named_outputs]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        put(archive, HEADER, json.dumps(header, ensure_ascii=False, indent=1, sort_keys=True).encode())
        for index, node in enumerate(network.nodes):
            for name, array in _arrays(node.op).items():
                put(archive, f"{index}.{name}.npy", npy(array))
    return buffer.getvalue()


def from_npz(data: bytes, source: str = "network.npz") -> QuantizedNetwork:
    """Return the integer network from the bytes of an .npz file that ``to_npz`` wrote.

    Args:
        data: The file's bytes.
        source: The file's name, which is the place of every error.

    Raises:
        DamagedFileError: The bytes are not an archive.
        SystolicError: ``read_network`` or ``check_quantized`` raised it.
    """
    if len(data) > FILE_LIMIT:
        raise RangeError("the size in bytes", len(data), high=FILE_LIMIT, where=source)
    with opened(io.BytesIO(data), source, AGAIN) as archive:
        members = _stored(archive, len(data), source)
    try:
        network = read_network(members)
        _check_members(network, members)
        return check_quantized(network)
    except SystolicError as error:  # an error of any class is about this file
        raise error.at(source, AGAIN) from error


# ---------------------------------------------------------------- writing


def _arrays(op: QOp) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    if isinstance(op, (QConvolution, QDense)):
        arrays["weights"] = op.weights
    if isinstance(op, Accumulating):
        arrays.update(numbers_of(op.requantiser))
    if isinstance(op, (QActivate, QSoftmax)) and op.table is not None:
        arrays["values"] = op.table.values
        if op.table.slopes is not None:
            arrays["slopes"] = op.table.slopes
    if "flip" in arrays:
        arrays["flip"] = arrays["flip"].astype(np.int8)
    return arrays


def _node_header(node: QNode) -> dict[str, Any]:
    return {
        "name": node.name,
        "op": (Detection if isinstance(node.op, Detection) else type(node.op)).__name__,
        "options": _options(node.op),
        "inputs": list(node.inputs),
        "shape": [node.shape.channels, node.shape.height, node.shape.width],
        "datatype": node.type.datatype.name,
        "scale": node.type.scale,
        **({"zero_point": node.type.zero_point} if node.type.zero_point else {}),
        "source": node.source,
    }


def _options(op: QOp) -> dict[str, Any]:
    """Return an operation's fields, apart from arrays, for the file, without LATER_OPTIONS at their default."""
    plain = [f for f in fields(op) if f.name not in ("weights", "requantiser", "table")]
    needed = [f.name for f in plain if f.name not in LATER_OPTIONS or getattr(op, f.name) != f.default]
    options = {name: _plain(getattr(op, name)) for name in needed}
    if isinstance(op, Detection):
        options["kind"] = op.kind
    if isinstance(op, Accumulating) and not isinstance(op.requantiser, Requantiser):
        options["requantising"] = type(op.requantiser).__name__
    if isinstance(op, Accumulating) and not isinstance(op.requantiser, Thresholds) and op.requantiser.halves != UP:
        options["halves"] = op.requantiser.halves
    return options


def _plain(value: Any) -> Any:
    if isinstance(value, DataType):
        return value.name
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


# ---------------------------------------------------------------- reading


def _stored(archive: zipfile.ZipFile, size: int, source: str) -> dict[str, bytes]:
    entries = archive.infolist()
    if len(entries) > 8 * NODE_LIMIT:
        raise RangeError("the number of members", len(entries), high=8 * NODE_LIMIT, where=source, remedy=AGAIN)
    packed = [entry.filename for entry in entries if entry.compress_type != zipfile.ZIP_STORED]
    if packed:
        raise InvalidValueError(
            f"the member {shown(packed[0])}", "compressed", "stored as it is", where=source, remedy=AGAIN
        )
    seen: set[str] = set()
    for entry in entries:
        if entry.filename in seen:
            required = "different from all others"
            raise InvalidValueError("the name of a member", entry.filename, required, where=source, remedy=AGAIN)
        seen.add(entry.filename)
    total = sum(entry.file_size for entry in entries)
    if total > size:  # stored members overlap, or one is cut off
        raise RangeError("the size of all members in bytes", total, high=size, where=source, remedy=AGAIN)
    return {entry.filename: archive.read(entry) for entry in entries}


def _check_members(network: QuantizedNetwork, members: Mapping[str, bytes]) -> None:
    expected = {HEADER} | {f"{i}.{name}.npy" for i, node in enumerate(network.nodes) for name in _arrays(node.op)}
    if set(members) != expected:
        raise UnknownKeyError(sorted(set(members) - expected), ())
