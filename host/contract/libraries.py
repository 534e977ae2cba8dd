"""The C ABI of the simulation libraries: one class per style, with each signature declared once.

Generated code keeps state in static variables, so a process executes one start at a time. If a callback raises an
exception or a signal arrives, the generated code stops at the next callback. The exception is raised, or the signal
handled, after its return.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
"""Bytes of the buffer for the sentence with which generated code stops."""

_AT_ONCE = threading.Lock()
_SIZE, _POINTER = ctypes.c_size_t, ctypes.c_void_p
_POINTERS, _SIZES = ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t)
_MESSAGE = (ctypes.c_char_p, _SIZE)

_AFTER_PASS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint32)
_SIMULATE = (
    *(_POINTER, _SIZE),  # maps, and their number of words
    *(_POINTERS, _SIZE),  # weights, one pointer per port, and the number of words of each port
    *(_POINTER, _SIZE),  # requantisers
    *(_POINTER, _SIZE),  # program
    *(ctypes.c_uint32, ctypes.c_uint32),  # first pass, number of passes
    ctypes.POINTER(ctypes.c_uint32),  # output: the pass that is being executed
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
    """The error raised if the generated code of a simulation library stops, with the sentence that it reports.

    Attributes:
        sentence: The sentence that the code reports.
        code: The code that stopped, and where.
        current: Number of the pass (engine instruction) in which it stopped.
    """

    sentence: str
    code: str
    current: int = 0

    def message(self) -> str:
        return f"{self.code}: {self.sentence}"


class _Library:
    """A loaded simulation library: the design's generated code, compiled to a shared library for this machine.

    Attributes:
        handle: The ``ctypes`` library, for access to its other functions.
    """

    def __init__(self, path: Path) -> None:
        """Load the shared library. DamagedFileError if the file is damaged or was compiled for another machine."""
        try:
            self.handle, self._path = ctypes.CDLL(str(path)), path
        except OSError as error:
            reason = f"cannot be loaded: {cut(error, MAX_FAULT_LENGTH)}"
            raise DamagedFileError(str(path), reason, remedy="remove this library and build it again") from error

    def function(self, name: str, arguments: Sequence[Any]) -> Any:
        """Return a C function of the library by name. DamagedFileError if the library lacks it, such as one of another
        style."""
        try:
            bound = getattr(self.handle, name)
        except AttributeError as error:
            reason = f"has no function {name}: it is a library of another style"
            raise DamagedFileError(str(self._path), reason, remedy="build it again") from error
        bound.argtypes = tuple(arguments)
        return bound

    def check_geometry(self, expected: Sequence[tuple[str, int]]) -> None:
        """Raise MismatchError if the library was compiled with other array sizes and word sizes than the manifest
        states.

        Such a library would access memory beyond the arrays it is given.

        Args:
            expected: Name and value of each number, in the order of the library.
        """
        values = (ctypes.c_int64 * len(expected))()
        count = self.function("systolic_geometry", _GEOMETRY)(values, len(expected))
        if count != len(expected):
            raise MismatchError(
                "the count of compiled numbers", count, len(expected), where=str(self._path), remedy=_TWO_DESIGNS
            )
        for (name, number), compiled in zip(expected, values, strict=True):
            if number != compiled:
                raise MismatchError(name, compiled, number, where=str(self._path), remedy=_TWO_DESIGNS)


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Guard:
    """A callback that generated C code calls: it runs a Python function, and returns 0 to continue or 1 to stop.

    It keeps the Python function's exception, or a signal that arrived meanwhile, until the C code has returned.
    """

    def __init__(self, function: Callable[..., None]) -> None:
        self._function = function
        self._error: BaseException | None = None
        self._signal: tuple[int, Any] | None = None

    def __call__(self, *arguments: Any) -> int:
        if self._error is None and self._signal is None:
            try:
                self._function(*arguments)
            except BaseException as error:
                self._error = error
        return int(self._error is not None or self._signal is not None)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Return a context manager for C code that calls the guard; at its end it raises the function's exception or
        handles a signal.

        ctypes drops an exception that a signal's handler raises before the callback's first statement, so the handlers
        are replaced while C code runs. Python runs them in the main thread only.
        """
        handlers: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            handlers = {number: signal.getsignal(number) for number in _SIGNALS if callable(signal.getsignal(number))}
        for number in handlers:
            signal.signal(number, self._defer)
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        self._check(handlers)

    def _defer(self, number: int, frame: Any) -> None:
        self._signal = (number, frame)

    def _check(self, handlers: Mapping[int, Any]) -> None:
        if self._signal is not None:
            handlers[self._signal[0]](*self._signal)
        if self._error is not None:
            raise self._error


@dataclass(frozen=True, eq=False)
class SystolicMemory:
    """The arrays in this process that stand for the DDR that one run of a systolic engine reads and writes. Each is
    contiguous.

    Attributes:
        maps: The arena of all feature maps, uint8.
        weights: The weights, one array per weight port.
        requantisers: The requantisers of all channels.
        program: The passes of the program, in order.
    """

    maps: Array
    weights: tuple[Array, ...]
    requantisers: Array
    program: Array


def array_numbers(manifest: SystolicManifest) -> list[tuple[str, int]]:
    """Return name and value of each number that a systolic engine is compiled for, in the order of c_abi.h."""
    told = (parameter for parameter in parameters() if parameter.macro)
    named = [(parameter.macro, int(getattr(manifest.array, parameter.name))) for parameter in told]
    words = [("a word of maps", manifest.word_bytes), ("a word of weights", manifest.weight_word_bytes)]
    return [*named, *words, ("PASS_WORDS", manifest.pass_words)]


class SystolicLibrary(_Library):
    """The simulation library of a systolic design: its generated engine, executed on arrays of this process."""

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
        """Execute ``count`` passes (instructions) of the program from ``first`` on, in place; return the last one
        executed.

        Args:
            memory: The arrays.
            first: First pass.
            count: Number of passes.
            after_pass: Called with the pass number after each pass, when the maps hold its output.

        Raises:
            StoppedError: The engine stopped; it holds the engine's sentence.
        """
        images = (ctypes.c_void_p * len(memory.weights))(*(image.ctypes.data for image in memory.weights))
        current, message = ctypes.c_uint32(), ctypes.create_string_buffer(MESSAGE_ROOM)
        guard = _Guard(after_pass)
        word, weight_word = self._manifest.word_bytes, self._manifest.weight_word_bytes
        with _AT_ONCE, guard.watching():
            stopped = self._simulate(
                *(memory.maps.ctypes.data, memory.maps.nbytes // word),
                *(images, min(image.nbytes for image in memory.weights) // weight_word),
                *(memory.requantisers.ctypes.data, memory.requantisers.nbytes // REQUANTISER_BYTES),
                *(memory.program.ctypes.data, memory.program.nbytes // PROGRAM_WORD_BYTES),
                *(first, count, ctypes.byref(current), _AFTER_PASS(guard)),
                *(message, MESSAGE_ROOM),
            )
        if stopped:
            raise StoppedError(_text(message), f"the generated code stopped in pass {current.value}", current.value)
        return int(current.value)

    def pass_cycles(self) -> tuple[int, ...]:
        """Return the clock cycles of each pass (engine instruction) of the last ``run``, or () if the library does not
        count them.

        Only libraries of a SystemVerilog engine do.
        """
        if not hasattr(self.handle, "systolic_pass_cycles"):
            return ()
        cycles = (ctypes.c_int64 * self._manifest.passes)()
        count = self.function("systolic_pass_cycles", _GEOMETRY)(cycles, self._manifest.passes)
        return tuple(cycles[: min(count, self._manifest.passes)])

    def record(self, path: Path | None, first: int, last: int) -> None:
        """Record the waveforms of engine instructions (passes) ``first`` … ``last`` of later runs in an FST file;
        ``path`` None ends this.

        DamagedFileError if the library cannot record.
        """
        self.function("systolic_waves", _WAVES)(os.fsencode(path or ""), first, last)

    def map_on_chip(self, region: SystolicRegion) -> Array:
        """Return the bytes of a feature map in its on-chip buffer, row by row as the map is stored in DDR.

        Rows are distributed to the banks in turn: see scheduler/systolic/on_chip.py.
        """
        read_bank = self.function("systolic_map_bank", _MAP_BANK)
        array, word_bytes = self._manifest.array, self._manifest.word_bytes
        first, row_bytes = (region.place or 0) * word_bytes, region.bytes // region.height
        laps = -(-region.height // array.rows)
        banks = np.zeros((array.rows, first + laps * row_bytes), np.int8)
        for number, bank in enumerate(banks):
            words = min(bank.nbytes // word_bytes, array.map_depth)  # the last row may end with the map's own words
            read_bank(region.map_buffer, number, bank.ctypes.data, words)
        laid_out = banks[:, first:].reshape(array.rows, laps, row_bytes)
        rows = np.arange(region.height)
        return np.ascontiguousarray(laid_out[(rows + (region.turn or 0)) % array.rows, rows // array.rows])


class StreamingLibrary(_Library):
    """The simulation library of a streaming design: its generated pipeline, executed on packets in this process."""

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
        """Execute the pipeline on one input packet per frame, and return the output packets.

        Args:
            images: The data of each port of external weights.
            packets: Input packets, uint8 ``(frames, bytes)``.
            take: Called with the layer's index and the integers of its stream, for every layer.

        Returns:
            Output packets, uint8 ``(frames, bytes)``.

        Raises:
            StoppedError: The pipeline stopped; it holds the pipeline's sentence.
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
        with _AT_ONCE, guard.watching():
            stopped = self._stream(
                *(packets.ctypes.data, packets_out.ctypes.data),
                (ctypes.c_void_p * max(1, len(images)))(*(image.ctypes.data for image in images)),
                (ctypes.c_size_t * max(1, len(words)))(*words),
                *(len(packets), _TAKE(guard)),
                *(message, MESSAGE_ROOM),
            )
        if stopped:
            raise StoppedError(_text(message), "the generated pipeline stopped")
        return packets_out


def _text(message: ctypes.Array[ctypes.c_char]) -> str:
    return message.value.decode("utf-8", "replace")
