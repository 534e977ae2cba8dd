"""A pipeline of stages that work on consecutive frames at the same time.

Plain threads suffice: numpy, Pillow and ctypes release the interpreter's lock while they work.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from boards.errors import SystolicError, cut
from host.gate import Gate
from host.vision.frame import StageSpan

T = TypeVar("T")

_END = object()

FEED_SECONDS = 1.0
"""Seconds that the end of a stream waits for the caller's iterator of frames, which cannot be interrupted."""


MAX_CAUSE_LENGTH = 2000
"""Maximum number of characters quoted from an exception that a stage raised: it may come from any library."""


@dataclass(eq=False)
class FrameError(SystolicError):
    """The error raised if a stage of a stream fails on a frame.

    Attributes:
        index: The number of the frame, from 0.
        frame: The frame as the caller gave it.
        stage: The name of the stage.
        cause: The exception that the stage raised.
        count: The number of frames that were in the stage together, from ``index`` on.
    """

    index: int
    frame: object = field(repr=False)
    stage: str
    cause: BaseException
    count: int = 1

    def message(self) -> str:
        is_file = isinstance(self.frame, (str, bytes)) or hasattr(self.frame, "__fspath__")
        named = f" ({cut(self.frame)})" if is_file else ""
        last = self.index + self.count - 1
        frames = f"frame {self.index}{named}" if self.count == 1 else f"frames {self.index}…{last}"
        return f"{frames} failed in stage {self.stage!r}: {cut(self.cause, MAX_CAUSE_LENGTH)}"


@dataclass(frozen=True, eq=False)
class Job:
    """A frame with the output of the last stage that processed it.

    Attributes:
        index: Number of the frame, from 0.
        frame: The frame as the caller gave it.
        value: Output of the last stage that finished the frame.
        spans: Begin and end of each finished stage.
        failed: The stage that failed, its exception and the number of frames that were in it. None if none failed.
    """

    index: int
    frame: Any
    value: Any
    spans: tuple[StageSpan, ...] = ()
    failed: tuple[str, BaseException, int] | None = field(default=None, repr=False)


class ClosableQueue(Generic[T]):
    """A bounded queue between two threads. Either can close it, so that the other does not wait for ever."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._items: deque[T] = deque()
        self._closed = False
        self.dropped = False
        self._changed = threading.Condition()

    def put(self, item: T) -> bool:
        """Wait for room and add the item. Return False if the queue is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._items) < self._room)
            if self._closed:
                return False
            self._items.append(item)
            self._changed.notify_all()
            return True

    def get(self) -> T | None:
        """Wait for an item and return it, or None if the queue is closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or bool(self._items))
            if not self._items:
                return None
            item = self._items.popleft()
            self._changed.notify_all()
            return item

    def take(self) -> bool:
        """Wait for an item and remove it. Return False if the queue is closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or bool(self._items))
            taken = bool(self._items)
            if taken:
                self._items.popleft()
                self._changed.notify_all()
            return taken

    def close(self, *, drop: bool = False) -> None:
        with self._changed:
            self._closed = True
            if drop:
                self.dropped = True
                self._items.clear()
            self._changed.notify_all()


@dataclass(frozen=True)
class Stage:
    """The description of one stage of the frame pipeline: its function, and how many frames it processes at a time.

    Attributes:
        name: The stage's name, for errors and measurements.
        work: Called with the output of the previous stage.
        workers: Number of frames processed at the same time. Their order is kept.
        claim: Queue from which a stage with one worker takes a resource before it begins a frame. ``work`` then gets
            (resource, value). The time that the stage waits for the resource does not count as its work.
        frames_per_call: Number of frames per call. ``work`` then takes and returns a sequence, which is shorter before
            the end of the stream or before a failed frame. Each of its frames records the time of the whole call.
            Consecutive stages with ``frames_per_call`` process the same groups.
    """

    name: str
    work: Callable[[Any], Any]
    workers: int = 1
    claim: ClosableQueue[Any] | None = None
    frames_per_call: int | None = None


class Flow:
    """Threads that take every frame through every stage, in order, while different stages work on different frames.

    Args:
        frames: The frames, from the caller.
        stages: The stages, in order.
        room: Number of frames that may wait between two stages.
        in_flight: Maximum number of frames taken from ``frames`` and not yet yielded. It limits how old a live frame
            may become. None sets no limit beyond the queues'.
        gate: The gate whose ``close`` stops the flow. The stages' threads count as inside it until they end.
    """

    def __init__(
        self,
        frames: Iterable[Any],
        stages: Sequence[Stage],
        room: int = 1,
        in_flight: int | None = None,
        gate: Gate | None = None,
    ) -> None:
        self._gate = gate or Gate()
        # A queue has room for a stage's whole group: the stage would otherwise wait for the next one to read it.
        between: list[ClosableQueue[Job]] = [
            ClosableQueue(room),
            *(ClosableQueue(room * (stage.frames_per_call or 1)) for stage in stages),
        ]
        self._last = between[-1]
        self._places = _places(in_flight)
        self._channels: tuple[ClosableQueue[Any], ...] = (
            *between,
            *((self._places,) if self._places is not None else ()),
            *(stage.claim for stage in stages if stage.claim is not None),
        )
        self._feeder = threading.Thread(
            target=_feed, args=(frames, between[0], self._places), name="frames", daemon=True
        )
        self._workers = [
            threading.Thread(
                target=_serve if stage.workers == 1 else _serve_at_once,
                args=(self._gate.stay_inside, stage, source, sink),
                name=stage.name,
                daemon=True,
            )
            for stage, source, sink in zip(stages, between, between[1:], strict=False)
        ]
        for thread in (self._feeder, *self._workers):
            thread.start()

    def jobs(self) -> Generator[Job, None, None]:
        """Yield finished frames in order. The stages stop at the end, or if the caller closes the iterator early.

        A failed frame ends the flow: all earlier frames are yielded first, then FrameError is raised.
        """
        try:
            for job in _finished(self._last):
                if self._places is not None:
                    self._places.put(None)
                yield job
        finally:
            self.stop()

    def stop(self) -> None:
        """Stop the threads of all stages and wait for their end. Work in progress finishes; waiting frames are dropped.

        Any thread may call it, also twice, except the threads of the stages, which get StateError.
        """
        self._gate.check_outside()
        for channel in self._channels:
            channel.close(drop=True)
        for thread in self._workers:
            thread.join()
        if self._feeder is not threading.current_thread():  # the caller's own iterator may call stop()
            self._feeder.join(FEED_SECONDS)


def stream(frames: Iterable[Any], stages: Sequence[Stage], room: int = 1) -> Generator[Job, None, None]:
    """Yield the finished frames of a ``Flow`` in order. The flow starts when the first one is requested."""
    yield from Flow(frames, stages, room).jobs()


def _finished(last: ClosableQueue[Job]) -> Iterator[Job]:
    while (job := last.get()) is not None:
        if job.failed is not None:
            stage, cause, count = job.failed
            raise FrameError(job.index, job.frame, stage, cause, count) from cause
        yield job


def _places(count: int | None) -> ClosableQueue[None] | None:
    """Return a queue with one token per frame that may be in flight, or None for no limit."""
    if count is None:
        return None
    places: ClosableQueue[None] = ClosableQueue(count)
    for _ in range(count):
        places.put(None)
    return places


def _feed(frames: Iterable[Any], sink: ClosableQueue[Job], places: ClosableQueue[None] | None) -> None:
    """Put the caller's frames into the first queue, taking each only if it may be in flight, so that a live source
    gives its newest frame."""
    index = 0
    try:
        source = iter(frames)
        while (places is None or places.take()) and (frame := next(source, _END)) is not _END:
            if not sink.put(Job(index, frame, frame)):
                return
            index += 1
    except BaseException as error:  # from the caller's iterator; FrameError reports it where the frames are consumed
        sink.put(Job(index, None, None, failed=("frames", error, 1)))
    finally:
        sink.close()


def _groups(stage: Stage, source: ClosableQueue[Job]) -> Iterator[tuple[Job, ...]]:
    """Yield the groups of frames that a stage processes in one call. A failed frame follows alone, and ends the
    groups."""
    jobs: tuple[Job, ...] = ()
    while (job := source.get()) is not None:
        if job.failed is not None:
            yield from (jobs, (job,)) if jobs else ((job,),)
            return
        jobs = (*jobs, job)
        if len(jobs) == (stage.frames_per_call or 1):
            yield jobs
            jobs = ()
    if jobs and not source.dropped:
        yield jobs


def _do(stage: Stage, jobs: Sequence[Job], claimed: tuple[Any, ...] = ()) -> Sequence[Job]:
    """Run a stage on frames, and return them with its outputs or with the exception that it raised.

    Args:
        claimed: Empty, or the one resource that the stage claimed.
    """
    if jobs[0].failed is not None:
        return jobs
    values = jobs[0].value if stage.frames_per_call is None else [job.value for job in jobs]
    begin = time.perf_counter()
    try:
        outcome = stage.work((*claimed, values) if claimed else values)
    except BaseException as error:
        return [replace(jobs[0], failed=(stage.name, error, len(jobs)))]
    span = StageSpan(stage.name, begin, time.perf_counter())
    values_after = [outcome] if stage.frames_per_call is None else outcome
    return [replace(job, value=value, spans=(*job.spans, span)) for job, value in zip(jobs, values_after, strict=True)]


def _give(jobs: Sequence[Job], sink: ClosableQueue[Job]) -> bool:
    """Put finished frames into the next stage's queue; return whether the stage should process later frames.

    Return False if the queue is closed or a frame failed, since later frames would be dropped.
    """
    return all(sink.put(job) for job in jobs) and jobs[-1].failed is None


def _serve(enter: Callable[[], None], stage: Stage, source: ClosableQueue[Job], sink: ClosableQueue[Job]) -> None:
    enter()
    try:
        for jobs in _groups(stage, source):
            claimed: tuple[Any, ...] = ()
            if stage.claim is not None and jobs[0].failed is None:
                claimed = (stage.claim.get(),)
                if claimed == (None,):
                    return
            if not _give(_do(stage, jobs, claimed), sink):
                return
    finally:
        sink.close()
        source.close(drop=True)


def _serve_at_once(
    enter: Callable[[], None], stage: Stage, source: ClosableQueue[Job], sink: ClosableQueue[Job]
) -> None:
    """Run a stage on up to ``workers`` frames at the same time, and put them into the next queue in their order."""
    enter()
    with ThreadPoolExecutor(stage.workers, stage.name, initializer=enter) as pool:
        begun: ClosableQueue[Any] = ClosableQueue(stage.workers)
        collector = threading.Thread(target=_collect, args=(enter, begun, source, sink), daemon=True)
        collector.start()
        for jobs in _groups(stage, source):
            if not begun.put(pool.submit(_do, stage, jobs)):
                break
        begun.close()
        collector.join()


def _collect(
    enter: Callable[[], None], begun: ClosableQueue[Any], source: ClosableQueue[Job], sink: ClosableQueue[Job]
) -> None:
    enter()
    try:
        while (future := begun.get()) is not None:
            if not _give(future.result(), sink):
                return
    finally:
        sink.close()
        begun.close()
        source.close(drop=True)
