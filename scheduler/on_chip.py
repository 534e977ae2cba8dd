"""Which maps stay on chip between two layers: the rules, and what they take of a map buffer (include/map_buffer.h).

There are two buffers, and a pass reads one and writes the other; so any number of maps in a row may stay, one after
the other. A buffer has as many banks as the row buffer, and row y lies in the bank that the reading layer's row buffer
has it in, (y + turn) mod rows with its padding as turn: a word of every row of a group moves in a cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cnn.quantized import QuantizedNetwork, on_host
from scheduler.array import Array
from scheduler.lower import Job, resolve
from scheduler.tile import blocks, ceil_div


@dataclass(frozen=True, eq=False)
class Handover:
    """A map on its way: written by ``job``, read next by ``reader`` (None after the last job)."""

    network: QuantizedNetwork
    job: Job
    reader: Job | None
    readers: int
    array: Array


@dataclass(frozen=True)
class StayRule:
    """sentence: what is required of a map that stays on chip; came: what was found."""

    sentence: str
    holds: Callable[[Handover], bool]
    came: Callable[[Handover], str]


def _next_reads(over: Handover) -> bool:
    return over.reader is not None and over.reader.input == over.job.output


def _straight(over: Handover) -> bool:
    return _next_reads(over) and over.readers == 1


STAY_RULES = (
    StayRule(
        "a map stays on chip for the next layer alone, and the host does not read it",
        _straight,
        lambda o: f"{o.readers} reader(s), the next layer {'is not its only one' if _next_reads(o) else 'is not one'}",
    ),
    StayRule(
        "a map on chip is read with stride 1, because neighbouring rows lie in neighbouring banks",
        lambda o: o.reader is None or o.reader.stride == 1,
        lambda o: f"stride {o.reader.stride if o.reader else 1}",
    ),
    StayRule(
        "a map stays on chip in designs of one frame a batch",
        lambda o: o.job.stacked * o.job.repeats == 1,
        lambda o: f"a batch of {o.job.stacked * o.job.repeats}",
    ),
    StayRule(
        "a bank of a map buffer holds its share of the map's rows",
        lambda o: bank_words(o.network, o.job, o.array) <= o.array.map_depth,
        lambda o: f"{bank_words(o.network, o.job, o.array)} words of map_depth={o.array.map_depth}",
    ),
)


def handovers(network: QuantizedNetwork, jobs: Sequence[Job], array: Array) -> tuple[Handover, ...]:
    """One a job."""
    wanted = [job.input for job in jobs]
    wanted += [resolve(network, i) for node in network.nodes if on_host(node.op) for i in node.inputs]
    after = (*jobs[1:], None)
    return tuple(
        Handover(network, job, reader, wanted.count(job.output), array)
        for job, reader in zip(jobs, after, strict=True)
    )


def hindrances(over: Handover) -> tuple[str, ...]:
    """A sentence for every rule that keeps the map from staying."""
    return tuple(f"{rule.sentence} ({rule.came(over)})" for rule in STAY_RULES if not rule.holds(over))


def keep(network: QuantizedNetwork, jobs: Sequence[Job], array: Array) -> tuple[bool, ...]:
    """Of each job's map whether it may stay on chip."""
    return tuple(not hindrances(over) for over in handovers(network, jobs, array))


def turn_of(reader: Job | None, array: Array) -> int:
    """Row y of the map lies in bank (y + turn) mod rows."""
    return 0 if reader is None else reader.padding.top % array.rows


def bank_words(network: QuantizedNetwork, job: Job, array: Array) -> int:
    """Words of one bank that the job's map takes, rows [row][block][column] in each."""
    rows = ceil_div(job.saved.height, array.rows)
    return rows * blocks(network.nodes[job.output].shape.channels, array) * job.saved.width


def buffers(on_chip: Sequence[bool]) -> tuple[int, ...]:
    """Of each job's map the buffer in which it stays, 1 or 2, never the one that its job reads; 0 where it does not."""
    found: list[int] = []
    for stays in on_chip:
        found.append((2 if found and found[-1] == 1 else 1) if stays else 0)
    return tuple(found)
