"""The parts that manifests of every style share: tensors, layers, heads and data files, and the checks on them."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, ClassVar

from boards.errors import (
    ChoiceError,
    FileAccessError,
    InvalidValueError,
    MismatchError,
    RangeError,
    ShapeError,
    SystolicError,
    cut,
    shown,
)
from host.contract.codec import OPTIONAL, Count, OneOf, Range, read_bounded
from host.contract.named_outputs import MAX_OUTPUTS, OutputTensor, sides_of, tells_classes
from host.vision.heads.head import Head
from host.vision.picture import FITS

MANIFEST = "manifest.json"
MAX_BUFFER_BYTES = 1 << 31  # bytes; no board gives more to contiguous memory
MAX_SIDE = 1 << 16
MAX_LAYERS = 4096
MAX_PASSES = 1 << 20
MAX_JOINED = 8
"""Maximum number of maps that one head reads."""
MAX_FRAMES = 64
"""Maximum number of frames per batch."""
MAX_BEATS = 256
"""Maximum number of beats in an AXI4 burst. Ports have fewer bursts in flight than this, too."""


@dataclass(frozen=True, kw_only=True)
class TensorMap:
    """The shape and type of a feature map of integers ``(channels, height, width)``. Its real values are (integer −
    zero_point) × scale."""

    channels: int
    height: int
    width: int
    datatype: str
    scale: float
    zero_point: Annotated[int, Range(-(1 << 15), (1 << 15) - 1)] = field(default=0, metadata=OPTIONAL)

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape (channels, height, width)."""
        return self.channels, self.height, self.width


@dataclass(frozen=True, kw_only=True)
class ManifestLayer:
    """A layer of the design as the manifest describes it, with the operations fused into it.

    Attributes:
        name: The layer's name.
        source: File and line of the network's description that defines it.
        node: Index of the network's node whose value is ``output``.
        macs: Multiply-accumulates of all frames of a batch.
        modelled_cycles: Modelled clock cycles per start of the accelerator, or per frame if the pipeline never stops.
        output: The layer's output feature map.
    """

    name: str
    source: str
    node: Annotated[int, Range(0, 1 << 20)]
    macs: Count
    modelled_cycles: Count
    output: TensorMap


@dataclass(frozen=True)
class Estimate:
    """The FPGA resources of a design, estimated before any vendor tool ran. ``lut`` includes the LUTs used as memory
    (``lutram``)."""

    dsp: Count
    bram36: Count
    uram: Count
    lut: Count
    lutram: Count


@dataclass(frozen=True)
class DesignMemory:
    """The bandwidth of the DDR memory that a design was made for.

    Attributes:
        gbps: Peak bandwidth in 10⁹ bytes per second.
        efficiency: Fraction of the peak that carries data.
    """

    gbps: Annotated[float, Range(1e-3, 1e4)]
    efficiency: Annotated[float, Range(1e-3, 1)]


@dataclass(frozen=True)
class NetworkHead:
    """A detection or classification head, and the indices of the layers whose outputs it reads, concatenated along the
    channels."""

    layers: tuple[int, ...]
    head: Head

    @staticmethod
    def from_values(values: Mapping[str, Any], place: str) -> NetworkHead:
        """Return the head with its layers from one object of the manifest's JSON. Errors are the same as in
        ``from_json``."""
        layer = values.get("layer")
        layers = values.get("layers", [layer])
        if not isinstance(layers, list) or not 1 <= len(layers) <= MAX_JOINED:
            required = f"a list of 1 to {MAX_JOINED} indices of layers"
            raise InvalidValueError("the value", layers, required, where=f"{place}.layers")
        for index in layers:
            if type(index) is not int or not 0 <= index < MAX_LAYERS:
                raise RangeError("the value", index, 0, MAX_LAYERS - 1, integer=True, where=f"{place}.layer")
        try:
            return NetworkHead(tuple(layers), Head.from_json(values))
        except SystolicError as error:  # raised by the head, which does not know its place in the file
            raise error.at(place) from error

    def to_values(self) -> dict[str, Any]:
        """Return the head with its layers as the JSON object that ``from_values`` reads."""
        place = {"layer": self.layers[0]} if len(self.layers) == 1 else {"layers": list(self.layers)}
        return {**place, **self.head.to_json()}


@dataclass(frozen=True)
class DataFile:
    """The path and CRC-32 of a file of the design's folder that the host reads, such as weights."""

    path: str
    crc32: Annotated[int, Range(0, (1 << 32) - 1)]

    def __post_init__(self) -> None:
        """Raise InvalidValueError if the path points outside the design's folder."""
        path = PurePosixPath(self.path)
        if path.is_absolute() or ".." in path.parts or "\\" in self.path or not self.path.isprintable():
            raise InvalidValueError("the path of a data file", self.path, "a printable path inside the folder")


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The description of a generated design, read from manifest.json: the part that every style has.

    Attributes:
        network: The network's name.
        labels: Class labels.
        board: Name of the board that the design was made for.
        clock_mhz: Target clock.
        ddr: The board's DDR memory.
        top: Name of the top-level function.
        fit: How a picture is resized to the input, one of FITS.
        estimate: Estimated resources.
        burst_words: Longest burst of an AXI port, in words.
        outstanding: Maximum number of bursts in flight per AXI port.
        passes: Number of passes per start of the accelerator. A pass is one instruction of a systolic engine, or one
            frame.
        batch: Number of frames per start of the accelerator.
        input: The network's input.
        layers: The layers, in order.
        heads: The detection or classification heads that the host decodes.
        tensors: The outputs that the network's file names. It is empty if the file's format names none. Each map that
            the host reads is then an output with its layer's name.
    """

    style: ClassVar[str]

    network: str
    labels: tuple[str, ...]
    board: str
    clock_mhz: float
    ddr: DesignMemory
    top: str
    fit: Annotated[str, OneOf(tuple(FITS))]
    estimate: Estimate
    burst_words: Annotated[int, Range(1, MAX_BEATS)]
    outstanding: Annotated[int, Range(1, MAX_BEATS)]
    passes: Annotated[int, Range(1, MAX_PASSES)] = field(default=1, metadata=OPTIONAL)
    batch: Annotated[int, Range(1, MAX_FRAMES, "frames")] = field(default=1, metadata=OPTIONAL)
    input: TensorMap
    layers: tuple[ManifestLayer, ...]
    heads: tuple[NetworkHead, ...]
    tensors: tuple[OutputTensor, ...] = field(default=(), metadata=OPTIONAL)

    @property
    def vlnv(self) -> str:
        """The identifier "vendor:library:name:version" of the IP that Vitis HLS exports for this design."""
        return f"systolic:cnn:{self.top}:1.0"

    @property
    def pass_cycles(self) -> tuple[float, ...]:
        """Modelled clock cycles of each pass: of each instruction of a systolic engine, or of a streaming design's
        frame."""
        raise NotImplementedError

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The data files of the design that the host reads."""
        raise NotImplementedError

    @property
    def output_layers(self) -> tuple[int, ...]:
        """Indices in ``layers`` of the layers whose feature maps the host reads after a frame."""
        raise NotImplementedError

    @property
    def is_classifier(self) -> bool:
        """Return whether the network is a classifier: the host reads one value per class and nothing else."""
        if self.heads or len(self.output_layers) != 1:
            return False
        output = self.layers[self.output_layers[0]].output
        told = all(tells_classes(tensor.steps, self.maps_of(tensor)) for tensor in self.tensors)
        return told and output.channels > 1 and output.height == output.width == 1

    def maps_of(self, tensor: OutputTensor) -> list[tuple[int, int, int, int]]:
        """Return the shapes (1, channels, height, width) of the feature maps from which the host computes an output."""
        return [(1, *self.layers[layer].output.shape) for layer in tensor.layers]

    def validate(self) -> None:
        """Raise an error for the first values of the manifest that contradict each other."""
        if not 0 < self.clock_mhz < 2000:
            raise InvalidValueError("clock_mhz", self.clock_mhz, "above 0 and below 2000")
        check_range("the number of layers", len(self.layers), 1, MAX_LAYERS)
        for network_head in self.heads:
            for index in network_head.layers:
                if index not in self.output_layers:
                    raise ChoiceError("the index of a layer that a head reads", index, self.output_layers)
                check_range("the index of a layer that a head reads", index, 0, len(self.layers) - 1)
            outputs = [self.layers[index].output for index in network_head.layers]
            check_equal("the channels of a head", network_head.head.channels, sum(one.channels for one in outputs))
            sizes = sorted({output.shape[1:] for output in outputs})
            if len(sizes) != 1:
                raise ShapeError("the maps that a head reads", shown(sizes), "one height and one width")
        check_range("the number of tensors", len(self.tensors), 0, MAX_OUTPUTS)
        names = {tensor.name for tensor in self.tensors}
        check_equal("the number of names of tensors", len(names), len(self.tensors))
        for tensor in self.tensors:
            for index in tensor.layers:
                if index not in self.output_layers:
                    what = "the index of a layer of a tensor"
                    raise ChoiceError(what, index, self.output_layers, where=cut(tensor.name))
            try:
                sides_of(tensor.steps, self.maps_of(tensor))
            except SystolicError as error:  # raised by a step, which does not know its output
                raise error.at(cut(tensor.name)) from error


def read_data_file(folder: Path, file: DataFile) -> bytes:
    """Return the bytes of a data file of the design, after checking its CRC-32.

    Raises:
        FileAccessError: The file cannot be read.
        RangeError: The file has more than MAX_BUFFER_BYTES bytes.
        MismatchError: The checksum differs from the manifest's.
    """
    path = folder / file.path
    try:
        data = read_bounded(path, MAX_BUFFER_BYTES)
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
        raise FileAccessError(str(path), reason, remedy="copy the whole folder to the board") from error
    checksum = zlib.crc32(data)
    if checksum != file.crc32:
        raise MismatchError(
            "the checksum",
            f"{checksum:08x}",
            f"{file.crc32:08x}",
            where=str(path),
            remedy="copy the folder again: it holds files of two designs, or was cut off",
        )
    return data


# --- checks ------------------------------------------------------------------------------------------------


def check_equal(what: str, got: object, expected: object, where: str = "") -> None:
    """Raise MismatchError if ``got`` is not equal to ``expected``."""
    if got != expected:
        raise MismatchError(what, got, expected, where=cut(where))


def check_range(what: str, got: int, low: int, high: int | None = None, where: str = "") -> None:
    """Raise RangeError if ``got`` is not within ``low`` … ``high``."""
    if got < low or (high is not None and got > high):
        raise RangeError(what, got, low, high, where=cut(where))


def check_that(holds: bool, what: str, got: object, required: str, where: str = "") -> None:
    """Raise InvalidValueError if the condition does not hold; ``required`` describes it."""
    if not holds:
        raise InvalidValueError(what, got, required, where=cut(where))


def check_tensor(name: str, tensor: TensorMap, datatypes: re.Pattern[str], required: str) -> None:
    """Raise an error if a feature map's sides, scale or datatype is not allowed. ``required`` describes the allowed
    datatypes."""
    for side in ("channels", "height", "width"):
        check_range(side, getattr(tensor, side), 1, MAX_SIDE, name)
    check_that(datatypes.fullmatch(tensor.datatype) is not None, "datatype", tensor.datatype, required, name)
    check_that(math.isfinite(tensor.scale) and tensor.scale > 0, "scale", tensor.scale, "finite and above 0", name)
