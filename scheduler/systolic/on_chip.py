"""Which maps stay on chip between two layers: the rules, and what they take of a map buffer (include/map_buffer.h).

There are two buffers, and a pass reads one and writes the other; so any number of maps in a row may stay, one after
the other. A buffer has as many banks as the row buffer, and row y lies in the bank that the reading layer's row buffer
has it in, (y + turn) mod rows with its padding as turn: a word of every row of a group moves in a cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cnn.quantized import QuantizedNetwork, on_host
from scheduler.systolic.array import Array
from scheduler.systolic.layers import Job, resolve
from scheduler.systolic.work import map_words, work_of


@dataclass(frozen=True, eq=False)
class Handover:
    """A map on its way: written by ``job``, the next job is ``reader`` (None after the last); readers: of the map."""

    job: Job
    reader: Job | None
    readers: int

    @property
    def next_reads(self) -> bool:
        return self.reader is not None and self.reader.input == self.job.output

    @property
    def frames(self) -> int:
        return self.job.stacked * self.job.repeats


@dataclass(frozen=True)
class StayRule:
    """sentence: what is required of a map that stays on chip; came: what was found."""

    sentence: str
    holds: Callable[[Handover], bool]
    came: Callable[[Handover], str]


def _readers(over: Handover) -> str:
    if over.reader is None:
        return "it is the last one's"
    return f"{over.readers} reader(s), the next layer {'is not its only one' if over.next_reads else 'is not one'}"


STAY_RULES = (
    StayRule(
        "a map stays on chip for the next layer alone, and the host does not read it",
        lambda o: o.next_reads and o.readers == 1,
        _readers,
    ),
    StayRule(
        "a map on chip is read with stride 1, because neighbouring rows lie in neighbouring banks",
        lambda o: o.reader is None or o.reader.stride == 1,
        lambda o: f"stride {o.reader.stride if o.reader else 1}",
    ),
    StayRule(
        "a map stays on chip in designs of one frame a batch",
        lambda o: o.frames == 1,
        lambda o: f"a batch of {o.frames}",
    ),
)


def handovers(network: QuantizedNetwork, jobs: Sequence[Job]) -> tuple[Handover, ...]:
    """One a job."""
    wanted = [job.input for job in jobs]
    wanted += [resolve(network, i) for node in network.nodes if on_host(node.op) for i in node.inputs]
    after = (*jobs[1:], None)
    return tuple(Handover(job, reader, wanted.count(job.output)) for job, reader in zip(jobs, after, strict=True))


def hindrances(over: Handover) -> tuple[str, ...]:
    """A sentence for every rule that keeps the map from staying, whatever room there is."""
    return tuple(f"{rule.sentence} ({rule.came(over)})" for rule in STAY_RULES if not rule.holds(over))


def may_stay(network: QuantizedNetwork, jobs: Sequence[Job]) -> tuple[bool, ...]:
    """Of each job's map whether it may stay where there is room."""
    return tuple(not hindrances(over) for over in handovers(network, jobs))


def keep(network: QuantizedNetwork, jobs: Sequence[Job], array: Array) -> tuple[bool, ...]:
    """Of each job's map whether it stays in the map buffers of ``array``: all stay that may and fit."""
    sizes = [map_words(work_of(network, job, array), array.rows) for job in jobs]
    return tuple(may and size <= array.map_depth for may, size in zip(may_stay(network, jobs), sizes, strict=True))


def turn_of(reader: Job | None, array: Array) -> int:
    """Row y of the map lies in bank (y + turn) mod rows."""
    return 0 if reader is None else reader.padding.top % array.rows


def buffers(on_chip: Sequence[bool]) -> tuple[int, ...]:
    """Of each job's map the buffer in which it stays, 1 or 2, never the one that its job reads; 0 where it does not."""
    found: list[int] = []
    for stays in on_chip:
        found.append((2 if found and found[-1] == 1 else 1) if stays else 0)
    return tuple(found)
