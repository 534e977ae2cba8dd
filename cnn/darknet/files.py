"""A darknet cfg, weights and names file → Network, and weights back to a file.

A weights file has no structure of its own: a header (int32 major, minor, revision; then the number of
pictures seen, uint64 from version 0.2 on, int32 before), then float32 numbers in the cfg's order. So
the topology is read first, its count of numbers compared with the file's size, and only then is
anything of that size taken. See docs/reference/darknet.md for what is read and what is refused.
"""

from __future__ import annotations

import os
import re
import stat
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from boards.errors import (
    DamagedFileError,
    FileAccessError,
    InvalidValueError,
    MismatchError,
    MissingValueError,
    RangeError,
)
from cnn.darknet.cfg import MAX_CFG_BYTES, file_label, parse_cfg, read_text
from cnn.darknet.graph import DARKNET_EPSILON
from cnn.darknet.layers import build_layers, parameter_count
from cnn.darknet.numbers import Weighted, for_all, holds_bias, once, stored_weights, with_stored
from cnn.maps import FloatArray
from cnn.network import Network, Node
from cnn.ops import BatchNorm, Convolution, Dense, Detection, TopK

__all__ = [
    "DARKNET_EPSILON",
    "WeightSource",
    "identifier",
    "parameter_count",
    "read_darknet",
    "read_names",
    "read_topology",
    "read_weights",
    "write_darknet_weights",
]

MAX_NAMES_BYTES = 1 << 20

# The topology, with zeros for numbers → the same network with numbers.
WeightSource = Callable[[Network], Network]


def read_darknet(
    cfg: Path, weights: Path | None, names: Path | None = None, *, weight_source: WeightSource | None = None
) -> Network:
    """The network of ``cfg`` with the numbers of ``weights``, or of ``weight_source`` where that is None.

    ``names`` holds one label a line, as many as the network has classes.

    Raises:
        MissingValueError: Neither weights nor a source came.
        FileAccessError: A file cannot be read; RangeError and DamagedFileError if it is too long or not a text.
        SystolicError: Of the class that says what is wrong, its place the line of the cfg or the layer of the weights.
    """
    network = read_topology(cfg)
    if names is not None:
        network = replace(network, labels=read_names(names, network))
    if weights is not None:
        return read_weights(network, weights)
    if weight_source is None:
        raise MissingValueError(
            f"the weights file of {file_label(cfg)}", remedy="give --weights FILE, or --seed NUMBER for random ones"
        )
    return weight_source(network)


def read_topology(cfg: Path) -> Network:
    """The layers and shapes of a cfg; all numbers are zeros that take no memory."""
    sections = parse_cfg(read_text(cfg, MAX_CFG_BYTES, "cfg file"), file_label(cfg))
    return build_layers(sections, identifier(cfg.stem))


def is_letterboxed(cfg: Path) -> bool:
    """Whether the network was trained on pictures that keep their sides' ratio (``letter_box=1`` of [net])."""
    sections = parse_cfg(read_text(cfg, MAX_CFG_BYTES, "cfg file"), file_label(cfg))
    return bool(sections[0].integer("letter_box", 0, 0, 1))


def identifier(text: str) -> str:
    """A valid C identifier from any text: "tiny yolo-v2" → "tiny_yolo_v2", "2nd" → "net_2nd"."""
    clean = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")
    return clean if clean[:1].isalpha() else f"net_{clean}".rstrip("_")


def read_names(names: Path, network: Network) -> tuple[str, ...]:
    """One label a line, any text; as many as ``network`` has classes, else MismatchError."""
    lines = read_text(names, MAX_NAMES_BYTES, "names file").split("\n")
    last = max((number for number, line in enumerate(lines, 1) if line.strip()), default=0)
    labels = tuple(line.removesuffix("\r") for line in lines[:last])  # empty lines at the end are no classes
    for node, classes in _class_counts(network):
        if classes != len(labels):
            what = f"the number of lines, one for each class of {node.place},"
            remedy = "check that the names are of this network"
            raise MismatchError(what, len(labels), classes, where=file_label(names), remedy=remedy)
    return labels


def _class_counts(network: Network) -> Iterator[tuple[Node, int]]:
    """Each node that has classes, and how many: every head, what chooses among them, or the last layer of a
    classifier."""
    heads = [(node, node.op.classes) for node in network.nodes if isinstance(node.op, Detection)]
    chosen = (node for node in network.nodes if isinstance(node.op, TopK))
    heads += [(node, network.nodes[node.inputs[0]].shape.channels) for node in chosen]
    yield from heads or [(network.nodes[-1], network.nodes[-1].shape.channels)]


def read_weights(network: Network, path: Path) -> Network:
    """``network`` with the numbers of a weights file; MismatchError if the file has more or fewer of them.

    FileAccessError if it cannot be read, DamagedFileError, InvalidValueError or RangeError for what is in it.
    """
    count = sum(parameter_count(node) for node in network.nodes)
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise FileAccessError(str(path), "is a device or a pipe", "weights file")
            start = _header_bytes(file.read(20), path)
            _check_size(network, path, count, status.st_size - start)
            file.seek(start)
            data = file.read(4 * count)
    except OSError as error:
        raise FileAccessError(str(path), f"cannot be read: {error.strerror or error}", "weights file") from error
    numbers = np.frombuffer(data, "<f4").astype(np.float32, copy=False)
    reader = _Reader(numbers, file_label(path))
    return replace(network, nodes=tuple(_fill_node(node, reader) for node in network.nodes))


def _header_bytes(data: bytes, path: Path) -> int:
    """How many bytes the header has, by the rule of darknet's load_weights_upto (src/parser.c)."""
    if len(data) < 16:
        reason = f"ends after {len(data)} bytes, within its header of 16 or 20"
        raise DamagedFileError(file_label(path), reason, remedy="check that this is a weights file")
    major, minor = struct.unpack_from("<2i", data)
    if not (0 <= major < 1000 and 0 <= minor < 1000):
        required = "0.0 to 999.999, above which weights are transposed"
        what, remedy = "the version in the header", "check that this is a weights file"
        raise InvalidValueError(what, f"{major}.{minor}", required, where=file_label(path), remedy=remedy)
    length = 20 if major * 10 + minor >= 2 else 16
    if len(data) < length:
        reason = f"ends after {len(data)} bytes, within its header of {length}"
        raise DamagedFileError(file_label(path), reason, remedy="copy the file again")
    return length


def _check_size(network: Network, path: Path, expected: int, size: int) -> None:
    """Refuse a file of which ``size``, the bytes after the header, are not ``expected`` float32 numbers."""
    count, odd = divmod(size, 4)
    label = file_label(path)
    if count > expected:
        what = f"the number of weights up to the last layer, {network.nodes[-1].place},"
        raise MismatchError(what, count, expected, where=label, remedy="check that the file is of this cfg")
    if count < expected:
        node, first, last = _numbers_at(network, count)
        what = f"the number of weights, which end within {node.place}, whose own are {first:,}…{last:,},"
        remedy = "check that the file is whole, and of this cfg"
        raise MismatchError(what, count, expected, where=label, remedy=remedy)
    if odd:
        raise DamagedFileError(label, f"has {odd} bytes after its last number", remedy="copy the file again")


def _numbers_at(network: Network, position: int) -> tuple[Node, int, int]:
    """The node that number ``position`` of a weights file belongs to, with its first and last number."""
    first = 0
    for node in network.nodes:
        count = parameter_count(node)
        if first <= position < first + count:
            return node, first, first + count - 1
        first += count
    raise IndexError(position)


@dataclass
class _Reader:
    """Takes the numbers one after the other."""

    numbers: FloatArray
    file: str
    position: int = 0

    def take(self, like: FloatArray, title: str, node: Node) -> FloatArray:
        """The next numbers in the shape of ``like``; errors call them ``title``."""
        part = self.numbers[self.position : self.position + like.size].reshape(like.shape)
        wrong = part[~np.isfinite(part)]
        if wrong.size:
            where, remedy = f"{self.file}: {node.place}", "check the file: it is damaged, or training diverged"
            raise InvalidValueError(f"a number of the {title}", float(wrong[0]), "finite", where=where, remedy=remedy)
        self.position += like.size
        return part


def _fill_node(node: Node, reader: _Reader) -> Node:
    op = node.op
    if not isinstance(op, (Convolution, Dense)):
        return node
    bias = for_all(op, reader.take(once(op, op.bias), "biases", node)) if holds_bias(op) else op.bias
    if isinstance(op, Convolution):
        norm = _take_norm(op, reader, node)
        op = _take_weights(op, reader, node)
    else:  # load_connected_weights reads these in the other order
        op = _take_weights(op, reader, node)
        norm = _take_norm(op, reader, node)
    return replace(node, op=replace(op, bias=bias, batch_norm=norm))


def _take_weights(op: Weighted, reader: _Reader, node: Node) -> Weighted:
    stored = stored_weights(op)
    return op if stored is None else with_stored(op, reader.take(stored, "weights", node))


def _take_norm(op: Weighted, reader: _Reader, node: Node) -> BatchNorm | None:
    norm = op.batch_norm
    if norm is None:
        return None
    scale = reader.take(once(op, norm.scale), "scales", node)
    mean = reader.take(once(op, norm.mean), "means", node)
    variance = reader.take(once(op, norm.variance), "variances", node)
    if variance.min() < 0:
        where, remedy = f"{reader.file}: {node.place}", "check that the file is of this cfg"
        raise RangeError("a variance", float(variance.min()), low=0, where=where, remedy=remedy)
    return replace(norm, scale=for_all(op, scale), mean=for_all(op, mean), variance=for_all(op, variance))


def write_darknet_weights(network: Network) -> bytes:
    """The bytes of a weights file, version 0.2.0, that ``read_darknet`` reads back bit by bit.

    The file has no place for strides, padding or the epsilon: the cfg has them.
    """
    header = struct.pack("<3iQ", 0, 2, 0, 0)
    arrays = (array for node in network.nodes for array in _arrays(node))
    return header + b"".join(array.astype("<f4").tobytes() for array in arrays)


def _arrays(node: Node) -> tuple[FloatArray, ...]:
    op = node.op
    if not isinstance(op, (Convolution, Dense)):
        return ()
    norm, stored = op.batch_norm, stored_weights(op)
    bias = (once(op, op.bias),) if holds_bias(op) else ()
    numbers = tuple(once(op, each) for each in (norm.scale, norm.mean, norm.variance)) if norm is not None else ()
    weights = () if stored is None else (stored,)
    return (*bias, *numbers, *weights) if isinstance(op, Convolution) else (*bias, *weights, *numbers)
