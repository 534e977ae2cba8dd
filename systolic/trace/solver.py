"""Cycles, stalls and deadlocks of the generated C++, solved from one traced execution.

A simulation library that is built with ``SYSTOLIC_TRACE`` records the accesses of every process in the process's own
pipeline time (hls_templates/simulation/trace.h). ``Trace.solve`` computes the cycle of every access for any FIFO
depths, clock and memory, without another execution. docs/explanation/cycles.md lists what the model includes.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping, Sequence
from typing import Any

from boards.errors import ChoiceError, RangeError, StateError, ToolError, UnsupportedError
from boards.progress import Progress, ProgressStep, silent
from systolic.trace.advice import Advice, advise, remedy
from systolic.trace.events import RegionFacts, SolverOptions, StreamFacts, solver_options
from systolic.trace.timing import (
    BundleTiming,
    DeadlockError,
    FabricTiming,
    Lane,
    MemoryTiming,
    ProcessTiming,
    RegionTiming,
    StreamTiming,
    TraceTiming,
    Waiting,
)

__all__ = [
    "DeadlockError",
    "FabricTiming",
    "MemoryTiming",
    "RegionTiming",
    "SolverOptions",
    "Trace",
    "TraceTiming",
    "solver_options",
]

TIMELINE_BINS = 512  # per region and process; an even number, and few enough that a frame's lanes stay below 1 MB


def _stream_facts(stream: dict[str, Any], names: Sequence[str]) -> StreamFacts:
    writer, reader = (names[stream[end]] if stream[end] >= 0 else "" for end in ("writer", "reader"))
    return StreamFacts(
        stream["name"],
        stream["depth"],
        stream["elements"],
        stream["element_bytes"],
        writer,
        reader,
        stream["bits"],
        stream["impl"],
    )


def _region_facts(region: dict[str, Any]) -> RegionFacts:
    names = tuple(process["name"] for process in region["processes"])
    return RegionFacts(
        label=region["label"],
        top=region["top"],
        processes=names,
        accesses=sum(process["accesses"] for process in region["processes"]),
        streams=tuple(_stream_facts(stream, names) for stream in region["streams"]),
    )


def _process_timing(name: str, process: dict[str, Any], cycles: int) -> ProcessTiming:
    waits = (process["wait_input"], process["wait_space"], process["wait_memory"])
    lane = process.get("lane")
    return ProcessTiming(
        name,
        process["end"] - sum(waits),
        *waits,
        idle=cycles - process["end"],
        iterations=process["iterations"],
        lane=lane and Lane(lane["bin_cycles"], *(tuple(lane[key]) for key in ("input", "space", "memory"))),
    )


def _region_timing(facts: RegionFacts, result: dict[str, Any], fabric: FabricTiming) -> RegionTiming:
    return RegionTiming(
        label=facts.label,
        top=facts.top,
        cycles=result["cycles"],
        overhead=0 if facts.top else fabric.region_start + fabric.region_stop,
        processes=tuple(
            _process_timing(name, process, result["cycles"])
            for name, process in zip(facts.processes, result["processes"], strict=True)
        ),
        streams=tuple(
            StreamTiming(s.name, s.writer, s.reader, element_bytes=s.element_bytes, elements=s.elements, **seen)
            for s, seen in zip(facts.streams, result["streams"], strict=True)
        ),
        bundles=tuple(BundleTiming(**{**bundle, "moved": tuple(bundle["moved"])}) for bundle in result["bundles"]),
        interval=result["interval"],
        frame_ends=tuple(result["frame_ends"]),
    )


def _waiting(facts: RegionFacts, depths: Sequence[int], blocked: dict[str, Any]) -> Waiting:
    number = blocked["stream"]
    return Waiting(
        process=facts.processes[blocked["process"]],
        waits_for=blocked["waits_for"],
        stream=facts.streams[number].name if number >= 0 else "",
        element=blocked["element"],
        depth=depths[number] if number >= 0 else 0,
    )


class Trace:
    """The recorded accesses of an execution, in the simulation library; its next traced run replaces them.

    Call ``begin``, the library's top function and ``end``. Then ``solve`` and ``advise`` can be called any number of
    times.

    Args:
        library: The library, built with SYSTOLIC_TRACE and with trace.cpp, solve.cpp, memory.cpp and cycles.cpp of
            hls_templates/simulation.
        frames: The number of consecutive frames in a region, for the interval between two frames. 0 computes no
            interval.
        by_depth: Whether the primitive of a FIFO follows from its width and depth, as in a pipeline. Otherwise a FIFO
            of another depth keeps the primitive that it is bound to.
    """

    def __init__(
        self, library: ctypes.CDLL, frames: int = 0, progress: Progress = silent, by_depth: bool = False
    ) -> None:
        self._library = library
        self._by_depth = by_depth
        self.progress = progress
        self.frames = frames
        try:
            library.systolic_trace_end.restype = ctypes.c_char_p
            library.systolic_trace_describe.restype = ctypes.c_char_p
            library.systolic_trace_cycles.restype = ctypes.c_int64
        except AttributeError as error:
            raise UnsupportedError(
                f"tracing with the library {library._name}",
                f"it was built without the functions of the trace ({error})",
                remedy="build it with SYSTOLIC_TRACE and the sources of hls_templates/simulation",
            ) from None
        numbers = ctypes.POINTER(ctypes.c_int64)
        asked = (ctypes.c_int64, ctypes.POINTER(SolverOptions), numbers, numbers)
        library.systolic_trace_solve.argtypes, library.systolic_trace_solve.restype = asked, ctypes.c_char_p
        library.systolic_trace_cycles.argtypes = (*asked, numbers)
        library.systolic_trace_cycles.restype = ctypes.c_int64
        self._facts: tuple[RegionFacts, ...] | None = None
        self._bytes = 0

    def begin(self) -> None:
        """Delete the recorded accesses, and start recording."""
        self._facts = None
        self._library.systolic_trace_begin()

    def end(self) -> None:
        """Stop recording the accesses.

        Raises:
            ToolError: The kernel did something that contradicts its own declarations.
        """
        sentence = self._library.systolic_trace_end()
        self._facts = None
        if sentence is not None:
            raise ToolError("the cycle trace", f"found a contradiction: {sentence.decode()}")

    def reset(self) -> None:
        """Delete the recorded accesses and free their memory."""
        self._facts = None
        self._library.systolic_trace_reset()

    @property
    def regions(self) -> tuple[RegionFacts, ...]:
        """The recorded content of each region (execution of a DATAFLOW region), in order of execution."""
        if self._facts is None:
            described = _answer(self._library.systolic_trace_describe())
            self._facts = tuple(_region_facts(region) for region in described["regions"])
            self._bytes = described["bytes"]
        return self._facts

    @property
    def bytes(self) -> int:
        """The size of the recorded trace in memory, in bytes."""
        return self._bytes if self.regions else 0

    def solve(
        self,
        memory: MemoryTiming | None = None,
        clock_mhz: float = 300.0,
        depths: Mapping[str, int] | None = None,
        fabric: FabricTiming | None = None,
        timeline: bool = False,
    ) -> TraceTiming:
        """Compute the cycle of every recorded access for this memory, clock and these FIFO depths.

        Args:
            memory: The DDR's timing. None takes the defaults.
            clock_mhz: The clock in MHz.
            depths: FIFO depths in words that differ from the declared ones, by stream or by array of streams.
            fabric: The cycles of the HLS tool's own logic. None takes the defaults.
            timeline: Whether the result has the lanes that a timeline is drawn from.

        Raises:
            DeadlockError: Processes wait for each other in a ring.
            StateError: Nothing was traced yet.
            RangeError: A depth or the clock is too small.
            ChoiceError: No stream has a name of ``depths``.
        """
        memory, fabric = memory or MemoryTiming(), fabric or FabricTiming()
        self._check(clock_mhz, depths or {})
        options = solver_options(memory, clock_mhz, fabric, TIMELINE_BINS if timeline else 0, frames=self.frames)
        regions = []
        total, done = sum(facts.accesses for facts in self.regions), 0
        for number, facts in enumerate(self.regions):
            self.progress(ProgressStep(f"solving, region {number + 1} of {len(self.regions)}", done, total))
            done += facts.accesses
            regions.append(self._solve_region(number, facts.depths(depths or {}), options, fabric))
        return TraceTiming(clock_mhz, memory, tuple(regions))

    def region_cycles(self, number: int, depths: Sequence[int], options: SolverOptions) -> int | None:
        """Return the cycles of region ``number``; None for a deadlock or above ``options.limit`` cycles."""
        pace = self.region_pace(number, depths, options)
        return None if pace is None else pace[0]

    def region_pace(self, number: int, depths: Sequence[int], options: SolverOptions) -> tuple[int, int] | None:
        """Return (cycles, cycles between frames) of region ``number``; None like ``region_cycles``.

        The interval is computed only if ``options.frames`` is given.
        """
        fifos, interval = self._fifos(number, depths), ctypes.c_int64()
        cycles = int(self._library.systolic_trace_cycles(number, ctypes.byref(options), *fifos, ctypes.byref(interval)))
        if cycles == -3:
            raise RangeError("the number of a region of the trace", number, 0, len(self.regions) - 1)
        return None if cycles < 0 else (cycles, interval.value)

    def advise(
        self,
        memory: MemoryTiming | None = None,
        clock_mhz: float = 300.0,
        fabric: FabricTiming | None = None,
        slack: float = 0.005,
    ) -> Advice:
        """Return the least FIFO depths that cost at most the share ``slack`` of the cycles with unbounded FIFOs."""
        self._check(clock_mhz, {})
        return advise(self, solver_options(memory or MemoryTiming(), clock_mhz, fabric), slack, self.progress)

    def _solve_region(
        self, number: int, depths: Sequence[int], options: SolverOptions, fabric: FabricTiming
    ) -> RegionTiming:
        facts = self.regions[number]
        fifos = self._fifos(number, depths)
        result = _answer(self._library.systolic_trace_solve(number, ctypes.byref(options), *fifos))
        if result["ring"]:
            self._deadlock(number, depths, options, result)
        return _region_timing(facts, result, fabric)

    def _fifos(self, number: int, depths: Sequence[int]) -> tuple[ctypes.Array[ctypes.c_int64], ...]:
        """Return two C arrays: the depth of each FIFO, and whether it is in a memory, not in shift registers."""
        numbers = ctypes.c_int64 * len(depths)
        return numbers(*depths), numbers(*self.regions[number].in_memory(depths, self._by_depth))

    def _deadlock(self, number: int, depths: Sequence[int], options: SolverOptions, result: dict[str, Any]) -> None:
        facts = self.regions[number]
        ring = tuple(_waiting(facts, depths, blocked) for blocked in result["ring"])
        full = tuple(dict.fromkeys(b["stream"] for b in result["ring"] if b["waits_for"] == "space"))
        raise DeadlockError(facts.label, ring, remedy(self, number, depths, full, options))

    def _check(self, clock_mhz: float, depths: Mapping[str, int]) -> None:
        if not self.regions:
            raise StateError(
                "the trace", "is empty", remedy="call begin(), then the library's top function, then end()"
            )
        if clock_mhz <= 0:
            raise RangeError("the clock in MHz", clock_mhz, 0, exclusive=True)
        streams = [stream for region in self.regions for stream in region.streams]
        known = {stream.name for stream in streams} | {stream.group for stream in streams}
        for name, depth in depths.items():
            if name not in known:
                raise ChoiceError("the name of a stream", name, sorted(known))
            if depth < 1:
                raise RangeError(f"the depth of stream '{name}'", depth, 1)


def _answer(text: bytes) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(text)
    if "error" in answer:
        raise ToolError("the cycle trace", f"failed: {answer['error']}")
    return answer
