"""The formats of network files by file extension: the built-in ones, and formats that other packages add.

docs/how-to/extend.md describes how a package adds one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from boards.errors import ChoiceError, FileAccessError, InvalidValueError, UnsupportedError, listed
from cnn import zoo
from cnn.extending.registry import Registry
from cnn.network import Network
from cnn.passes.view import checked
from systolic.front_ends.darknet import DARKNET
from systolic.front_ends.exported import EXPORTED, HEADER
from systolic.front_ends.front_end import FrontEnd, LoadOptions
from systolic.front_ends.objects import refuse_keras_file
from systolic.front_ends.onnx import ONNX
from systolic.model import Model

BUILT_IN = {
    "cfg": DARKNET,
    "onnx": ONNX,
    "json": EXPORTED,
    "h": HEADER,
}
FRONT_ENDS: Registry[FrontEnd | Callable[[Path], Network]] = Registry(
    "systolic.front_ends",
    BUILT_IN,
    "a systolic.front_ends.front_end.FrontEnd, or a function from a path to a network",
    lambda value: isinstance(value, FrontEnd) or callable(value),
)
"""The formats by file extension, without the dot.

A function from a path to a network is a format that takes only the option ``names``.
"""

KEPT = "model/network"
"""The path, without extension, of the file in a design that ``FrontEnd.reread`` reads."""

MAX_FILE_BYTES = 1 << 30
"""Limit for the bytes of a file whose format is a function."""

_CAFFE = "python -m caffe2onnx.convert --prototxt net.prototxt --caffemodel net.caffemodel --onnx net.onnx"
_COMPILED = "this file is compiled for other hardware: use the .onnx file that it was made from"
EXPORTERS = {
    **dict.fromkeys((".pt", ".pth"), "write an .onnx file with torch.onnx.export(model, example, 'net.onnx')"),
    ".tflite": "write an .onnx file with python -m tf2onnx.convert --tflite net.tflite --output net.onnx",
    ".pb": "write an .onnx file with python -m tf2onnx.convert --saved-model FOLDER --output net.onnx",
    **dict.fromkeys((".caffemodel", ".prototxt"), f"write an .onnx file with {_CAFFE}"),
    **dict.fromkeys((".engine", ".plan", ".trt", ".xmodel", ".blob", ".hef"), _COMPILED),
}
"""File extensions of other frameworks, each with the call that converts the network to an .onnx file."""


def front_end_of(name: str) -> FrontEnd | None:
    """Return the front-end, the reader of a network format, for a file name or a built-in network, or None."""
    if name in zoo.names():
        name = zoo.topology_file(name).name
    _, dot, ending = name.rpartition(".")
    if not dot or ending not in FRONT_ENDS:
        return None
    value = FRONT_ENDS[ending]
    return value if isinstance(value, FrontEnd) else of_function(ending, value)


def front_end_named(name: str) -> FrontEnd:
    """Return the front-end, the reader of a network format, for a file name or a built-in network.

    Raises:
        UnsupportedError: The name is a file of another format.
        ChoiceError: The name is neither a file nor a built-in network.
    """
    front_end = front_end_of(name)
    if front_end is not None:
        return front_end
    refuse_keras_file(name)
    if Path(name).suffix or Path(name).exists():
        ours = listed(value.title for value in BUILT_IN.values())
        added = f", {listed(f'a .{ending} file' for ending in FRONT_ENDS.added)}" if FRONT_ENDS.added else ""
        raise UnsupportedError(
            f"{name} as a network",
            f"a network is {ours}{added}, or a built-in network that systolic networks lists",
            remedy=EXPORTERS.get(Path(name).suffix.lower(), ""),
        )
    raise ChoiceError("a built-in network", name, zoo.names(), remedy="systolic networks describes each of them")


def of_function(ending: str, function: Callable[[Path], Network]) -> FrontEnd:
    """Return a front-end that reads files with ``function`` of another package, and checks each network.

    Args:
        ending: The file extension, without the dot.
        function: Returns the network of a file.
    """

    def reread(path: Path) -> Network:
        network = function(path)
        if not isinstance(network, Network):
            what = f"the result of the front-end of .{ending}"
            raise InvalidValueError(what, network, "a cnn.network.Network", where=str(path))
        return checked(network)

    def read(path: Path, options: LoadOptions) -> Model:
        data = _bytes_of(path)
        return Model(reread(path), "plain", {f"{KEPT}.{ending}": data})

    return FrontEnd(f"a .{ending} file", read, reread, takes=("names",), holds="weights and input size")


def _bytes_of(path: Path) -> bytes:
    """Return the bytes of a network file. Raises FileAccessError if it cannot be read or is too large."""
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            reason = f"has {size:,} bytes, and at most {MAX_FILE_BYTES:,} are read"
            raise FileAccessError(str(path), reason, "network file")
        return path.read_bytes()
    except OSError as error:
        raise FileAccessError(str(path), f"cannot be read: {error.strerror or error}", "network file") from error
