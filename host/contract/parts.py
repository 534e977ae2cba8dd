"""What manifests of every style hold: tensors, layers, heads and images, and what must hold of them."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, ClassVar

from boards.errors import HostError, cut, shown
from host.contract.codec import OPTIONAL, Count, OneOf, Range, read_bounded
from host.vision.heads.head import Head
from host.vision.picture import FITS

MANIFEST = "manifest.json"
LARGEST_BUFFER = 1 << 31  # bytes; more than any of the boards gives to contiguous memory
LARGEST_SIDE = 1 << 16
MOST_LAYERS = 4096
MOST_PASSES = 1 << 20
MOST_JOINED = 8
"""Maps that one head reads."""
MOST_FRAMES = 64
"""Of a batch."""
LONGEST_SENTENCE = 300
"""Characters of what a manifest adds to one: names and paths are as long as its author likes."""
MOST_BEATS = 256
"""Of an AXI4 burst, and more than are ever on their way at a port."""


@dataclass(frozen=True, kw_only=True)
class TensorMap:
    """Integers [channels, height, width]; tensor value = (integer − zero_point) × scale."""

    channels: int
    height: int
    width: int
    datatype: str
    scale: float
    zero_point: Annotated[int, Range(-(1 << 15), (1 << 15) - 1)] = field(default=0, metadata=OPTIONAL)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height, width."""
        return self.channels, self.height, self.width


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A layer of the design, with what is fused into it, by its own name.

    source: file and line of the network that it came from. node: of the network, whose value ``output`` is. macs:
    of all frames of a batch. modelled_cycles: of a start, or of a frame where the pipeline never stops.
    """

    name: str
    source: str
    node: Annotated[int, Range(0, 1 << 20)]
    macs: Count
    modelled_cycles: Count
    output: TensorMap


@dataclass(frozen=True)
class Estimate:
    """Resources, estimated before any vendor tool. lut: those that are memory (lutram) included."""

    dsp: Count
    bram36: Count
    uram: Count
    lut: Count
    lutram: Count


@dataclass(frozen=True)
class Ddr:
    """The memory that a design was made for. gbps: peak in 10⁹ bytes a second; efficiency: the share that carries
    data."""

    gbps: Annotated[float, Range(1e-3, 1e4)]
    efficiency: Annotated[float, Range(1e-3, 1)]


@dataclass(frozen=True)
class NetworkHead:
    """A head reads the outputs of the layers with these indices, one after the other along the channels."""

    layers: tuple[int, ...]
    head: Head

    @staticmethod
    def from_values(values: Mapping[str, Any], place: str) -> NetworkHead:
        """One object holds both. HostError where it is not usable."""
        layer = values.get("layer")
        layers = values.get("layers", [layer])
        several = isinstance(layers, list) and 1 <= len(layers) <= MOST_JOINED
        require(several, f"{place}.layers are 1…{MOST_JOINED} indices of layers", layers)
        for index in layers:
            require(type(index) is int and 0 <= index < MOST_LAYERS, f"{place}.layer is the index of a layer", index)
        return NetworkHead(tuple(layers), Head.from_json(values))

    def to_values(self) -> dict[str, Any]:
        """What ``from_values`` reads."""
        place = {"layer": self.layers[0]} if len(self.layers) == 1 else {"layers": list(self.layers)}
        return {**place, **self.head.to_json()}


@dataclass(frozen=True)
class Image:
    """A file in the folder, and the CRC-32 that it has."""

    path: str
    crc32: Annotated[int, Range(0, (1 << 32) - 1)]

    def __post_init__(self) -> None:
        """HostError where the path leaves the folder."""
        path = PurePosixPath(self.path)
        if path.is_absolute() or ".." in path.parts or "\\" in self.path or not self.path.isprintable():
            raise HostError(f"an image stays inside the folder, {shown(self.path)} does not")


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What is known of a design of any style.

    fit: how a picture is brought to the input's size, one of FITS. burst_words, outstanding: of the AXI ports, the
    longest burst, and the bursts that are on their way. passes: of the accelerator's own program in a start. batch:
    frames that a start takes.
    """

    style: ClassVar[str]

    network: str
    labels: tuple[str, ...]
    board: str
    clock_mhz: float
    ddr: Ddr
    top: str
    fit: Annotated[str, OneOf(tuple(FITS))]
    estimate: Estimate
    burst_words: Annotated[int, Range(1, MOST_BEATS)]
    outstanding: Annotated[int, Range(1, MOST_BEATS)]
    passes: Annotated[int, Range(1, MOST_PASSES)] = field(default=1, metadata=OPTIONAL)
    batch: Annotated[int, Range(1, MOST_FRAMES, "frames")] = field(default=1, metadata=OPTIONAL)
    input: TensorMap
    layers: tuple[Layer, ...]
    heads: tuple[NetworkHead, ...]

    @property
    def vlnv(self) -> str:
        """The IP that Vitis HLS exports for this design."""
        return f"systolic:cnn:{self.top}:1.0"

    @property
    def pass_cycles(self) -> tuple[float, ...]:
        """Of each pass, modelled."""
        raise NotImplementedError

    @property
    def files(self) -> tuple[Image, ...]:
        """Every file that the host reads."""
        raise NotImplementedError

    @property
    def output_layers(self) -> tuple[int, ...]:
        """The layers whose maps the host reads, by index in ``layers``."""
        raise NotImplementedError

    @property
    def is_classifier(self) -> bool:
        """Whether the host reads one value a class, and nothing else."""
        if self.heads or len(self.output_layers) != 1:
            return False
        output = self.layers[self.output_layers[0]].output
        return output.channels > 1 and output.height == output.width == 1

    def validate(self) -> None:
        """HostError where the values do not agree with each other."""
        require(0 < self.clock_mhz < 2000, "clock_mhz is 0…2000", self.clock_mhz)
        require(1 <= len(self.layers) <= MOST_LAYERS, f"there are 1…{MOST_LAYERS} layers", len(self.layers))
        for network_head in self.heads:
            for index in network_head.layers:
                require(index in self.output_layers, "a head reads one of the outputs", index)
                require(index < len(self.layers), "a head reads one of the layers", index)
            outputs = [self.layers[index].output for index in network_head.layers]
            channels, head = sum(output.channels for output in outputs), network_head.head
            require(head.channels == channels, f"a head of {channels} channels", head.channels)
            sizes = {output.shape[1:] for output in outputs}
            require(len(sizes) == 1, "a head reads maps of one height and width", sorted(sizes))


def read_image(folder: Path, image: Image) -> bytes:
    """The bytes of an image; HostError where the file is not what the manifest says."""
    path = folder / image.path
    try:
        data = read_bounded(path, LARGEST_BUFFER)
    except OSError as error:
        raise HostError(
            f"{cut(path, LONGEST_SENTENCE)} cannot be read ({error.strerror}); copy the whole folder to the board"
        ) from error
    checksum = zlib.crc32(data)
    if checksum != image.crc32:
        raise HostError(
            f"{path} has checksum {checksum:08x}, {MANIFEST} says {image.crc32:08x}: the folder holds files of two "
            "designs or was cut off; copy it again"
        )
    return data


# --- what must hold ----------------------------------------------------------------------------------------


def require(holds: bool, sentence: str, value: object) -> None:
    """HostError else; it says both."""
    if not holds:
        raise HostError(f"{cut(sentence, LONGEST_SENTENCE)}, not {shown(value)}")


def check_tensor(name: str, tensor: TensorMap, datatypes: re.Pattern[str], sentence: str) -> None:
    """Its sides, its scale, and a datatype that matches; ``sentence`` says which those are."""
    sides = tensor.shape
    require(all(0 < side <= LARGEST_SIDE for side in sides), f"{name}: channels, height, width are 1…65536", sides)
    require(datatypes.fullmatch(tensor.datatype) is not None, f"{name}: datatype is {sentence}", tensor.datatype)
    require(math.isfinite(tensor.scale) and tensor.scale > 0, f"{name}: scale is above 0", tensor.scale)
