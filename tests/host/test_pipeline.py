"""Stages at once: order, back-pressure, errors, and nobody left waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from host.pipeline import FEED_SECONDS, Channel, FrameError, Stage, measure, stream


def nap(seconds: float):  # type: ignore[no-untyped-def]
    def work(value: int) -> int:
        time.sleep(seconds)
        return value

    return work


def test_keeps_the_order_with_several_workers() -> None:
    def uneven(value: int) -> int:
        time.sleep(0.004 * (value % 3))
        return value * value

    got = [job.value for job in stream(range(60), [Stage("a", uneven, 4), Stage("b", lambda v: v + 1)])]
    assert got == [value * value + 1 for value in range(60)]


def test_as_fast_as_its_slowest_stage() -> None:
    stages = [Stage("a", nap(0.004)), Stage("b", nap(0.01)), Stage("c", nap(0.006))]
    took = measure([job.spans for job in stream(range(60), stages)], {})
    assert took.bound_by == "b"
    assert took.frames == 60
    assert 0.9 <= took.overlap <= 1.02, str(took)
    assert took.latency >= 0.02


def test_two_workers_halve_a_stage() -> None:
    stages = [Stage("a", nap(0.02), 2), Stage("b", nap(0.002))]
    took = measure([job.spans for job in stream(range(30), stages)], {"a": 2})
    assert took.bound_by == "a"
    assert took.throughput > 1.8 / 0.02, str(took)


def test_takes_no_more_frames_than_it_can_hold() -> None:
    taken = []

    def frames() -> Iterator[int]:
        for value in range(1000):
            taken.append(value)
            yield value

    flow = stream(frames(), [Stage("a", lambda v: v), Stage("b", lambda v: v)])
    next(flow)
    time.sleep(0.1)
    # one in each stage and in each of three channels, one at hand, one that was given
    assert len(taken) <= 7
    flow.close()


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("failing", [0, 17])
def test_a_failing_frame_comes_after_all_before_it(failing: int, workers: int) -> None:
    def work(value: int) -> int:
        if value == failing:
            raise ValueError("it is purple")
        return value

    got: list[int] = []
    flow = (got.append(job.value) for job in stream(range(40), [Stage("a", work, workers), Stage("b", nap(0.001))]))
    with pytest.raises(FrameError, match=f"frame {failing} failed in stage 'a': it is purple") as caught:
        list(flow)
    assert got == list(range(failing))
    assert caught.value.index == failing
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_failing_iterator_is_the_stage_frames() -> None:
    def frames() -> Iterator[int]:
        yield 1
        raise OSError("the camera is gone")

    with pytest.raises(FrameError, match="frame 1 failed in stage 'frames': the camera is gone"):
        list(stream(frames(), [Stage("a", lambda v: v)]))


@pytest.mark.parametrize("workers", [1, 3])
def test_no_thread_outlives_the_stream(workers: int) -> None:
    before = set(threading.enumerate())
    flow = stream(iter(int, 1), [Stage("a", nap(0.001), workers), Stage("b", nap(0.02))])
    next(flow)
    flow.close()
    assert set(threading.enumerate()) <= before


def test_a_stage_that_waits_for_a_claim_is_stopped() -> None:
    free: Channel[str] = Channel(1)
    free.put("only one")
    flow = stream(range(9), [Stage("a", lambda v: v, claim=free)])
    assert next(flow).value == ("only one", 0)
    began = time.perf_counter()
    flow.close()
    assert time.perf_counter() - began < FEED_SECONDS
