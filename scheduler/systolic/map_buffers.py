"""In which of the two map buffers each map on chip lies, and which maps stay where not all can.

A buffer holds one map at a time, from the pass that writes it to the last one that reads it, and a pass never writes
the buffer that it reads. A map that the Saver adds lies in the buffer that is not read, where the sum takes its place:

    x ─┬─ conv ── conv, x added ── z        x in buffer 1, the map between in 2, z in 1 over x
       └────────────┘

A buffer has as many banks as the row buffer, and row y lies in the bank in which the reading layer's row buffer has it,
(y + turn) mod rows with the layer's upper padding as turn: a word of every row of a group moves in a cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from cnn.quantized import QuantizedNetwork
from scheduler.systolic.network.layer import Layer
from scheduler.systolic.on_chip import handovers, hindrances


@dataclass(frozen=True)
class Stay:
    """What the stay of a layer's map depends on. Layers by their numbers.

    may: no rule is against it. reads, adds: whose maps the layer reads and its Saver adds, as they are; None where they
    lie in DDR in any case. last: the last layer that reads or adds its map. padding: rows above it in layers that read
    it, by which its banks are turned; None where Savers alone read it.
    """

    may: bool
    reads: int | None
    adds: int | None
    last: int
    padding: int | None


@dataclass(frozen=True)
class _Held:
    """A map in a buffer: whose it is, and the padding above it where that is known yet."""

    layer: int
    padding: int | None


Held = tuple[_Held | None, _Held | None]
"""What both buffers hold."""

Choices = tuple[tuple[bool, ...], ...]
"""Of each layer whether its map may stay, may not, or both."""


def stays_of(network: QuantizedNetwork, layers: Sequence[Layer]) -> tuple[Stay, ...]:
    """One a layer."""
    maps = handovers(network, layers)
    reads = {reader: handover.number for handover in maps for reader, _ in handover.readers}
    adds = {adder: handover.number for handover in maps for adder in handover.adders}

    def stay_of(number: int) -> Stay:
        handover = maps[number]
        padding = handover.turns[0] if handover.turns else None
        return Stay(not hindrances(handover), reads.get(number), adds.get(number), handover.last, padding)

    return tuple(stay_of(number) for number in range(len(maps)))


def maps_that_stay(stays: Sequence[Stay], room: Sequence[bool], words: Sequence[int]) -> tuple[bool, ...]:
    """Which maps stay, of those that may and that have ``room`` in a buffer: all, or those that spare DDR most
    ``words``. words: of each map, so often as it is written and read."""
    staying = tuple(stay.may and fits for stay, fits in zip(stays, room, strict=True))
    if buffers_of(stays, staying) is not None:
        return staying
    choices = tuple((True, False) if wants else (False,) for wants in staying)
    best = _best(tuple(stays), choices, tuple(words))
    return tuple(buffer > 0 for buffer in best[0])


def buffers_of(stays: Sequence[Stay], on_chip: Sequence[bool]) -> tuple[int, ...] | None:
    """Of each layer's map the buffer in which it lies, 1 or 2, 0 for DDR; None where so many cannot stay."""
    choices = tuple((stays_there,) for stays_there in on_chip)
    buffers, reached = _best(tuple(stays), choices, (0,) * len(choices))
    return buffers if reached == len(choices) else None


def crowded(stays: Sequence[Stay], on_chip: Sequence[bool]) -> int | None:
    """The first layer after which both buffers cannot hold what is to stay; None where they can."""
    choices = tuple((stays_there,) for stays_there in on_chip)
    reached = _best(tuple(stays), choices, (0,) * len(choices))[1]
    return None if reached == len(choices) else reached


def paddings(stays: Sequence[Stay], on_chip: Sequence[bool]) -> tuple[int, ...]:
    """Rows of padding above each map, by which its banks are turned. A sum that takes a map's place lies as that did,
    and a map that only a Saver reads as the sum will."""
    above = [stay.padding for stay in stays]
    pairs = [(n, stay.adds) for n, stay in enumerate(stays) if stay.adds is not None and on_chip[n]]
    for number, other in (*pairs, *reversed(pairs)):
        if other is not None and on_chip[other]:
            above[number] = above[other] if above[number] is None else above[number]
            above[other] = above[number] if above[other] is None else above[other]
    return tuple(padding or 0 for padding in above)


@lru_cache(maxsize=4096)
def _best(stays: tuple[Stay, ...], choices: Choices, words: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """The buffers of all maps that spare most words, and how many layers could be placed at all. Layer after layer,
    with the best way to each state of the buffers."""
    ways: dict[Held, tuple[int, tuple[int, ...]]] = {(None, None): (0, ())}
    for index, options in enumerate(choices):
        reached_states: dict[Held, tuple[int, tuple[int, ...]]] = {}
        for contents, (spared, buffers) in ways.items():
            for target in _targets(contents, options):
                buffers_after = _after(stays, index, contents, target)
                gain = spared + (words[index] if target else 0)
                if buffers_after is not None and (
                    buffers_after not in reached_states or gain > reached_states[buffers_after][0]
                ):
                    reached_states[buffers_after] = (gain, (*buffers, target))
        if not reached_states:
            return (), index
        ways = reached_states
    return max(ways.values(), key=lambda way: way[0])[1], len(choices)


def _targets(contents: Held, options: tuple[bool, ...]) -> tuple[int, ...]:
    """Where a layer may write. Where both buffers are empty they are alike."""
    chip = (1,) if contents == (None, None) else (1, 2)
    return (*(chip if True in options else ()), *((0,) if False in options else ()))


def _after(stays: tuple[Stay, ...], index: int, contents: Held, target: int) -> Held | None:
    """What both buffers hold after a layer that writes ``target``, a buffer or DDR; None where it cannot."""
    stay = stays[index]
    read, added = _buffer_of(contents, stay.reads), _buffer_of(contents, stay.adds)
    if read and read in (added, target):
        return None
    first, second = (_still_read(stays, index, resident) for resident in contents)
    if target == 0:
        return first, second
    written = _written(stay, index, contents[added - 1] if added else None)
    if added not in (0, target) or written is None:
        return None
    place_taken = first if target == 1 else second
    if place_taken is not None:
        return None
    return (written, second) if target == 1 else (first, written)


def _still_read(stays: tuple[Stay, ...], index: int, contents: _Held | None) -> _Held | None:
    """What a buffer holds for layers after ``index``."""
    return contents if contents is not None and stays[contents.layer].last > index else None


def _buffer_of(contents: Held, layer: int | None) -> int:
    """The buffer that holds the layer's map, 0 where none does."""
    return next((number for number, resident in enumerate(contents, 1) if resident and resident.layer == layer), 0)


def _written(stay: Stay, index: int, replaced: _Held | None) -> _Held | None:
    """The layer's map, over the one whose place it takes; None where their rows would lie in different banks."""
    rows_above = {stay.padding, replaced.padding if replaced else None} - {None}
    return None if len(rows_above) > 1 else _Held(index, next(iter(rows_above), None))
