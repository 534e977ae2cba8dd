"""Executes the generated code and compares every layer, every bit, with the golden model."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Mapping, Sequence
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
from host.contract.manifest import region_of
from scheduler.systolic.layers import MAX_BATCH
from systolic.execution.build import Variant, build
from systolic.execution.simulation import MESSAGE_ROOM, Simulation, check_picture, compared, load, said, whole
from systolic.files import MANIFEST, MANIFEST_VERSION, is_design

MAX_ARENA_BYTES = 1 << 31


@dataclass(frozen=True, eq=False)
class SystolicDesign:
    """A generated folder, read: its manifest, its images and its network."""

    path: Path
    manifest: Mapping[str, Any]
    network: QuantizedNetwork
    weights: tuple[npt.NDArray[np.int8], ...]
    requantisers: npt.NDArray[np.uint32]
    program: npt.NDArray[np.uint32]

    @property
    def batch(self) -> int:
        """Frames that one start takes."""
        return int(self.manifest.get("batch", 1))

    @property
    def lanes(self) -> int:
        return int(self.manifest["lanes"])

    @property
    def word_bytes(self) -> int:
        return int(self.manifest["word_bytes"])


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a generated folder of either style; SimulationError where it is none."""
    if not is_design(path):
        raise SimulationError(
            f"{path} is not a generated design ({MANIFEST} is missing or not one); run systolic generate first"
        )
    manifest: dict[str, Any] = json.loads((path / MANIFEST).read_text("utf-8"))
    if manifest.get("version") != MANIFEST_VERSION:
        raise SimulationError(
            f"{path} is a design of version {manifest.get('version')!r}, but version {MANIFEST_VERSION} is read here; "
            "generate it again"
        )
    return manifest


def open_folder(path: Path) -> SystolicDesign:
    """SimulationError where ``path`` is not a whole generated design of the systolic style."""
    manifest = read_manifest(path)
    batch = manifest.get("batch", 1)
    if type(batch) is not int or not 1 <= batch <= MAX_BATCH:
        raise SimulationError(f"{path} is not whole: batch is 1…{MAX_BATCH} frames, not {batch!r}; generate it again")
    with whole(path):
        names = manifest["images"]
        word = int(manifest["weight_word_bytes"])
        weights = tuple(np.fromfile(path / name, np.int8).reshape(-1, word) for name in names["weights"])
        requantisers = np.fromfile(path / names["requantisers"], "<u4").reshape(-1, 4)
        program = np.fromfile(path / names["program"], "<u4").reshape(-1, int(manifest["pass_words"]))
        network = from_npz((path / "network.npz").read_bytes(), "network.npz")
    return SystolicDesign(path, manifest, network, weights, requantisers, program)


def pack_input(
    folder: SystolicDesign, picture: npt.NDArray[np.uint8], maps: npt.NDArray[np.int8], frame: int = 0
) -> None:
    """Writes uint8 [channels, height, width] into the map arena, as ``frame`` of the batch; what is left over of a row
    stays as it was."""
    to = folder.manifest["input"]
    _, height, _ = check_picture(picture, to)
    flat = maps.reshape(-1).view(np.uint8)
    start = to["offset"] + frame * to["bytes"]
    rows = flat[start : start + height * to["row_bytes"]].reshape(height, to["row_bytes"])
    fill_pixels(picture, rows, to["pixel_bytes"])


def unpack_output(layer: Mapping[str, Any], lanes: int, maps: npt.NDArray[np.int8], frame: int = 0) -> Integers:
    """The map of one layer and frame, which lies in DDR, as integers [channels, height, width]."""
    region = region_of(layer["output"])
    start = region.offset + frame * region.size
    return unpack_map(region, lanes, maps.reshape(-1)[start : start + region.size])


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
        self, folder: SystolicDesign, layer: Mapping[str, Any], maps: npt.NDArray[np.int8], frame: int = 0
    ) -> Integers:
        """The map of one layer right after its last pass, wherever it lies: integers [channels, height, width]."""
        if "map_buffer" in layer["output"]:
            return self._on_chip(folder, layer)
        return unpack_output(layer, folder.lanes, maps, frame)

    def _on_chip(self, folder: SystolicDesign, layer: Mapping[str, Any]) -> Integers:
        """Rows are dealt to the banks: see scheduler/systolic/on_chip.py."""
        region, at = region_of(layer["output"]), layer["output"]
        count, row_bytes = int(folder.manifest["array"]["rows"]), region.size // region.height
        bank_rows = -(-region.height // count)
        banks = np.zeros((count, bank_rows, row_bytes), np.int8)
        for number, bank in enumerate(banks):
            words = ctypes.c_size_t(bank.size // folder.word_bytes)
            self.library.systolic_map_bank(at["map_buffer"], number, ctypes.c_void_p(bank.ctypes.data), words)
        rows = np.arange(region.height)
        return unpack_map(region, folder.lanes, np.ascontiguousarray(banks[(rows + at["turn"]) % count, rows // count]))


def _array(words: npt.NDArray[Any]) -> tuple[ctypes.c_void_p, ctypes.c_size_t]:
    return ctypes.c_void_p(words.ctypes.data), ctypes.c_size_t(len(words))


def arena(folder: SystolicDesign) -> npt.NDArray[np.int8]:
    """The map arena, filled with a pattern as uninitialised DDR is: nothing may rely on zeros."""
    size = int(folder.manifest["maps_bytes"])
    if not 0 < size <= MAX_ARENA_BYTES:
        raise SimulationError(f"maps_bytes is 1…{MAX_ARENA_BYTES}, not {size}; {MANIFEST} is damaged, generate again")
    return np.full((size // folder.word_bytes, folder.word_bytes), 0x55, np.int8)


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
    if not 1 <= len(pictures) <= folder.batch:
        raise SimulationError(
            f"{folder.path} takes 1…{folder.batch} picture(s) at a time, not {len(pictures)}; give fewer, or generate "
            f"with --batch {max(1, len(pictures))}"
        )
    maps = arena(folder)
    frames = (*pictures, *[pictures[-1]] * (folder.batch - len(pictures)))
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
    golden += golden[-1:] * (folder.batch - len(golden))
    layers = folder.manifest["layers"]
    at_pass = {layer["last_pass"]: layer for layer in layers}
    outputs: list[list[Integers]] = [[] for _ in frames]

    def keep(index: int) -> None:
        tell(f"executing pass {index + 1} of {len(folder.program)}")
        layer = at_pass.get(index)
        if layer is not None:
            for frame, kept in enumerate(outputs):
                kept.append(library.layer(folder, layer, maps, frame))

    library.run(folder, maps, after_pass=keep)
    return tuple(compared(wanted, layers, found, variant) for wanted, found in zip(golden, outputs, strict=True))
