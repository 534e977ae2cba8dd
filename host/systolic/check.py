"""A systolic design's test frame, and the golden model's map of every layer for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from boards.errors import MismatchError
from host.contract.manifest import of_style
from host.contract.parts import Manifest, read_data_file
from host.contract.systolic import SystolicManifest, SystolicRegion
from host.contract.tensors import Integers, Pixels, planes_of

_SIZE, _REMEDY = "the number of bytes", "copy the file again"


def check_frame(manifest: Manifest, folder: Path) -> tuple[Pixels, Iterator[Integers]]:
    """Return the test frame's network input, uint8 ``(channels, height, width)``, and the golden model's integers of
    each layer in order."""
    described = of_style(SystolicManifest, manifest)
    return _picture(described, folder), _golden_maps(described, folder)


def _picture(manifest: SystolicManifest, folder: Path) -> Pixels:
    region, image = manifest.input, manifest.check.maps
    arena = np.frombuffer(read_data_file(folder, image), np.uint8)
    if arena.size != manifest.maps_bytes:
        raise MismatchError(_SIZE, arena.size, manifest.maps_bytes, where=image.path, remedy=_REMEDY)
    rows = arena[region.offset : region.offset + region.bytes].reshape(region.height, region.row_bytes)
    pixels = planes_of(rows, region.shape, region.pixel_bytes).transpose(1, 3, 0, 2)
    return np.ascontiguousarray(pixels.reshape(-1, region.height, region.width)[: region.channels])


def _golden_maps(manifest: SystolicManifest, folder: Path) -> Iterator[Integers]:
    image = manifest.check.layers
    data = read_data_file(folder, image)
    sizes = [_size(layer.output) for layer in manifest.layers]
    if sum(sizes) != len(data):
        raise MismatchError(_SIZE, len(data), sum(sizes), where=image.path, remedy=_REMEDY)
    return _maps(manifest, data, sizes)


def _maps(manifest: SystolicManifest, data: bytes, sizes: list[int]) -> Iterator[Integers]:
    offset = 0
    for layer, size in zip(manifest.layers, sizes, strict=True):
        region = layer.output
        integers = np.frombuffer(data, f"<i{region.value_bytes}", size // region.value_bytes, offset)
        yield integers.reshape(region.shape)
        offset += size


def _size(region: SystolicRegion) -> int:
    return region.channels * region.height * region.width * region.value_bytes
