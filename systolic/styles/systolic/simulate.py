"""Executes the generated code and compares every layer, every bit, with the golden model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from boards.errors import RangeError
from boards.progress import Progress, ProgressStep, silent
from cnn.integer_model import run_integer
from cnn.maps import Integers
from cnn.quantized import QuantizedNetwork
from host.contract.libraries import SystolicLibrary, SystolicMemory
from host.contract.manifest import of_style, read_manifest
from host.contract.parts import Manifest
from host.contract.systolic import SystolicLayer, SystolicManifest
from host.contract.uploads import read_systolic
from host.systolic.layout import pack_input, unpack_map
from systolic.execution.build import Variant, built
from systolic.execution.simulation import (
    Simulation,
    compared,
    read_network,
)
from systolic.execution.waves import recorded


@dataclass(frozen=True, eq=False)
class SystolicDesign:
    """A generated folder, read: its manifest, its images and its network."""

    path: Path
    manifest: SystolicManifest
    network: QuantizedNetwork
    weights: tuple[npt.NDArray[np.int8], ...]
    requantisers: npt.NDArray[np.uint32]
    program: npt.NDArray[np.uint32]

    def memory(self, maps: npt.NDArray[np.int8]) -> SystolicMemory:
        """What a start of the accelerator works on; ``maps`` [words, bytes of a word]."""
        return SystolicMemory(maps, self.weights, self.requantisers, self.program)


def open_design(path: Path, manifest: Manifest | None = None) -> SystolicDesign:
    """Open a generated folder; ``manifest`` is that of the folder if it is read already. Raises the errors of
    ``of_style``, ``read_systolic`` and ``read_network``."""
    described = of_style(SystolicManifest, manifest or read_manifest(path))
    uploads, network = read_systolic(path, described), read_network(path, described)
    weights = tuple(words.view(np.int8) for words in uploads.weights)
    return SystolicDesign(path, described, network, weights, uploads.requantisers, uploads.program)


def place_picture(
    design: SystolicDesign, picture: npt.NDArray[np.uint8], maps: npt.NDArray[np.int8], frame: int = 0
) -> None:
    """Writes uint8 [channels, height, width] into the map arena, as ``frame`` of the batch; what is left over of a row
    stays as it was."""
    region = design.manifest.input
    start = region.offset + frame * region.bytes
    pack_input(design.manifest, picture, maps.reshape(-1).view(np.uint8)[start : start + region.bytes])


def unpack_output(layer: SystolicLayer, lanes: int, maps: npt.NDArray[np.int8], frame: int = 0) -> Integers:
    """The map of one layer and frame, which lies in DDR, as integers [channels, height, width]."""
    region = layer.output
    start = region.offset + frame * region.bytes
    return unpack_map(region, lanes, maps.reshape(-1)[start : start + region.bytes])


def layer_map(
    library: SystolicLibrary, design: SystolicDesign, layer: SystolicLayer, maps: npt.NDArray[np.int8], frame: int = 0
) -> Integers:
    """The map of one layer right after its last pass, wherever it lies: integers [channels, height, width]."""
    if layer.output.map_buffer is None:
        return unpack_output(layer, design.manifest.lanes, maps, frame)
    return unpack_map(layer.output, design.manifest.lanes, library.map_on_chip(layer.output))


def arena(folder: SystolicDesign) -> npt.NDArray[np.int8]:
    """The map arena, filled with a pattern as uninitialised DDR is: nothing may rely on zeros."""
    word = folder.manifest.word_bytes
    return np.full((folder.manifest.maps_bytes // word, word), 0x55, np.int8)


def simulate(
    folder: SystolicDesign,
    picture: npt.NDArray[np.uint8],
    variant: Variant = Variant(),  # noqa: B008 (frozen)
    progress: Progress | None = None,
) -> Simulation:
    """One frame, uint8 [channels, height, width], through the generated code and the golden model; it fills a batch."""
    return simulate_batch(folder, (picture,), variant, progress)[0]


def fill_batch(
    folder: SystolicDesign, pictures: Sequence[npt.NDArray[np.uint8]]
) -> tuple[npt.NDArray[np.int8], tuple[npt.NDArray[np.uint8], ...]]:
    """Return the arena with ``pictures``, each uint8 [channels, height, width], and the frames in it: the last picture
    fills the batch. RangeError for no picture, and for more than the batch."""
    if not 1 <= len(pictures) <= folder.manifest.batch:
        raise RangeError(
            f"the number of pictures that {folder.path} takes at a time",
            len(pictures),
            1,
            folder.manifest.batch,
            remedy=f"give fewer, or generate with --batch {max(1, len(pictures))}",
        )
    maps = arena(folder)
    frames = (*pictures, *[pictures[-1]] * (folder.manifest.batch - len(pictures)))
    for frame, picture in enumerate(frames):
        place_picture(folder, picture, maps, frame)
    return maps, frames


def simulate_batch(
    folder: SystolicDesign,
    pictures: Sequence[npt.NDArray[np.uint8]],
    variant: Variant = Variant(),  # noqa: B008 (frozen)
    progress: Progress | None = None,
) -> tuple[Simulation, ...]:
    """One batch through the generated code, every frame compared with the golden model; see ``fill_batch``."""
    tell = progress or silent
    maps, frames = fill_batch(folder, pictures)
    library = built(lambda path: SystolicLibrary(path, folder.manifest), folder.path, variant, tell)
    tell("golden model")
    golden = [run_integer(folder.network, picture) for picture in pictures]
    golden += golden[-1:] * (folder.manifest.batch - len(golden))
    layers = folder.manifest.layers
    layer_ending = {layer.last_pass: layer for layer in layers}
    outputs: list[list[Integers]] = [[] for _ in frames]

    def after_pass(index: int) -> None:
        passes = folder.manifest.passes
        recording = variant.waves is not None and variant.waves.shows(index + 1)
        tell(ProgressStep(f"executing{' and recording' * recording}, pass {index + 1} of {passes}", index + 1, passes))
        layer = layer_ending.get(index)
        if layer is not None:
            for frame, maps_of_frame in enumerate(outputs):
                maps_of_frame.append(layer_map(library, folder, layer, maps, frame))

    with recorded(library, variant.waves):
        library.run(folder.memory(maps), 0, folder.manifest.passes, after_pass)
    counted = library.pass_cycles()
    cycles = tuple(sum(counted[layer.first_pass : layer.last_pass + 1]) for layer in layers if counted)
    return tuple(
        replace(compared(expected, layers, maps, variant), cycles=cycles, pass_cycles=counted)
        for expected, maps in zip(golden, outputs, strict=True)
    )
