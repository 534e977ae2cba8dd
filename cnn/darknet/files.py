"""Read a darknet cfg, weights and names file into a Network, and write a weights file.

A weights file has a header: major, minor and revision as int32, and the number of images seen, which is uint64 from
version 0.2 on and int32 before. float32 numbers in the order of the cfg follow, without any structure. The topology is
therefore read first, and the number of weights is compared with the file's size before any memory is allocated.
docs/reference/darknet.md lists what is read and what is refused.
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
from cnn.darknet.numbers import Weighted, file_numbers, filter_numbers, holds_bias, stored_weights, with_stored
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

# A function from a topology, whose numbers are zeros, to the same network with numbers.
WeightSource = Callable[[Network], Network]


def read_darknet(
    cfg: Path, weights: Path | None, names: Path | None = None, *, weight_source: WeightSource | None = None
) -> Network:
    """Return the float network of a darknet cfg file, with the numbers of its weights file and its labels.

    Args:
        cfg: The cfg file.
        weights: The weights file; None to use ``weight_source``.
        names: A file with one label per line, one for each class of the network.
        weight_source: A function that gives the network its numbers.

    Raises:
        MissingValueError: There are neither weights nor a source of them.
        FileAccessError: A file cannot be read.
        RangeError: A file is too long.
        DamagedFileError: A file is not a text.
        SystolicError: Any other fault; the error names the line of the cfg or the layer of the weights.
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
    """Return the float network of a darknet cfg file without numbers: all weights are zeros that take no memory."""
    sections = parse_cfg(read_text(cfg, MAX_CFG_BYTES, "cfg file"), file_label(cfg))
    return build_layers(sections, identifier(cfg.stem))


def is_letterboxed(cfg: Path) -> bool:
    """Return whether the network was trained on images that keep their aspect ratio (``letter_box=1`` of [net])."""
    sections = parse_cfg(read_text(cfg, MAX_CFG_BYTES, "cfg file"), file_label(cfg))
    return bool(sections[0].integer("letter_box", 0, 0, 1))


def identifier(text: str) -> str:
    """Return a valid C identifier for a text: "tiny yolo-v2" → "tiny_yolo_v2", "2nd" → "net_2nd"."""
    clean = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")
    return clean if clean[:1].isalpha() else f"net_{clean}".rstrip("_")


def read_names(names: Path, network: Network) -> tuple[str, ...]:
    """Return the labels in a names file, one per line; MismatchError if the network does not have this many classes."""
    lines = read_text(names, MAX_NAMES_BYTES, "names file").split("\n")
    last = max((number for number, line in enumerate(lines, 1) if line.strip()), default=0)
    labels = tuple(line.removesuffix("\r") for line in lines[:last])  # empty lines at the end are not classes
    for node, classes in _class_counts(network):
        if classes != len(labels):
            what = f"the number of lines, one for each class of {node.place},"
            remedy = "check that the names file belongs to this network"
            raise MismatchError(what, len(labels), classes, where=file_label(names), remedy=remedy)
    return labels


def _class_counts(network: Network) -> Iterator[tuple[Node, int]]:
    """Yield each node that gives classes, with their number: heads and TopK layers, or else the last layer."""
    heads = [(node, node.op.classes) for node in network.nodes if isinstance(node.op, Detection)]
    chosen = (node for node in network.nodes if isinstance(node.op, TopK))
    heads += [(node, network.nodes[node.inputs[0]].shape.channels) for node in chosen]
    yield from heads or [(network.nodes[-1], network.nodes[-1].shape.channels)]


def read_weights(network: Network, path: Path) -> Network:
    """Return the network with the weights, biases and batch norms of a darknet weights file.

    Raises:
        MismatchError: The file has more or fewer numbers than the network.
        FileAccessError: The file cannot be read.
        DamagedFileError: The file ends within its header, or within a number.
        InvalidValueError: The version is not supported, or a number is not finite.
        RangeError: A variance is negative.
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
    """Return the length in bytes of a weights file's header, by darknet's load_weights_upto (src/parser.c)."""
    if len(data) < 16:
        reason = f"ends after {len(data)} bytes, within its header of 16 or 20"
        raise DamagedFileError(file_label(path), reason, remedy="check that this is a weights file")
    major, minor = struct.unpack_from("<2i", data)
    if not (0 <= major < 1000 and 0 <= minor < 1000):
        required = "between 0.0 and 999.999, because newer files have transposed weights"
        what, remedy = "the version in the header", "check that this is a weights file"
        raise InvalidValueError(what, f"{major}.{minor}", required, where=file_label(path), remedy=remedy)
    length = 20 if major * 10 + minor >= 2 else 16
    if len(data) < length:
        reason = f"ends after {len(data)} bytes, within its header of {length}"
        raise DamagedFileError(file_label(path), reason, remedy="copy the file again")
    return length


def _check_size(network: Network, path: Path, expected: int, size: int) -> None:
    """Raise an error if ``size``, the file's bytes after its header, does not match ``expected`` float32 numbers."""
    count, odd = divmod(size, 4)
    label = file_label(path)
    if count > expected:
        what = f"the number of weights up to the last layer, {network.nodes[-1].place},"
        raise MismatchError(what, count, expected, where=label, remedy="check that the file belongs to this cfg")
    if count < expected:
        node, first, last = _numbers_at(network, count)
        what = f"the number of weights, which end within {node.place} (its numbers are {first:,}…{last:,}),"
        remedy = "check that the file is complete and belongs to this cfg"
        raise MismatchError(what, count, expected, where=label, remedy=remedy)
    if odd:
        raise DamagedFileError(label, f"has {odd} bytes after its last number", remedy="copy the file again")


def _numbers_at(network: Network, position: int) -> tuple[Node, int, int]:
    """Return the layer of number ``position`` in a weights file, and the positions of its first and last number."""
    first = 0
    for node in network.nodes:
        count = parameter_count(node)
        if first <= position < first + count:
            return node, first, first + count - 1
        first += count
    raise IndexError(position)


@dataclass
class _Reader:
    """The float32 numbers of a weights file, which are taken in order, layer by layer.

    Attributes:
        numbers: All numbers of the file.
        file: The file's name in errors.
        position: The next number to read.
    """

    numbers: FloatArray
    file: str
    position: int = 0

    def take(self, like: FloatArray, title: str, node: Node) -> FloatArray:
        """Return the next numbers of the file as an array shaped like ``like``; InvalidValueError if one is not finite.

        title: The name of the numbers in errors.
        """
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
    bias = filter_numbers(op, reader.take(file_numbers(op, op.bias), "biases", node)) if holds_bias(op) else op.bias
    if isinstance(op, Convolution):
        norm = _take_norm(op, reader, node)
        op = _take_weights(op, reader, node)
    else:  # darknet's load_connected_weights reads weights and batch norm in the other order
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
    scale = reader.take(file_numbers(op, norm.scale), "scales", node)
    mean = reader.take(file_numbers(op, norm.mean), "means", node)
    variance = reader.take(file_numbers(op, norm.variance), "variances", node)
    if variance.min() < 0:
        where, remedy = f"{reader.file}: {node.place}", "check that the file belongs to this cfg"
        raise RangeError("a variance", float(variance.min()), low=0, where=where, remedy=remedy)
    return replace(
        norm,
        scale=filter_numbers(op, scale),
        mean=filter_numbers(op, mean),
        variance=filter_numbers(op, variance),
    )


def write_darknet_weights(network: Network) -> bytes:
    """Return a network's numbers as bytes of a darknet weights file, version 0.2.0, without any rounding.

    The file does not hold strides, padding or the epsilon; the cfg file does.
    """
    header = struct.pack("<3iQ", 0, 2, 0, 0)
    arrays = (array for node in network.nodes for array in _arrays(node))
    return header + b"".join(array.astype("<f4").tobytes() for array in arrays)


def _arrays(node: Node) -> tuple[FloatArray, ...]:
    """Return the biases, batch norm and weights of a node, in the order in which a weights file has them."""
    op = node.op
    if not isinstance(op, (Convolution, Dense)):
        return ()
    norm, stored = op.batch_norm, stored_weights(op)
    bias = (file_numbers(op, op.bias),) if holds_bias(op) else ()
    numbers = (
        tuple(file_numbers(op, each) for each in (norm.scale, norm.mean, norm.variance)) if norm is not None else ()
    )
    weights = () if stored is None else (stored,)
    return (*bias, *numbers, *weights) if isinstance(op, Convolution) else (*bias, *weights, *numbers)
