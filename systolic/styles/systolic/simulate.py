"""Executes a generated systolic design and compares every integer of every layer with the golden model."""

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
    """The folder of a generated systolic design after reading: manifest, network, weights and program.

    Attributes:
        path: The folder.
        manifest: The description of the design.
        network: The quantised network.
        weights: The memory image of each weight port.
        requantisers: The memory image of the requantisation parameters.
        program: The words of the program, one row per pass.
    """

    path: Path
    manifest: SystolicManifest
    network: QuantizedNetwork
    weights: tuple[npt.NDArray[np.int8], ...]
    requantisers: npt.NDArray[np.uint32]
    program: npt.NDArray[np.uint32]

    def memory(self, maps: npt.NDArray[np.int8]) -> SystolicMemory:
        """Return the DDR content of one start. maps: the DDR region of all maps, (words, bytes per word)."""
        return SystolicMemory(maps, self.weights, self.requantisers, self.program)


def open_design(path: Path, manifest: Manifest | None = None) -> SystolicDesign:
    """Read the folder of a generated systolic design.

    Args:
        path: The folder.
        manifest: The folder's manifest if it was read already; None to read it.

    Raises:
        SystolicError: The manifest is of another style, or the images or the network are wrong.
    """
    described = of_style(SystolicManifest, manifest or read_manifest(path))
    uploads, network = read_systolic(path, described), read_network(path, described)
    weights = tuple(words.view(np.int8) for words in uploads.weights)
    return SystolicDesign(path, described, network, weights, uploads.requantisers, uploads.program)


def place_picture(
    design: SystolicDesign, picture: npt.NDArray[np.uint8], maps: npt.NDArray[np.int8], frame: int = 0
) -> None:
    """Write a picture into the DDR region of the input map. Unused bytes at the end of a row are not written.

    Args:
        design: The design.
        picture: The picture, uint8 of shape (channels, height, width).
        maps: The map arena.
        frame: The index of the picture in the batch.
    """
    region = design.manifest.input
    start = region.offset + frame * region.bytes
    pack_input(design.manifest, picture, maps.reshape(-1).view(np.uint8)[start : start + region.bytes])


def unpack_output(layer: SystolicLayer, lanes: int, maps: npt.NDArray[np.int8], frame: int = 0) -> Integers:
    """Return a layer's output map of one frame from the DDR: integers (channels, height, width)."""
    region = layer.output
    start = region.offset + frame * region.bytes
    return unpack_map(region, lanes, maps.reshape(-1)[start : start + region.bytes])


def layer_map(
    library: SystolicLibrary, design: SystolicDesign, layer: SystolicLayer, maps: npt.NDArray[np.int8], frame: int = 0
) -> Integers:
    """Return a layer's output map of one frame, from DDR or from the chip: integers (channels, height, width).

    Call it right after the layer's last pass, because a later layer may overwrite the output.
    """
    if layer.output.map_buffer is None:
        return unpack_output(layer, design.manifest.lanes, maps, frame)
    return unpack_map(layer.output, design.manifest.lanes, library.map_on_chip(layer.output))


def arena(folder: SystolicDesign) -> npt.NDArray[np.int8]:
    """Return the DDR region of all maps, filled with 0x55, because the design must not rely on cleared memory."""
    word = folder.manifest.word_bytes
    return np.full((folder.manifest.maps_bytes // word, word), 0x55, np.int8)


def simulate(
    folder: SystolicDesign,
    picture: npt.NDArray[np.uint8],
    variant: Variant = Variant(),  # noqa: B008 (frozen)
    progress: Progress | None = None,
) -> Simulation:
    """Execute one picture, uint8 (channels, height, width), and compare all layers with the golden model.

    The picture is repeated to fill the batch.
    """
    return simulate_batch(folder, (picture,), variant, progress)[0]


def fill_batch(
    folder: SystolicDesign, pictures: Sequence[npt.NDArray[np.uint8]]
) -> tuple[npt.NDArray[np.int8], tuple[npt.NDArray[np.uint8], ...]]:
    """Return the DDR region of all maps with the input pictures of a batch, and the picture of each frame.

    The last picture is repeated to fill the batch. Each picture is uint8 of shape (channels, height, width).

    Raises:
        RangeError: There is no picture, or there are more than the batch has frames.
    """
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
    """Execute one batch, and compare every layer of every frame with the golden model; see ``fill_batch``."""
    report = progress or silent
    maps, frames = fill_batch(folder, pictures)
    library = built(lambda path: SystolicLibrary(path, folder.manifest), folder.path, variant, report)
    report("golden model")
    golden = [run_integer(folder.network, picture) for picture in pictures]
    golden += golden[-1:] * (folder.manifest.batch - len(golden))
    layers = folder.manifest.layers
    layer_ending = {layer.last_pass: layer for layer in layers}
    outputs: list[list[Integers]] = [[] for _ in frames]

    def after_pass(index: int) -> None:
        passes = folder.manifest.passes
        recording = variant.waves is not None and variant.waves.shows(index + 1)
        report(
            ProgressStep(f"executing{' and recording' * recording}, pass {index + 1} of {passes}", index + 1, passes)
        )
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
