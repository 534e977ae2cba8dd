"""Executes the generated code and compares every layer, every bit, with the golden model."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import SimulationError
from cnn.integer_model import Integers, run_integer
from cnn.quantized import QuantizedNetwork
from cnn.quantized_file import from_npz
from host.contract.layout import fill_pixels, unpack_map
from host.contract.manifest import of_style, read_manifest
from host.contract.parts import Manifest
from host.contract.systolic import SystolicLayer, SystolicManifest, SystolicRegion
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
class SystolicDesign:
    """A generated folder, read: its manifest, its images and its network."""

    path: Path
    manifest: SystolicManifest
    network: QuantizedNetwork
    weights: tuple[npt.NDArray[np.int8], ...]
    requantisers: npt.NDArray[np.uint32]
    program: npt.NDArray[np.uint32]


def open_folder(path: Path, manifest: Manifest | None = None) -> SystolicDesign:
    """manifest: of the folder, where it is read already. HostError where that is none of a systolic design,
    SimulationError where the folder is not whole."""
    described = of_style(SystolicManifest, manifest or read_manifest(path))
    with whole(path):
        images, word = described.images, described.weight_word_bytes
        weights = tuple(np.fromfile(path / image.path, np.int8).reshape(-1, word) for image in images.weights)
        requantisers = np.fromfile(path / images.requantisers.path, "<u4").reshape(-1, 4)
        program = np.fromfile(path / images.program.path, "<u4").reshape(-1, described.pass_words)
        network = from_npz((path / "network.npz").read_bytes(), "network.npz")
        check_nodes(described, network)
    return SystolicDesign(path, described, network, weights, requantisers, program)


def pack_input(
    folder: SystolicDesign, picture: npt.NDArray[np.uint8], maps: npt.NDArray[np.int8], frame: int = 0
) -> None:
    """Writes uint8 [channels, height, width] into the map arena, as ``frame`` of the batch; what is left over of a row
    stays as it was."""
    region = folder.manifest.input
    check_picture(picture, region)
    flat = maps.reshape(-1).view(np.uint8)
    start = region.offset + frame * region.bytes
    rows = flat[start : start + region.bytes].reshape(region.height, region.row_bytes)
    fill_pixels(picture, rows, region.pixel_bytes)


def unpack_output(layer: SystolicLayer, lanes: int, maps: npt.NDArray[np.int8], frame: int = 0) -> Integers:
    """The map of one layer and frame, which lies in DDR, as integers [channels, height, width]."""
    region = layer.output
    start = region.offset + frame * region.bytes
    return unpack_map(region, lanes, maps.reshape(-1)[start : start + region.bytes])


class Library:
    """A built simulation library. ``run`` is a frame, or a batch: one start, all passes."""

    def __init__(self, path: Path) -> None:
        self.library = load(path)
        self._callback = ctypes.CFUNCTYPE(None, ctypes.c_uint32)

    def run(
        self,
        folder: SystolicDesign,
        maps: npt.NDArray[np.int8],
        first: int = 0,
        count: int | None = None,
        after_pass: Callable[[int], None] | None = None,
    ) -> None:
        """Executes passes over the arena ``maps`` [words, lanes] in place.

        ``after_pass(index)`` sees the arena after each pass. SimulationError with the engine's sentence.
        """
        count = len(folder.program) - first if count is None else count
        images = (ctypes.c_void_p * len(folder.weights))(*(image.ctypes.data for image in folder.weights))
        message = ctypes.create_string_buffer(MESSAGE_ROOM)
        current = ctypes.c_uint32()
        failed = self.library.systolic_simulate(
            *_array(maps),
            images,
            ctypes.c_size_t(len(folder.weights[0])),
            *_array(folder.requantisers),
            ctypes.c_void_p(folder.program.ctypes.data),
            ctypes.c_size_t(folder.program.size),
            ctypes.c_uint32(first),
            ctypes.c_uint32(count),
            ctypes.byref(current),
            self._callback(after_pass or (lambda _: None)),
            message,
            ctypes.c_size_t(MESSAGE_ROOM),
        )
        if failed:
            raise SimulationError(f"the generated code stopped in pass {current.value}: {said(message)}")

    def layer(
        self, folder: SystolicDesign, layer: SystolicLayer, maps: npt.NDArray[np.int8], frame: int = 0
    ) -> Integers:
        """The map of one layer right after its last pass, wherever it lies: integers [channels, height, width]."""
        if layer.output.map_buffer is not None:
            return self._on_chip(folder, layer.output)
        return unpack_output(layer, folder.manifest.lanes, maps, frame)

    def _on_chip(self, folder: SystolicDesign, region: SystolicRegion) -> Integers:
        """Rows are dealt to the banks: see scheduler/systolic/on_chip.py."""
        count, row_bytes = folder.manifest.array.rows, region.bytes // region.height
        bank_rows = -(-region.height // count)
        banks = np.zeros((count, bank_rows, row_bytes), np.int8)
        for number, bank in enumerate(banks):
            words = ctypes.c_size_t(bank.size // folder.manifest.word_bytes)
            self.library.systolic_map_bank(region.map_buffer, number, ctypes.c_void_p(bank.ctypes.data), words)
        rows = np.arange(region.height)
        turn = region.turn or 0
        return unpack_map(
            region, folder.manifest.lanes, np.ascontiguousarray(banks[(rows + turn) % count, rows // count])
        )


def _array(words: npt.NDArray[Any]) -> tuple[ctypes.c_void_p, ctypes.c_size_t]:
    return ctypes.c_void_p(words.ctypes.data), ctypes.c_size_t(len(words))


def arena(folder: SystolicDesign) -> npt.NDArray[np.int8]:
    """The map arena, filled with a pattern as uninitialised DDR is: nothing may rely on zeros."""
    word = folder.manifest.word_bytes
    return np.full((folder.manifest.maps_bytes // word, word), 0x55, np.int8)


def simulate(
    folder: SystolicDesign,
    picture: npt.NDArray[np.uint8],
    variant: Variant = Variant(),  # noqa: B008 (frozen)
    progress: Callable[[str], None] | None = None,
) -> Simulation:
    """One frame, uint8 [channels, height, width], through the generated code and the golden model; it fills a batch."""
    return simulate_batch(folder, (picture,), variant, progress)[0]


def fill_batch(
    folder: SystolicDesign, pictures: Sequence[npt.NDArray[np.uint8]]
) -> tuple[npt.NDArray[np.int8], tuple[npt.NDArray[np.uint8], ...]]:
    """The arena with ``pictures``, each uint8 [channels, height, width], and the frames in it: the last picture fills
    the batch. SimulationError for none, and for more than the batch."""
    if not 1 <= len(pictures) <= folder.manifest.batch:
        raise SimulationError(
            f"{folder.path} takes 1…{folder.manifest.batch} picture(s) at a time, not {len(pictures)}; give fewer, or "
            f"generate with --batch {max(1, len(pictures))}"
        )
    maps = arena(folder)
    frames = (*pictures, *[pictures[-1]] * (folder.manifest.batch - len(pictures)))
    for frame, picture in enumerate(frames):
        pack_input(folder, picture, maps, frame)
    return maps, frames


def simulate_batch(
    folder: SystolicDesign,
    pictures: Sequence[npt.NDArray[np.uint8]],
    variant: Variant = Variant(),  # noqa: B008 (frozen)
    progress: Callable[[str], None] | None = None,
) -> tuple[Simulation, ...]:
    """One batch through the generated code, every frame compared with the golden model; see ``fill_batch``."""
    tell = progress or (lambda _: None)
    maps, frames = fill_batch(folder, pictures)
    tell(f"compiling ({variant.name})")
    library = Library(build(folder.path, variant))
    tell("golden model")
    golden = [run_integer(folder.network, picture) for picture in pictures]
    golden += golden[-1:] * (folder.manifest.batch - len(golden))
    layers = folder.manifest.layers
    at_pass = {layer.last_pass: layer for layer in layers}
    outputs: list[list[Integers]] = [[] for _ in frames]

    def keep(index: int) -> None:
        tell(f"executing pass {index + 1} of {len(folder.program)}")
        layer = at_pass.get(index)
        if layer is not None:
            for frame, kept in enumerate(outputs):
                kept.append(library.layer(folder, layer, maps, frame))

    library.run(folder, maps, after_pass=keep)
    return tuple(compared(wanted, layers, found, variant) for wanted, found in zip(golden, outputs, strict=True))
