"""The host's contract: manifest.json of a generated folder, read and checked once."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boards.errors import HostError
from host.contract.parts import (
    LARGEST_BUFFER,
    MANIFEST,
    MOST_LAYERS,
    Design,
    Image,
    NetworkHead,
    check_common,
    design_of,
    image_of,
    inside,
    require,
)
from host.contract.streaming import StreamManifest, stream_manifest
from host.vision.detection import Head

VERSION = 1
LARGEST_MANIFEST = 16 << 20  # bytes
MOST_FRAMES = 64
"""Of a batch."""
_DATATYPE = re.compile(r"U?INT([1-9]|1[0-6])")


@dataclass(frozen=True)
class Region:
    """A map in DDR, [row][block][column][lane] of ``value_bits`` wide integers; offset and size in bytes.

    Of a batch it is the first frame's, and those of the others follow. Tensor value = integer × scale. value_bytes: of
    an integer by itself, as the host holds it.
    """

    channels: int
    height: int
    width: int
    datatype: str
    scale: float
    offset: int
    size: int
    blocks: int
    value_bytes: int
    value_bits: int


@dataclass(frozen=True)
class Layer:
    """Passes ``first_pass`` … ``last_pass`` of the program read the map of one node and write that of another.

    source: file and line of the network that it came from. cycles: of its compute, modelled. macs, cycles: of all
    frames of a batch.
    """

    name: str
    output_name: str
    source: str
    node: int
    input_node: int
    first_pass: int
    last_pass: int
    macs: int
    cycles: int
    output: Region


@dataclass(frozen=True)
class Manifest(Design):
    """Everything that the host needs to know of a design of the systolic style. Sizes are bytes.

    in_base, out_base, in_buffer, out_buffer: words of a pass that say where its maps begin, and whether in DDR (0) or
    in which map buffer on chip. batch: frames that a start takes.
    """

    map_ports: int
    weight_ports: int
    lanes: int
    word_bytes: int
    weight_word_bytes: int
    maps_bytes: int
    input: Region
    pixel_bytes: int
    row_bytes: int
    weights: tuple[Image, ...]
    requantisers: Image
    program: Image
    pass_words: int
    in_base: int
    out_base: int
    in_buffer: int
    out_buffer: int
    passes: int
    batch: int
    layers: tuple[Layer, ...]
    heads: tuple[NetworkHead, ...]
    check_maps: Image
    check_layers: Image

    @property
    def cycles(self) -> int:
        """Of compute a start, modelled."""
        return sum(layer.cycles for layer in self.layers)

    @property
    def pass_cycles(self) -> tuple[float, ...]:
        """Of each pass, modelled: a layer's, evenly."""
        spread = ((one, one.last_pass - one.first_pass + 1) for one in self.layers)
        return tuple(cycles for one, count in spread for cycles in [one.cycles / count] * count)

    @property
    def images(self) -> tuple[Image, ...]:
        """Every file that the host reads."""
        return (*self.weights, self.requantisers, self.program, self.check_maps, self.check_layers)

    def layer_of_pass(self, index: int) -> Layer | None:
        """The layer whose pass ``index`` is, counted within one start."""
        return next((one for one in self.layers if one.first_pass <= index <= one.last_pass), None)

    def kept_layers(self) -> tuple[int, ...]:
        """Layers whose maps the host reads after a start: those of the heads, or the last one."""
        return tuple(dict.fromkeys(one.layer for one in self.heads)) or (len(self.layers) - 1,)


def read_manifest(folder: Path) -> Manifest | StreamManifest:
    """The manifest of a generated folder; HostError says what is missing or wrong, and what to do."""
    path = folder / MANIFEST
    try:
        if path.stat().st_size > LARGEST_MANIFEST:
            raise HostError(f"{path}: a manifest has at most {LARGEST_MANIFEST} bytes; generate the design again")
        values = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise HostError(
            f"{folder} is not a generated design, {MANIFEST} cannot be read ({error.strerror}); "
            "run systolic generate first, or copy the whole folder to the board"
        ) from error
    except (ValueError, RecursionError) as error:
        raise HostError(f"{path} is damaged, it is no JSON ({error}); copy or generate the design again") from error
    return parse_manifest(values, str(path))


def parse_manifest(values: object, source: str) -> Manifest | StreamManifest:
    """``read_manifest`` for what the JSON holds."""
    if not isinstance(values, dict) or values.get("format") != "systolic-manifest":
        raise HostError(f"{source} is no manifest of a generated design; run systolic generate first")
    if values.get("version") != VERSION:
        raise HostError(
            f"{source} has version {values.get('version')!r}, this host reads version {VERSION}; "
            "generate the design again with the systolic package that the host came with"
        )
    try:
        return _of_style(values)
    except KeyError as error:
        raise HostError(f"{source} lacks {error}; generate the design again") from error
    except (TypeError, ValueError, OverflowError, HostError) as error:
        raise HostError(f"{source} is not usable: {error}; generate the design again") from error


def _of_style(values: Mapping[str, Any]) -> Manifest | StreamManifest:
    if values["style"] == "streaming":
        return stream_manifest(values)
    found = _manifest(values)
    _check(found)
    return found


def _manifest(values: Mapping[str, Any]) -> Manifest:
    images, sums = values["images"], values["crc32"]
    return Manifest(
        *design_of(values),
        map_ports=int(values["map_ports"]),
        weight_ports=int(values["weight_ports"]),
        lanes=int(values["lanes"]),
        word_bytes=int(values.get("word_bytes", values["lanes"])),
        weight_word_bytes=int(values.get("weight_word_bytes", values.get("word_bytes", values["lanes"]))),
        maps_bytes=int(values["maps_bytes"]),
        input=region_of(values["input"]),
        pixel_bytes=int(values["input"]["pixel_bytes"]),
        row_bytes=int(values["input"]["row_bytes"]),
        weights=tuple(_image(name, sums) for name in images["weights"]),
        requantisers=_image(images["requantisers"], sums),
        program=_image(images["program"], sums),
        pass_words=int(values["pass_words"]),
        in_base=int(values["pass_fields"]["in_base"]),
        out_base=int(values["pass_fields"]["out_base"]),
        in_buffer=int(values["pass_fields"]["in_buffer"]),
        out_buffer=int(values["pass_fields"]["out_buffer"]),
        passes=int(values["passes"]),
        batch=_batch(values.get("batch", 1)),
        layers=tuple(_layer(layer) for layer in values["layers"]),
        heads=tuple(NetworkHead(int(head["layer"]), Head.from_json(head)) for head in values["heads"]),
        check_maps=_checked(values["check"]["maps"]),
        check_layers=_checked(values["check"]["layers"]),
    )


def _batch(frames: Any) -> int:
    require(type(frames) is int and 1 <= frames <= MOST_FRAMES, f"batch is 1…{MOST_FRAMES} frames", frames)
    return int(frames)


def _checked(values: Mapping[str, Any]) -> Image:
    return image_of(values["path"], values["crc32"])


def _image(name: str, sums: Mapping[str, Any]) -> Image:
    return image_of(inside(name), sums[name])


def region_of(values: Mapping[str, Any]) -> Region:
    """A map as the manifest describes it, not checked."""
    return Region(
        channels=int(values["channels"]),
        height=int(values["height"]),
        width=int(values["width"]),
        datatype=str(values["datatype"]),
        scale=float(values["scale"]),
        offset=int(values["offset"]),
        size=int(values["bytes"]),
        blocks=int(values["blocks"]),
        value_bytes=int(values["value_bytes"]),
        value_bits=int(values.get("value_bits", 8 * int(values["value_bytes"]))),
    )


def _layer(values: Mapping[str, Any]) -> Layer:
    return Layer(
        name=str(values["name"]),
        output_name=str(values["output_name"]),
        source=str(values["source"]),
        node=int(values["node"]),
        input_node=int(values["input_node"]),
        first_pass=int(values["first_pass"]),
        last_pass=int(values["last_pass"]),
        macs=int(values["macs"]),
        cycles=int(values["compute_cycles"]),
        output=region_of(values["output"]),
    )


# --- what must hold ----------------------------------------------------------------------------------------


def _check(found: Manifest) -> None:
    require(found.style == "systolic", "style is 'systolic' or 'streaming'", found.style)
    check_common(found.fit, found.clock_mhz)
    require(found.map_ports in (1, 2, 4), "map_ports is 1, 2 or 4", found.map_ports)
    require(found.weight_ports == len(found.weights), "each weight port has an image", len(found.weights))
    require(1 <= found.lanes <= 256, "lanes is 1…256", found.lanes)
    require(1 <= found.word_bytes <= 512, "word_bytes is 1…512", found.word_bytes)
    require(1 <= found.weight_word_bytes <= 512, "weight_word_bytes is 1…512", found.weight_word_bytes)
    require(0 < found.maps_bytes <= LARGEST_BUFFER, f"maps_bytes is 1…{LARGEST_BUFFER}", found.maps_bytes)
    require(1 <= len(found.layers) <= MOST_LAYERS, f"there are 1…{MOST_LAYERS} layers", len(found.layers))
    fields = (found.in_base, found.out_base, found.in_buffer, found.out_buffer)
    require(all(0 <= at < found.pass_words <= 1024 for at in fields), "pass_fields lie in a pass", fields)
    _check_input(found)
    _check_layers(found)


def _check_input(found: Manifest) -> None:
    region = found.input
    _check_region("input", region, found)
    require(region.channels <= found.pixel_bytes <= 16, "a pixel holds its channels", found.pixel_bytes)
    require(found.row_bytes >= region.width * found.pixel_bytes, "a row holds its pixels", found.row_bytes)
    require(region.size == region.height * found.row_bytes, "input.bytes is height · row_bytes", region.size)


def _check_layers(found: Manifest) -> None:
    expected = 0
    for layer in found.layers:
        region = layer.output
        _check_region(layer.name, region, found)
        held = region.height * region.blocks * region.width * found.lanes * region.value_bits // 8
        require(region.size == held, f"{layer.name}: bytes is {held}, the size of its rows", region.size)
        whole = region.blocks * found.lanes >= region.channels
        require(whole, f"{layer.name}: blocks hold all channels", region.blocks)
        require(layer.first_pass == expected, f"{layer.name}: first_pass is {expected}", layer.first_pass)
        require(layer.last_pass >= expected, f"{layer.name}: last_pass is at least {expected}", layer.last_pass)
        expected = layer.last_pass + 1
    require(found.passes == expected, f"passes is {expected}", found.passes)
    for one in found.heads:
        require(0 <= one.layer < len(found.layers), "a head reads one of the layers", one.layer)
        channels = found.layers[one.layer].output.channels
        require(one.head.channels == channels, f"a head of {channels} channels", one.head.channels)


def _check_region(name: str, region: Region, found: Manifest) -> None:
    found_bits = _DATATYPE.fullmatch(region.datatype)
    require(found_bits is not None, f"{name}: datatype is INT1…INT16 or UINT1…UINT16", region.datatype)
    value_bytes = 1 if found_bits is None or int(found_bits[1]) <= 8 else 2
    require(region.value_bytes == value_bytes, f"{name}: value_bytes is {value_bytes}", region.value_bytes)
    bits = int(found_bits[1]) if found_bits else 8
    wide = region.value_bits in (4, 8, 16) and region.value_bits >= bits
    require(wide, f"{name}: value_bits is 4, 8 or 16 and at least {bits}", region.value_bits)
    require(region.value_bits > 4 or found.lanes % 2 == 0, f"{name}: two 4-bit lanes are a byte", found.lanes)
    sizes = (region.channels, region.height, region.width, region.blocks)
    require(all(0 < size <= 1 << 16 for size in sizes), f"{name}: channels, height, width, blocks are 1…65536", sizes)
    require(math.isfinite(region.scale) and region.scale > 0, f"{name}: scale is above 0", region.scale)
    inside = region.offset >= 0 and 0 < found.batch * region.size <= found.maps_bytes - region.offset
    what = "the map lies" if found.batch == 1 else f"the maps of {found.batch} frames lie"
    require(inside, f"{name}: {what} within maps_bytes", (region.offset, region.size))
    require(region.offset % found.word_bytes == 0, f"{name}: offset is whole words", region.offset)
