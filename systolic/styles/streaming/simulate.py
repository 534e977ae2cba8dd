"""Executes a generated pipeline and compares every layer, every bit, with the golden model."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import SimulationError
from cnn.datatype import DataType
from cnn.integer_model import Integers, run_integer
from cnn.quantized import QuantizedNetwork
from cnn.quantized_file import from_npz
from host.contract.manifest import of_style, read_manifest
from host.contract.parts import Manifest
from host.contract.streaming import StreamingLayer, StreamingManifest
from host.streaming import unpack_packet
from systolic.execution.build import Variant, build
from systolic.execution.simulation import (
    MESSAGE_ROOM,
    Simulation,
    check_nodes,
    check_picture,
    compared,
    load,
    said,
    whole,
)


@dataclass(frozen=True, eq=False)
class StreamingDesign:
    """A generated folder of the streaming style, read. images: what external weights point to, uint8."""

    path: Path
    manifest: StreamingManifest
    network: QuantizedNetwork
    images: tuple[npt.NDArray[np.uint8], ...]

    @property
    def fifo_bits(self) -> dict[str, int]:
        """Bits of an element, by the stream's name."""
        return {fifo.name: fifo.bits for fifo in self.manifest.fifos}


def open_pipeline(path: Path, manifest: Manifest | None = None) -> StreamingDesign:
    """manifest: of the folder, where it is read already. HostError where that is none of a streaming design,
    SimulationError where the folder is not whole."""
    described = of_style(StreamingManifest, manifest or read_manifest(path))
    with whole(path):
        images = tuple(np.fromfile(path / image.path, np.uint8) for image in described.images)
        network = from_npz((path / "network.npz").read_bytes(), "network.npz")
        check_nodes(described, network)
    return StreamingDesign(path, described, network, images)


_TAKE = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.POINTER(ctypes.c_int32), ctypes.c_size_t)


class PipelineLibrary:
    """A built simulation library: packets in, packets out."""

    def __init__(self, path: Path) -> None:
        self.library = load(path)

    def run(
        self,
        pipeline: StreamingDesign,
        packets: npt.NDArray[np.uint8],
        take: Callable[[int, Integers], None] | None = None,
    ) -> npt.NDArray[np.uint8]:
        """uint8 [frames, bytes in] → uint8 [frames, bytes out]; ``take(tap, integers)`` sees every layer's stream.

        SimulationError with the pipeline's own sentence.
        """
        frames = len(packets)
        packets = np.ascontiguousarray(packets)
        out = np.zeros((frames, pipeline.manifest.packet_out.bytes), np.uint8)
        images = (ctypes.c_void_p * max(1, len(pipeline.images)))(*(one.ctypes.data for one in pipeline.images))
        images_of = zip(pipeline.images, pipeline.manifest.images, strict=True)
        words = [len(data) // image.word_bytes for data, image in images_of]
        sizes = (ctypes.c_size_t * max(1, len(words)))(*words)
        message = ctypes.create_string_buffer(MESSAGE_ROOM)
        failed = self.library.systolic_stream(
            ctypes.c_void_p(packets.ctypes.data),
            ctypes.c_void_p(out.ctypes.data),
            images,
            sizes,
            ctypes.c_int(frames),
            _TAKE(_taker(take)),
            message,
            ctypes.c_size_t(MESSAGE_ROOM),
        )
        if failed:
            raise SimulationError(f"the generated pipeline stopped: {said(message)}")
        return out


def _taker(take: Callable[[int, Integers], None] | None) -> Callable[[int, Any, int], None]:
    def taken(tap: int, values: Any, count: int) -> None:
        if take is not None:
            take(tap, np.ctypeslib.as_array(values, (count,)).copy())

    return taken


def pack_picture(pipeline: StreamingDesign, picture: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """uint8 [channels, height, width] → the packet: pixel by pixel, its channels in order."""
    check_picture(picture, pipeline.manifest.input)
    return np.ascontiguousarray(picture.transpose(1, 2, 0)).reshape(-1)


def unstream(values: Integers, layer: StreamingLayer) -> Integers:
    """A layer's stream of one frame → integers [channels, height, width] in their carrier."""
    channels, height, width = layer.output.shape
    pixels, filled = layer.pixels, layer.stream_channels
    lanes = layer.lanes // pixels
    if values.size != height * width * filled:
        raise SimulationError(f"{layer.name}: its stream held {values.size} values, not {height}×{width}×{filled}")
    words = values.reshape(height, width // pixels, filled // lanes, pixels, lanes)
    integers = words.transpose(2, 4, 0, 1, 3).reshape(filled, height, width)[:channels]
    if layer.output.datatype == "BIPOLAR":
        integers = 2 * integers - 1
    return np.ascontiguousarray(integers.astype(DataType.parse(layer.output.datatype).carrier))


def unpack_outputs(pipeline: StreamingDesign, packet: npt.NDArray[np.uint8]) -> tuple[Integers, ...]:
    """One frame's packet → the maps that leave, [channels, height, width] each, as the host reads them."""
    return unpack_packet(pipeline.manifest, packet)


def simulate_pipeline(
    pipeline: StreamingDesign,
    picture: npt.NDArray[np.uint8],
    variant: Variant = Variant(),  # noqa: B008 (frozen)
    progress: Callable[[str], None] | None = None,
) -> Simulation:
    """One frame, uint8 [channels, height, width], through the generated code and the golden model."""
    tell = progress or (lambda _: None)
    tell(f"compiling ({variant.name})")
    library = PipelineLibrary(build(pipeline.path, variant))
    tell("golden model")
    golden = run_integer(pipeline.network, picture)
    layers = pipeline.manifest.layers
    taken: dict[int, Integers] = {}

    def take(tap: int, values: Integers) -> None:
        tell(f"executed {layers[tap].name}, layer {tap + 1} of {len(layers)}")
        taken[tap] = unstream(values, layers[tap])

    left = library.run(pipeline, pack_picture(pipeline, picture)[None], take)
    outputs = tuple(taken[tap] for tap in range(len(layers)))
    _check_left(pipeline, unpack_outputs(pipeline, left[0]), outputs)
    return compared(golden, layers, outputs, variant)


def _check_left(pipeline: StreamingDesign, left: tuple[Integers, ...], layers: tuple[Integers, ...]) -> None:
    """What leaves through the DMA is what the layer gave; SimulationError else."""
    for output, integers in zip(pipeline.manifest.outputs, left, strict=True):
        if not np.array_equal(integers, layers[output.layer]):
            name = pipeline.manifest.layers[output.layer].name
            raise SimulationError(f"{name} leaves through the DMA otherwise than its layer gave it")
