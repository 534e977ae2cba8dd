"""The images of a design, read and checked in one place for a board, a simulated board and the simulation library."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from boards.errors import InvalidValueError, MismatchError, RangeError
from host.contract.parts import DataFile, read_data_file
from host.contract.program import HALVES_MARKS, MAX_SHIFT, ImageWords, check_program
from host.contract.streaming import StreamingManifest
from host.contract.systolic import SystolicManifest

Bytes = npt.NDArray[np.uint8]
REQUANTISER_BYTES = 16
LATE_MARKS = 64 | 128
"""Flag bits above a requantiser's shift (saver/requantise.h), used if the offset is added after the product."""

_COPY = "copy the file again"


@dataclass(frozen=True, eq=False)
class SystolicUploads:
    """The data that a systolic design needs in DDR, read from its files and checked. All arrays are read-only.

    Attributes:
        weights: For each port, uint8 ``(words, bytes of a word)``.
        requantisers: uint32 ``(output channels of all layers, 4)``.
        program: uint32 ``(passes, words of a pass)``: the engine's instructions.
    """

    weights: tuple[Bytes, ...]
    requantisers: npt.NDArray[np.uint32]
    program: npt.NDArray[np.uint32]


def read_systolic(folder: Path, manifest: SystolicManifest) -> SystolicUploads:
    """Return a systolic design's weights, requantisers and program, read from its files and checked.

    An error if a file is not the one that the manifest describes, or would let the engine access memory out of bounds.
    """
    images = manifest.images
    weights = tuple(_whole(folder, image, manifest.weight_word_bytes) for image in images.weights)
    requantisers = _whole(folder, images.requantisers, REQUANTISER_BYTES).view("<u4").astype(np.uint32, copy=False)
    program = _whole(folder, images.program, 4 * manifest.pass_words).view("<u4").astype(np.uint32, copy=False)
    count = len(weights[0])
    for image, words in zip(images.weights, weights, strict=True):
        if len(words) != count:
            raise MismatchError("the number of words", len(words), count, where=image.path, remedy=_COPY)
    if len(program) != manifest.passes:
        raise MismatchError(
            "the number of passes", len(program), manifest.passes, where=images.program.path, remedy=_COPY
        )
    marks = LATE_MARKS if manifest.array.late_offsets else 0
    shift = requantisers[:, 2] & ~np.uint32(marks)
    tables = requantisers[:, 3] & ~np.uint32(HALVES_MARKS << 10 if manifest.array.late_offsets > 1 else 0)
    wrong = shift[(shift < 1) | (shift > MAX_SHIFT)]
    if wrong.size:
        raise RangeError(
            "the shift of a requantiser",
            int(wrong[0]),
            1,
            MAX_SHIFT,
            where=images.requantisers.path,
            remedy="generate the design again",
        )
    check_program(manifest, program, ImageWords(count, len(requantisers), tables), images.program.path)
    return SystolicUploads(weights, requantisers, program)


def read_streaming(folder: Path, manifest: StreamingManifest) -> tuple[Bytes, ...]:
    """Return a streaming design's weights in DDR, read from its files: for each port uint8 ``(words, bytes of a
    word)``.

    Errors are the same as in ``read_systolic``.
    """
    return tuple(_whole(folder, image, image.word_bytes) for image in manifest.images)


def _whole(folder: Path, file: DataFile, word_bytes: int) -> Bytes:
    data = np.frombuffer(read_data_file(folder, file), np.uint8)
    if not data.size or data.size % word_bytes:
        required = f"a multiple of the word of {word_bytes}, and not 0"
        raise InvalidValueError("the number of bytes", data.size, required, where=file.path, remedy=_COPY)
    return data.reshape(-1, word_bytes)
