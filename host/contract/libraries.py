"""The C ABI of the simulation libraries: one class a style, its signatures declared once.

Generated code is executed one start at a time in a process, since it keeps what it holds in statics. What a callback
raises, an interrupt from the keyboard too, stops the generated code and is raised again when it has returned.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import MAX_FAULT_LENGTH, DamagedFileError, MismatchError, RangeError, SystolicError, cut
from contract.geometry import parameters
from host.contract.streaming import StreamingManifest
from host.contract.systolic import SystolicManifest, SystolicRegion
from host.contract.tensors import Integers

Array = npt.NDArray[Any]

REQUANTISER_BYTES, PROGRAM_WORD_BYTES = 16, 4
MESSAGE_ROOM = 4096
"""Bytes of the sentence with which generated code stops."""

_AT_ONCE = threading.Lock()
_SIZE, _POINTER = ctypes.c_size_t, ctypes.c_void_p
_POINTERS, _SIZES = ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t)
_MESSAGE = (ctypes.c_char_p, _SIZE)

_AFTER_PASS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint32)
_SIMULATE = (
    *(_POINTER, _SIZE),  # maps
    *(_POINTERS, _SIZE),  # weights, one pointer a port, all of so many words
    *(_POINTER, _SIZE),  # requantisers
    *(_POINTER, _SIZE),  # program
    *(ctypes.c_uint32, ctypes.c_uint32),  # first pass, how many
    ctypes.POINTER(ctypes.c_uint32),  # the pass that it stands at
    _AFTER_PASS,
    *_MESSAGE,
)
_MAP_BANK = (ctypes.c_int, ctypes.c_int, _POINTER, _SIZE)

_WAVES = (ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint32)
_GEOMETRY = (ctypes.POINTER(ctypes.c_int64), ctypes.c_int)
_TWO_DESIGNS = "generate the design again: its folder holds files of two designs, or was edited"

_TAKE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_int32), _SIZE)
_STREAM = (_POINTER, _POINTER, _POINTERS, _SIZES, ctypes.c_int, _TAKE, *_MESSAGE)


@dataclass(eq=False)
class StoppedError(SystolicError):
    """Generated code found that it cannot go on.

    Attributes:
        sentence: What the code says.
        code: Which code, and where it stopped.
        current: The number of the pass in which it stopped.
    """

    sentence: str
    code: str
    current: int = 0

    def message(self) -> str:
        return f"{self.code}: {self.sentence}"


class _Library:
    """handle: what ctypes made of the file, for other functions of the same library."""

    def __init__(self, path: Path) -> None:
        """DamagedFileError if the file is damaged or of another machine."""
        try:
            self.handle, self._path = ctypes.CDLL(str(path)), path
        except OSError as error:
            reason = f"cannot be loaded: {cut(error, MAX_FAULT_LENGTH)}"
            raise DamagedFileError(str(path), reason, remedy="remove this library and build it again") from error

    def function(self, name: str, arguments: Sequence[Any]) -> Any:
        """Return a function of the library; DamagedFileError if it has none of that name, as one of another style."""
        try:
            bound = getattr(self.handle, name)
        except AttributeError as error:
            reason = f"has no function {name}: it is a library of another style"
            raise DamagedFileError(str(self._path), reason, remedy="build it again") from error
        bound.argtypes = tuple(arguments)
        return bound

    def check_geometry(self, expected: Sequence[tuple[str, int]]) -> None:
        """Raise MismatchError if the library was compiled for other numbers than the manifest's: it would go beyond the
        memory that it is given."""
        values = (ctypes.c_int64 * len(expected))()
        count = self.function("systolic_geometry", _GEOMETRY)(values, len(expected))
        if count != len(expected):
            raise MismatchError(
                "the count of compiled numbers", count, len(expected), where=str(self._path), remedy=_TWO_DESIGNS
            )
        for (name, number), compiled in zip(expected, values, strict=True):
            if number != compiled:
                raise MismatchError(name, compiled, number, where=str(self._path), remedy=_TWO_DESIGNS)


class _Guard:
    """A callback for C: 0 goes on, 1 stops; what the Python function raised is kept for ``check``."""

    def __init__(self, function: Callable[..., None]) -> None:
        self._function = function
        self._error: BaseException | None = None

    def __call__(self, *arguments: Any) -> int:
        if self._error is None:
            try:
                self._function(*arguments)
            except BaseException as error:
                self._error = error
        return int(self._error is not None)

    def check(self) -> None:
        """Raises what the function raised."""
        if self._error is not None:
            raise self._error


@dataclass(frozen=True, eq=False)
class SystolicMemory:
    """What a start reads and writes, each contiguous: the arena of maps, an image a weight port, the requantisers and
    the program."""

    maps: Array
    weights: tuple[Array, ...]
    requantisers: Array
    program: Array


def array_numbers(manifest: SystolicManifest) -> list[tuple[str, int]]:
    """Return what the engine's sources are compiled for, by the names of parameters.h and in the order of c_abi.h."""
    told = (parameter for parameter in parameters() if parameter.macro)
    named = [(parameter.macro, int(getattr(manifest.array, parameter.name))) for parameter in told]
    words = [("a word of maps", manifest.word_bytes), ("a word of weights", manifest.weight_word_bytes)]
    return [*named, *words, ("PASS_WORDS", manifest.pass_words)]


class SystolicLibrary(_Library):
    """The generated engine over arrays of this process."""

    def __init__(self, path: Path, manifest: SystolicManifest) -> None:
        super().__init__(path)
        self._manifest = manifest
        self._simulate = self.function("systolic_simulate", _SIMULATE)
        self.check_geometry(array_numbers(manifest))

    def run(
        self,
        memory: SystolicMemory,
        first: int,
        count: int,
        after_pass: Callable[[int], None] = lambda _: None,
    ) -> int:
        """Executes passes ``first`` … ``first + count − 1`` over ``memory`` in place; gives the pass that it ends at.

        ``after_pass(index)`` sees the maps after each pass. StoppedError with the engine's sentence.
        """
        images = (ctypes.c_void_p * len(memory.weights))(*(image.ctypes.data for image in memory.weights))
        current, message = ctypes.c_uint32(), ctypes.create_string_buffer(MESSAGE_ROOM)
        guard = _Guard(after_pass)
        word, weight_word = self._manifest.word_bytes, self._manifest.weight_word_bytes
        with _AT_ONCE:
            stopped = self._simulate(
                *(memory.maps.ctypes.data, memory.maps.nbytes // word),
                *(images, min(image.nbytes for image in memory.weights) // weight_word),
                *(memory.requantisers.ctypes.data, memory.requantisers.nbytes // REQUANTISER_BYTES),
                *(memory.program.ctypes.data, memory.program.nbytes // PROGRAM_WORD_BYTES),
                *(first, count, ctypes.byref(current), _AFTER_PASS(guard)),
                *(message, MESSAGE_ROOM),
            )
        guard.check()
        if stopped:
            raise StoppedError(_text(message), f"the generated code stopped in pass {current.value}", current.value)
        return int(current.value)

    def pass_cycles(self) -> tuple[int, ...]:
        """Of each pass of the last ``run``, where the library counts them: that of an engine in SystemVerilog."""
        if not hasattr(self.handle, "systolic_pass_cycles"):
            return ()
        cycles = (ctypes.c_int64 * self._manifest.passes)()
        count = self.function("systolic_pass_cycles", _GEOMETRY)(cycles, self._manifest.passes)
        return tuple(cycles[: min(count, self._manifest.passes)])

    def record(self, path: Path | None, first: int, last: int) -> None:
        """In the runs that follow the signals of passes ``first`` … ``last`` go into an FST file; of none where it
        is None. DamagedFileError if the library cannot record."""
        self.function("systolic_waves", _WAVES)(os.fsencode(path or ""), first, last)

    def map_on_chip(self, region: SystolicRegion) -> Array:
        """The bytes of a map that is in its buffer on chip, row by row as they would lie in DDR.

        Rows are dealt to the banks in turn: see scheduler/systolic/on_chip.py.
        """
        read_bank = self.function("systolic_map_bank", _MAP_BANK)
        array, word_bytes = self._manifest.array, self._manifest.word_bytes
        first, row_bytes = (region.place or 0) * word_bytes, region.bytes // region.height
        laps = -(-region.height // array.rows)
        banks = np.zeros((array.rows, first + laps * row_bytes), np.int8)
        for number, bank in enumerate(banks):
            words = min(bank.nbytes // word_bytes, array.map_depth)  # of its last row those of the map alone
            read_bank(region.map_buffer, number, bank.ctypes.data, words)
        laid_out = banks[:, first:].reshape(array.rows, laps, row_bytes)
        rows = np.arange(region.height)
        return np.ascontiguousarray(laid_out[(rows + (region.turn or 0)) % array.rows, rows // array.rows])


class StreamingLibrary(_Library):
    """The generated pipeline: packets in, packets out."""

    def __init__(self, path: Path, manifest: StreamingManifest) -> None:
        super().__init__(path)
        self._manifest = manifest
        self._stream = self.function("systolic_stream", _STREAM)
        packets = [("IN_BYTES", manifest.packet_in.bytes), ("OUT_BYTES", manifest.packet_out.bytes)]
        self.check_geometry([*packets, *((f"a word of {image.port}", image.word_bytes) for image in manifest.images)])

    def run(
        self,
        images: Sequence[Array],
        packets: npt.NDArray[np.uint8],
        take: Callable[[int, Integers], None] = lambda _tap, _integers: None,
    ) -> npt.NDArray[np.uint8]:
        """uint8 [frames, bytes in] → uint8 [frames, bytes out]. images: what the external weights point to.

        ``take(tap, integers)`` sees every layer's stream. StoppedError with the pipeline's own sentence.
        """
        packets = np.ascontiguousarray(packets)
        packets_out = np.zeros((len(packets), self._manifest.packet_out.bytes), np.uint8)
        words = [data.nbytes // image.word_bytes for data, image in zip(images, self._manifest.images, strict=True)]
        message = ctypes.create_string_buffer(MESSAGE_ROOM)

        def copied(tap: int, values: Any, count: int) -> None:
            if not 0 <= tap < len(self._manifest.layers):
                last = len(self._manifest.layers) - 1
                raise RangeError("the index of a layer", tap, 0, last, where=str(self._path), remedy=_TWO_DESIGNS)
            take(tap, np.ctypeslib.as_array(values, (count,)).copy())

        guard = _Guard(copied)
        with _AT_ONCE:
            stopped = self._stream(
                *(packets.ctypes.data, packets_out.ctypes.data),
                (ctypes.c_void_p * max(1, len(images)))(*(image.ctypes.data for image in images)),
                (ctypes.c_size_t * max(1, len(words)))(*words),
                *(len(packets), _TAKE(guard)),
                *(message, MESSAGE_ROOM),
            )
        guard.check()
        if stopped:
            raise StoppedError(_text(message), "the generated pipeline stopped")
        return packets_out


def _text(message: ctypes.Array[ctypes.c_char]) -> str:
    return message.value.decode("utf-8", "replace")
