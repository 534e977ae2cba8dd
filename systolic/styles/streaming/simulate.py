"""Executes a generated pipeline and compares every integer of every layer with the golden model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from boards.errors import MismatchError, MissingValueError, ShapeError, listed
from boards.progress import Progress, ProgressStep, silent
from cnn.datatype import DataType
from cnn.integer_model import run_integer
from cnn.maps import Integers
from cnn.quantized import QuantizedNetwork
from host.contract.libraries import StreamingLibrary
from host.contract.manifest import of_style, read_manifest
from host.contract.parts import Manifest
from host.contract.streaming import StreamingLayer, StreamingManifest
from host.contract.uploads import read_streaming
from host.streaming.layout import pack_packet, unpack_packet
from systolic.execution.build import Variant, built
from systolic.execution.simulation import (
    Simulation,
    compared,
    read_network,
)


@dataclass(frozen=True, eq=False)
class StreamingDesign:
    """The folder of a generated pipeline after reading: manifest, network and weight images.

    Attributes:
        path: The folder.
        manifest: The description of the design.
        network: The quantised network.
        images: The memory image of each port for external weights, as bytes.
    """

    path: Path
    manifest: StreamingManifest
    network: QuantizedNetwork
    images: tuple[npt.NDArray[np.uint8], ...]

    @property
    def fifo_bits(self) -> dict[str, int]:
        """{stream: bits of a word of its FIFO}."""
        return {fifo.name: fifo.bits for fifo in self.manifest.fifos}


def open_design(path: Path, manifest: Manifest | None = None) -> StreamingDesign:
    """Read the folder of a generated pipeline.

    Args:
        path: The folder.
        manifest: The folder's manifest if it was read already; None to read it.

    Raises:
        SystolicError: The manifest is of another style, or the images or the network are wrong.
    """
    described = of_style(StreamingManifest, manifest or read_manifest(path))
    return StreamingDesign(path, described, read_network(path, described), read_streaming(path, described))


def pack_picture(pipeline: StreamingDesign, picture: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return a picture as the pipeline's input packet, bytes pixel by pixel, with the channels of each in order.

    Args:
        pipeline: The design.
        picture: The picture, uint8 of shape (channels, height, width).
    """
    packet = np.zeros(pipeline.manifest.packet_in.bytes, np.uint8)
    pack_packet(pipeline.manifest, picture, packet)
    return packet


def unstream(values: Integers, layer: StreamingLayer) -> Integers:
    """Return a layer's output (channels, height, width) from the values of its recorded stream.

    Args:
        values: The values of the stream in their order, including channels that only fill the words.
        layer: The layer.

    Returns:
        Integers of shape (channels, height, width).

    Raises:
        ShapeError: The stream has another number of values than the layer's output.
    """
    channels, height, width = layer.output.shape
    pixels, filled = layer.pixels, layer.stream_channels
    lanes = layer.lanes // pixels
    if values.size != height * width * filled:
        raise ShapeError(f"the stream of {layer.name}", f"{values.size} values", f"{height}×{width}×{filled} values")
    words = values.reshape(height, width // pixels, filled // lanes, pixels, lanes)
    integers = words.transpose(2, 4, 0, 1, 3).reshape(filled, height, width)[:channels]
    if layer.output.datatype == "BIPOLAR":
        integers = 2 * integers - 1
    return np.ascontiguousarray(integers.astype(DataType.parse(layer.output.datatype).carrier))


def simulate(
    pipeline: StreamingDesign,
    picture: npt.NDArray[np.uint8],
    variant: Variant = Variant(),  # noqa: B008 (frozen)
    progress: Progress | None = None,
) -> Simulation:
    """Execute one picture, uint8 (channels, height, width), and compare all layers with the golden model."""
    report = progress or silent
    library = built(lambda path: StreamingLibrary(path, pipeline.manifest), pipeline.path, variant, report)
    report("golden model")
    golden = run_integer(pipeline.network, picture)
    layers = pipeline.manifest.layers
    streams: dict[int, Integers] = {}

    def take(tap: int, values: Integers) -> None:
        report(ProgressStep(f"executing, {layers[tap].name} done", len(streams) + 1, len(layers)))
        streams[tap] = unstream(values, layers[tap])

    (packet,) = library.run(pipeline.images, pack_picture(pipeline, picture)[None], take)
    missing = [layer.name for tap, layer in enumerate(layers) if tap not in streams]
    if missing:
        raise MissingValueError(
            f"the output of {listed(missing)}", where=str(pipeline.path), remedy="generate the design again"
        )
    outputs = tuple(streams[tap] for tap in range(len(layers)))
    _check_packet(pipeline, unpack_packet(pipeline.manifest, packet), outputs)
    return compared(golden, layers, outputs, variant)


def _check_packet(pipeline: StreamingDesign, sent: tuple[Integers, ...], layers: tuple[Integers, ...]) -> None:
    """Raise MismatchError if the DMA's output packet differs from the recorded outputs of its layers."""
    for output, integers in zip(pipeline.manifest.outputs, sent, strict=True):
        if not np.array_equal(integers, layers[output.layer]):
            name = pipeline.manifest.layers[output.layer].name
            raise MismatchError(f"the output of {name} at the DMA", "other integers", "the integers of its layer")
