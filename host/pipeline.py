"""Stages that work at once on frames that follow each other.

Plain threads do: numpy, Pillow and ctypes give up the interpreter's lock while they work.
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
"""How long the end of a stream waits for the caller's own iterator, which nothing can interrupt."""


MAX_CAUSE_LENGTH = 2000
"""Characters of the sentence of an exception that a stage raised, which may be anybody's and of any length."""


@dataclass(eq=False)
class FrameError(SystolicError):
    """A stage of a stream failed on a frame.

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
    """A frame on its way. ``failed``: the stage and the exception that ended it, and how many frames were in it."""

    index: int
    frame: Any
    value: Any
    spans: tuple[StageSpan, ...] = ()
    failed: tuple[str, BaseException, int] | None = field(default=None, repr=False)


class ClosableQueue(Generic[T]):
    """A bounded queue that can be closed from either end: nobody waits for somebody who is gone."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._items: deque[T] = deque()
        self._closed = False
        self.dropped = False
        self._changed = threading.Condition()

    def put(self, item: T) -> bool:
        """Waits for room; False where the channel is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._items) < self._room)
            if self._closed:
                return False
            self._items.append(item)
            self._changed.notify_all()
            return True

    def get(self) -> T | None:
        """Waits for an item; None where the channel is closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or bool(self._items))
            if not self._items:
                return None
            item = self._items.popleft()
            self._changed.notify_all()
            return item

    def take(self) -> bool:
        """Waits for an item and drops it; False where the channel is closed and empty."""
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
    """``work`` is called with what the stage before gave. workers: how many frames at once, order is kept.

    claim: where a stage with one worker takes something from before it begins on a frame, waiting if there is
    nothing (that is not its work, and not counted as such); ``work`` then gets (what was taken, value).
    together: frames of one call, fewer before the end of the stream or a frame that failed: ``work`` then takes and
    gives a sequence, and what it takes time for is a span of each of them. Such stages that follow each other take the
    same frames together.
    """

    name: str
    work: Callable[[Any], Any]
    workers: int = 1
    claim: ClosableQueue[Any] | None = None
    together: int | None = None


class Flow:
    """Every frame through every stage, in order. ``room``: frames that may wait between two stages.

    in_flight: frames that are taken and not given on, at most; so many of a live source are on their way, and what
    is given is as new as the stages are quick. None for as many as there is room. gate: whose ``close`` stops the flow;
    the stages' threads are inside it to their end.
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
        # Whatever a stage gives together has room, or it would wait for the next one to take it.
        between: list[ClosableQueue[Job]] = [
            ClosableQueue(room),
            *(ClosableQueue(room * (stage.together or 1)) for stage in stages),
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
                args=(self._gate.stay, stage, source, sink),
                name=stage.name,
                daemon=True,
            )
            for stage, source, sink in zip(stages, between, between[1:], strict=False)
        ]
        for thread in (self._feeder, *self._workers):
            thread.start()

    def jobs(self) -> Generator[Job, None, None]:
        """Frames that are through. One that fails ends them: all before it are given first, then FrameError is raised.

        Leaving the iterator early stops the stages, as ``stop`` does.
        """
        try:
            for job in _finished(self._last):
                if self._places is not None:
                    self._places.put(None)
                yield job
        finally:
            self.stop()

    def stop(self) -> None:
        """No stage is at work any more when it returns: what one is at is done, what waits is dropped.

        Any thread but a stage's may call it, and twice; a stage's own thread gets StateError.
        """
        self._gate.check_outside()
        for channel in self._channels:
            channel.close(drop=True)
        for thread in self._workers:
            thread.join()
        if self._feeder is not threading.current_thread():  # which the caller's own iterator runs in
            self._feeder.join(FEED_SECONDS)


def stream(frames: Iterable[Any], stages: Sequence[Stage], room: int = 1) -> Generator[Job, None, None]:
    """The jobs of a ``Flow`` that begins when the first one is taken."""
    yield from Flow(frames, stages, room).jobs()


def _finished(last: ClosableQueue[Job]) -> Iterator[Job]:
    while (job := last.get()) is not None:
        if job.failed is not None:
            stage, cause, count = job.failed
            raise FrameError(job.index, job.frame, stage, cause, count) from cause
        yield job


def _places(count: int | None) -> ClosableQueue[None] | None:
    """One for each frame that may be on its way."""
    if count is None:
        return None
    places: ClosableQueue[None] = ClosableQueue(count)
    for _ in range(count):
        places.put(None)
    return places


def _feed(frames: Iterable[Any], sink: ClosableQueue[Job], places: ClosableQueue[None] | None) -> None:
    """A frame is taken only when there is a place for it: of a live source, the newest then."""
    index = 0
    try:
        source = iter(frames)
        while (places is None or places.take()) and (frame := next(source, _END)) is not _END:
            if not sink.put(Job(index, frame, frame)):
                return
            index += 1
    except BaseException as error:  # of the caller's own iterator; it is raised where the frames are taken
        sink.put(Job(index, None, None, failed=("frames", error, 1)))
    finally:
        sink.close()


def _groups(stage: Stage, source: ClosableQueue[Job]) -> Iterator[tuple[Job, ...]]:
    """As many frames as the stage takes together; one that failed comes alone, after those before it."""
    jobs: tuple[Job, ...] = ()
    while (job := source.get()) is not None:
        if job.failed is not None:
            yield from (jobs, (job,)) if jobs else ((job,),)
            return
        jobs = (*jobs, job)
        if len(jobs) == (stage.together or 1):
            yield jobs
            jobs = ()
    if jobs and not source.dropped:
        yield jobs


def _do(stage: Stage, jobs: Sequence[Job], claimed: tuple[Any, ...] = ()) -> Sequence[Job]:
    """claimed: nothing, or the one thing that the stage took."""
    if jobs[0].failed is not None:
        return jobs
    values = jobs[0].value if stage.together is None else [job.value for job in jobs]
    begin = time.perf_counter()
    try:
        outcome = stage.work((*claimed, values) if claimed else values)
    except BaseException as error:
        return [replace(jobs[0], failed=(stage.name, error, len(jobs)))]
    span = StageSpan(stage.name, begin, time.perf_counter())
    values_after = [outcome] if stage.together is None else outcome
    return [replace(job, value=value, spans=(*job.spans, span)) for job, value in zip(jobs, values_after, strict=True)]


def _give(jobs: Sequence[Job], sink: ClosableQueue[Job]) -> bool:
    """False where nobody takes them, or a frame failed: what follows it would be thrown away."""
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
    """At most ``workers`` frames are begun and not given on; the oldest is given on first."""
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
