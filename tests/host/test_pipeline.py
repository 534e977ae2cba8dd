"""Stages that run at the same time: order, back-pressure, errors, and no thread that waits for ever."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from boards.errors import StateError
from host.pipeline import FEED_SECONDS, MAX_CAUSE_LENGTH, ClosableQueue, Flow, FrameError, Stage, stream
from host.vision.frame import StageSpan, measure
from tests.support.errors import raises

PATIENCE = 30.0
"""Seconds that a stage waits for another before the test fails."""


def nap(seconds: float):  # type: ignore[no-untyped-def]
    def work(value: int) -> int:
        time.sleep(seconds)
        return value

    return work


def test_stream_with_several_workers_keeps_the_order() -> None:
    def uneven(value: int) -> int:
        time.sleep(0.004 * (value % 3))
        return value * value

    got = [job.value for job in stream(range(60), [Stage("a", uneven, 4), Stage("b", lambda v: v + 1)])]
    assert got == [value * value + 1 for value in range(60)]


def test_stream_stages_work_at_once_on_consecutive_frames() -> None:
    """Make each stage wait for both others: frame n + 2 is in the first stage while frame n is in the last."""
    frames = 40
    together = threading.Barrier(3, timeout=PATIENCE)

    def stage(name: str, late: int) -> Stage:
        def work(value: int) -> int:
            if 2 <= value + late < frames:
                together.wait()
            return value

        return Stage(name, work)

    jobs = list(stream(range(frames), [stage("a", 0), stage("b", 1), stage("c", 2)]))
    assert [job.value for job in jobs] == list(range(frames))
    took = measure([job.spans for job in jobs], {})
    assert took.frames == frames


def most_in_flight(in_flight: int | None) -> int:
    """Return the largest number of frames that were taken from the source and not yet returned."""
    taken = most = 0

    def source() -> Iterator[int]:
        nonlocal taken
        for value in range(40):
            taken += 1
            yield value

    stages = [Stage("resize", nap(0), 2), Stage("accelerate", nap(0.002)), Stage("decode", nap(0))]
    for given, _ in enumerate(Flow(source(), stages, in_flight=in_flight).jobs()):
        time.sleep(0.001)
        most = max(most, taken - given - 1)
    assert taken == 40
    return most


def test_flow_in_flight_limits_the_frames() -> None:
    assert most_in_flight(2) == 2
    assert most_in_flight(1) == 1
    assert most_in_flight(None) > 3


def test_spans_of_stages_are_as_long_as_the_work() -> None:
    naps = {"a": 0.002, "b": 0.03, "c": 0.004}
    for job in stream(range(20), [Stage(name, nap(seconds)) for name, seconds in naps.items()]):
        assert [span.stage for span in job.spans] == ["a", "b", "c"]
        assert all(span.seconds >= naps[span.stage] for span in job.spans)
        assert all(before.end <= after.begin for before, after in pairwise(job.spans))


def test_measure_bound_is_the_slowest_stage() -> None:
    spans = [
        (StageSpan("a", i, i + 0.2), StageSpan("b", i + 0.3, i + 1.2), StageSpan("c", i + 1.3, i + 1.7))
        for i in range(3)
    ]
    took = measure(spans, {})
    assert took.bound_by == "b"
    assert took.latency == pytest.approx(1.7)
    assert measure(spans, {"b": 3}).bound_by == "c"  # three workers of b take a third of the time each


def test_stream_two_workers_take_two_frames_at_once() -> None:
    together = threading.Barrier(2, timeout=PATIENCE)

    def work(value: int) -> int:
        together.wait()
        return value

    jobs = list(stream(range(16), [Stage("a", work, 2), Stage("b", nap(0.002))]))
    assert [job.value for job in jobs] == list(range(16))


def test_measure_throughput_is_of_the_steady_state() -> None:
    spans = [(StageSpan("a", i, i + 0.5), StageSpan("b", i + 1.0, i + 4.0)) for i in range(3)]
    took = measure(spans, {"a": 2})
    assert took.throughput == 1.0  # three ends, a second apart
    assert took.latency == 4.0
    assert took.busy == {"a": 0.25, "b": 3.0}
    assert took.overlap == 3.0  # three frames at once in b, which has one worker: real spans do not overlap so
    with raises(StateError, subject="the stream"):
        measure([], {})


def test_stream_takes_no_more_frames_than_it_can_hold() -> None:
    taken = []

    def frames() -> Iterator[int]:
        for value in range(1000):
            taken.append(value)
            yield value

    flow = stream(frames(), [Stage("a", lambda v: v), Stage("b", lambda v: v)])
    next(flow)
    time.sleep(0.1)
    # one in each stage and in each of three channels, one ready, one returned
    assert len(taken) <= 7
    flow.close()


def test_stream_workers_begin_no_more_than_the_next_stage_holds() -> None:
    begun: list[int] = []
    flow = stream(range(1000), [Stage("a", begun.append, 2)])
    next(flow)
    time.sleep(0.1)
    # two begun, one about to begin, one ready, one in the channel, one returned
    assert len(begun) <= 6
    flow.close()


def test_failed_frame_skips_later_stages() -> None:
    seen: list[int] = []
    stages = [Stage("a", lambda value: 1 // (2 - value)), Stage("b", seen.append)]
    with raises(FrameError, index=2, frame=2, stage="a", count=1):
        list(stream(range(4), stages))
    assert len(seen) == 2


def test_failed_frame_waits_for_no_claim() -> None:
    free: ClosableQueue[str] = ClosableQueue(1)
    free.put("only one, and never given back")
    stages = [Stage("a", lambda value: 1 // (1 - value)), Stage("b", lambda value: value, claim=free)]
    failed: list[FrameError] = []

    def take() -> None:
        try:
            list(stream(range(2), stages))
        except FrameError as error:
            failed.append(error)

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert [(error.index, error.stage, type(error.cause)) for error in failed] == [(1, "a", ZeroDivisionError)]
    assert str(failed[0]) == "frame 1 failed in stage 'a': integer division or modulo by zero"


def test_frame_error_names_the_file_and_is_short() -> None:
    cause = ValueError("x" * 10_000)
    for frame, named in ((Path("a/b.png"), " (a/b.png)"), ("c.png", " (c.png)"), (b"d", " (b'd')"), (7, "")):
        sentence = str(FrameError(4, frame, "resize", cause))
        assert sentence.startswith(f"frame 4{named} failed in stage 'resize': xxx")
        assert len(sentence) < MAX_CAUSE_LENGTH + 80
    assert str(FrameError(3, None, "b", ValueError("no"), 3)) == "frames 3…5 failed in stage 'b': no"


def test_close_does_not_wait_for_an_endless_iterator() -> None:
    gone = threading.Event()

    ended: list[int] = []

    def frames() -> Iterator[int]:
        yield 1
        gone.wait(PATIENCE)
        ended.append(1)

    flow = stream(frames(), [Stage("a", lambda value: value)])
    next(flow)
    flow.close()
    assert not ended
    gone.set()


def test_failed_frame_is_raised_after_all_earlier_frames() -> None:
    for failing, workers in ((0, 1), (0, 3), (17, 1), (17, 3)):
        got: list[int] = []
        with raises(FrameError, index=failing, frame=failing, stage="a", count=1) as caught:
            stages = [Stage("a", fail_at(failing), workers), Stage("b", nap(0.001))]
            got.extend(job.value for job in stream(range(40), stages))
        assert got == list(range(failing))
        assert caught.value.__cause__ is caught.value.cause
        assert isinstance(caught.value.cause, ValueError)


class Nothing:
    """An iterable that gives no iterator."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __iter__(self) -> Iterator[int]:
        raise self.error


def test_source_without_iterator_fails_in_stage_frames() -> None:
    for error in (ValueError("no frames"), SystemExit(3)):
        ended: list[FrameError] = []

        def take(error: BaseException = error, ended: list[FrameError] = ended) -> None:
            with raises(FrameError, index=0, stage="frames") as failed:
                list(stream(Nothing(error), [Stage("double", lambda x: 2 * x)]))
            ended.append(failed.value)

        taking = threading.Thread(target=take, daemon=True)
        taking.start()
        taking.join(60)
        assert [failure.cause for failure in ended] == [error], "the stream waits for frames that nobody gives"


def test_source_that_fails_is_an_error_of_stage_frames() -> None:
    def frames() -> Iterator[int]:
        yield 1
        raise OSError("the camera is gone")

    with raises(FrameError, index=1, frame=None, stage="frames"):
        list(stream(frames(), [Stage("a", lambda v: v)]))


def test_stream_end_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    for workers in (1, 3):
        flow = stream(iter(int, 1), [Stage("a", nap(0.001), workers), Stage("b", nap(0.02))])
        next(flow)
        flow.close()
        assert set(threading.enumerate()) <= before


def test_close_stops_a_stage_that_waits_for_a_claim() -> None:
    free: ClosableQueue[str] = ClosableQueue(1)
    free.put("only one")
    flow = stream(range(9), [Stage("a", lambda v: v, claim=free)])
    assert next(flow).value == ("only one", 0)
    flow.close()  # would wait for ever


# --- frames together ---------------------------------------------------------------------------------------


def fail_at(*bad: int):  # type: ignore[no-untyped-def]
    def work(value: int) -> int:
        if value in bad:
            raise ValueError(f"no {value}")
        return value

    return work


def test_batch_frames_are_processed_together_and_returned_singly() -> None:
    for workers in (1, 2):
        check_together(workers)


def check_together(workers: int) -> None:
    calls = []

    def both(values: list[int]) -> list[int]:
        calls.append(list(values))
        return [value * len(values) for value in values]

    stages = [
        Stage("a", nap(0.001), 2),
        Stage("b", both, workers, frames_per_call=3),
        Stage("c", lambda value: value + 1),
    ]
    jobs = list(stream(range(8), stages))
    assert [job.index for job in jobs] == list(range(8))
    assert [job.value for job in jobs] == [3 * value + 1 for value in range(6)] + [13, 15]
    assert sorted(calls) == [[0, 1, 2], [3, 4, 5], [6, 7]]
    assert [len({job.spans[at] for job in jobs}) for at in range(3)] == [8, 3, 8]
    assert calls[0] == [0, 1, 2]


def test_batch_claim_is_made_once() -> None:
    free: ClosableQueue[str] = ClosableQueue(2)
    free.put("x")
    free.put("y")

    def claim(taken: tuple[str, list[int]]) -> list[tuple[str, int]]:
        one, values = taken
        return [(one, value) for value in values]

    jobs = stream(range(3), [Stage("a", claim, claim=free, frames_per_call=2)])
    assert [job.value for job in jobs] == [("x", 0), ("x", 1), ("y", 2)]


def test_batch_frames_before_a_failed_one_are_returned() -> None:
    same = Stage("b", lambda values: values, frames_per_call=3)
    for bad in range(6):
        for stages in ([Stage("a", fail_at(bad)), same, same], [same, same, Stage("a", fail_at(bad))]):
            given: list[int] = []
            with raises(FrameError, index=bad, frame=bad, stage="a", count=1):
                given.extend(job.value for job in stream(range(20), stages))
            assert given == list(range(bad))


def test_batch_frames_fail_together() -> None:
    def work(values: list[int]) -> list[int]:
        return [fail_at(4)(value) for value in values]

    given: list[int] = []
    with raises(FrameError, index=3, frame=3, stage="b", count=3):
        given.extend(job.value for job in stream(range(20), [Stage("b", work, frames_per_call=3)]))
    assert given == [0, 1, 2]


def test_batch_that_is_incomplete_is_dropped_at_close() -> None:
    calls = []
    wait = threading.Event()

    def frames() -> Iterator[int]:
        yield from range(5)
        wait.wait(FEED_SECONDS)

    def work(values: list[int]) -> list[int]:
        calls.append(list(values))
        return values

    flow = stream(frames(), [Stage("a", work, frames_per_call=4)])
    assert [next(flow).value for _ in range(4)] == [0, 1, 2, 3]
    time.sleep(0.05)  # frame 4 waits for three more
    flow.close()
    wait.set()
    assert calls == [[0, 1, 2, 3]]


def test_batch_does_not_wait_for_the_one_before() -> None:
    """Make stage b wait until stage c has the batch before, and stage c until stage b has the next batch."""
    batches = 12
    together = threading.Barrier(2, timeout=PATIENCE)

    def both(values: list[int]) -> list[int]:
        if values[0] > 0:
            together.wait()
        return values

    def last(value: int) -> int:
        if value % 3 == 0 and value < 3 * (batches - 1):
            together.wait()
        return value

    stages = [Stage("a", nap(0.001)), Stage("b", both, frames_per_call=3), Stage("c", last)]
    jobs = list(stream(range(3 * batches), stages))
    assert [job.value for job in jobs] == list(range(3 * batches))
    assert measure([job.spans for job in jobs], {}).first == 3


def test_measure_of_batches_counts_frames() -> None:
    batches = [(StageSpan("a", 4.0 * at, 4.0 * at + 3), at) for at in range(3)]
    spans = [
        (one, StageSpan("b", 4.0 * at + 3 + n / 4, 4.0 * at + 3.25 + n / 4)) for one, at in batches for n in range(2)
    ]
    took = measure(spans[:-1], {})  # the last batch has one frame
    assert (took.frames, took.first) == (5, 2)
    assert took.throughput == 3 / (11.25 - 3.5)
    assert took.busy == {"a": 9 / 5, "b": 0.25}
    assert took.overlap == pytest.approx(3 / (11.25 - 3.5) * 9 / 5)
    assert took.latency == (3.25 * 3 + 3.5 * 2) / 5
