"""Where in the two map buffers each map on chip lies, and which maps stay where not all can.

A map has its place from the pass that writes it to the last one that reads it, in the first gap of a buffer that is
large enough; maps that lie side by side have one place together. A pass never writes the buffer that it reads. A map
that the Saver adds lies in the buffer that is not read, where the sum takes its place or lies beside it:

    x ─┬─ conv ── conv, x added ── z        x in buffer 1, the map between in 2, z in 1 over x
       └────────────┘
    x ─┬─ conv ── y ─┬─ concat [y, z]       x in buffer 1, y and z side by side in 2
       └─ conv ── z ─┘

A buffer has as many banks as the row buffer. Row y lies in bank (y + turn) mod rows, where the row buffer of a layer
has it with so many rows of padding above; the row buffer of a layer with fewer begins with another bank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import nlargest

from cnn.quantized import QuantizedNetwork
from scheduler.systolic.network.layer import Layer
from scheduler.systolic.on_chip import Handover, common_turns, handovers, hindrances

MOST_STATES = 512
"""Ways to fill the buffers that are followed from a layer to the next: no network that is known has as many."""


@dataclass(frozen=True)
class Stay:
    """What the stay of a layer's map on chip depends on. Layers are named by their numbers.

    Attributes:
        may: Whether no rule forbids it.
        reads: The first layer that writes one of the maps, stored side by side, that the layer reads; None for the
            picture.
        adds: The same of the maps that its Saver adds.
        last: The last layer that reads, adds or writes one of the maps stored side by side with its own.
        turn: Rows by which the banks of these maps are rotated.
        beside: The first layer that writes one of these maps, if there are several.
    """

    may: bool
    reads: int | None
    adds: int | None
    last: int
    turn: int
    beside: int | None = None


@dataclass(frozen=True)
class Room:
    """sizes: of each layer's map and those beside it, words of a bank. depth: words of a bank of a buffer."""

    sizes: tuple[int, ...]
    depth: int


@dataclass(frozen=True)
class Place:
    """buffer: 1 or 2, 0 for DDR; word: of its banks, where the map and those beside it begin."""

    buffer: int
    word: int


IN_DDR = Place(0, 0)


@dataclass(frozen=True)
class _Held:
    """Maps in a buffer: the first layer that writes one of them, and their words of a bank."""

    first_writer: int
    word: int
    end: int


Held = tuple[tuple[_Held, ...], tuple[_Held, ...]]
"""What both buffers hold, in the order in which it lies."""

Choices = tuple[tuple[bool, ...], ...]
"""Of each layer whether its map may stay, may not, or both."""


@dataclass(frozen=True)
class _Way:
    """A way to fill the buffers. spared: words that DDR does not move."""

    spared: int
    places: tuple[Place, ...]


# --- what depends on the network ----------------------------------------------------------------------------------


def stays_of(network: QuantizedNetwork, layers: Sequence[Layer]) -> tuple[Stay, ...]:
    """One a layer."""
    maps = handovers(network, layers)
    reads = {reader: handover.number for handover in maps for reader, _ in handover.readers}
    adds = {adder: handover.number for handover in maps for adder in handover.adders}
    turns = _turns(maps, adds)

    def stay_of(number: int) -> Stay:
        handover = maps[number]
        first = handover.number
        beside = first if len(handover.writers) > 1 else None
        may = not hindrances(handover)
        return Stay(may, reads.get(number), adds.get(number), handover.last, turns[first], beside)

    return tuple(stay_of(number) for number in range(len(maps)))


def _turns(maps: Sequence[Handover], adds: dict[int, int]) -> dict[int, int]:
    """First writer → rows by which the banks of its maps are turned. A sum that takes a map's place lies as that did:
    both have the same turn where there is one that all who read either take."""
    group_of = {handover.number: [handover] for handover in maps}
    for number, other in adds.items():
        own, added = group_of[maps[number].number], group_of[other]
        if own is not added and common_turns(handover.turns for handover in (*own, *added)) != frozenset():
            joined = [*added, *own]
            group_of |= {handover.number: joined for handover in joined}
    return {number: _turn(group) for number, group in group_of.items()}


def _turn(group: Sequence[Handover]) -> int:
    """Of those that are allowed, that of the layer with most padding; the least where that is not allowed."""
    most = max((above for handover in group if (above := handover.most_above) is not None), default=0)
    allowed = common_turns(handover.turns for handover in group)
    return most if allowed is None or most in allowed else min(allowed, default=0)


# --- where maps lie -----------------------------------------------------------------------------------------------


def maps_that_stay(stays: Sequence[Stay], room: Room, words: Sequence[int]) -> tuple[bool, ...]:
    """Which maps stay, of those that may and for which a buffer is deep enough: all, or those that spare DDR most
    ``words``. words: of each map, so often as it is written and read."""
    staying = tuple(stay.may and size <= room.depth for stay, size in zip(stays, room.sizes, strict=True))
    places = places_of(stays, staying, room)
    if places is None:
        choices = tuple((True, False) if wants else (False,) for wants in staying)
        places, _ = _best(tuple(stays), choices, room, tuple(words))
    return tuple(place.buffer > 0 for place in places)


def places_of(stays: Sequence[Stay], on_chip: Sequence[bool], room: Room) -> tuple[Place, ...] | None:
    """Of each layer's map where it lies; None where so many cannot stay."""
    places, reached = _placed(stays, on_chip, room)
    return places if reached == len(stays) else None


def crowded(stays: Sequence[Stay], on_chip: Sequence[bool], room: Room) -> int | None:
    """The first layer after which both buffers cannot hold what is to stay; None where they can."""
    reached = _placed(stays, on_chip, room)[1]
    return None if reached == len(stays) else reached


def _placed(stays: Sequence[Stay], on_chip: Sequence[bool], room: Room) -> tuple[tuple[Place, ...], int]:
    choices = tuple((stays_there,) for stays_there in on_chip)
    return _best(tuple(stays), choices, room, (0,) * len(choices))


@lru_cache(maxsize=4096)
def _best(
    stays: tuple[Stay, ...], choices: Choices, room: Room, words: tuple[int, ...]
) -> tuple[tuple[Place, ...], int]:
    """The places of all maps that spare most words, and how many layers could be placed at all. Layer after layer,
    with the best way to each state of the buffers."""
    ways: dict[Held, _Way] = {((), ()): _Way(0, ())}
    for index, options in enumerate(choices):
        reached: dict[Held, _Way] = {}
        for contents, way in ways.items():
            for place in _choices(stays, room, index, contents, options):
                held = _after(stays, room, index, contents, place)
                gain = way.spared + (words[index] if place.buffer else 0)
                if held not in reached or gain > reached[held].spared:
                    reached[held] = _Way(gain, (*way.places, place))
        if not reached:
            return (), index
        ways = dict(nlargest(MOST_STATES, reached.items(), key=lambda pair: pair[1].spared))
    return max(ways.values(), key=lambda way: way.spared).places, len(choices)


def _choices(stays: tuple[Stay, ...], room: Room, index: int, contents: Held, options: tuple[bool, ...]) -> list[Place]:
    """Where a layer may write its map."""
    stay = stays[index]
    read, added = _place_of(contents, stay.reads), _place_of(contents, stay.adds)
    if read.buffer and read.buffer == added.buffer:
        return []
    if stay.beside in (None, index):
        places = [added] if added.buffer else _gaps(contents, room, index)
        leaves = False in options
    else:
        places = [_place_of(contents, stay.beside)]  # where those beside it lie
        leaves = places == [IN_DDR]
    kept = [place for place in places if _may_write(stays, index, read, added, place)] if True in options else []
    return [*kept, IN_DDR] if leaves else kept


def _may_write(stays: tuple[Stay, ...], index: int, read: Place, added: Place, place: Place) -> bool:
    """Whether a layer may write there: not the buffer that it reads; where it adds a map of that buffer, beside that
    or, where nothing lies beside either and nobody reads the map any more, in its place."""
    stay = stays[index]
    if place.buffer in (0, read.buffer):
        return False
    if not added.buffer:
        return True
    assert stay.adds is not None
    alone = stay.beside is None and stays[stay.adds].beside is None
    over = alone and stays[stay.adds].last == index and stays[stay.adds].turn == stay.turn
    return stay.adds == stay.beside or (place == added and over)


def _gaps(contents: Held, room: Room, index: int) -> list[Place]:
    """Of each buffer the first gap in which the maps of a layer fit; where both are empty they are alike."""
    buffers = (1,) if contents == ((), ()) else (1, 2)
    words = [(buffer, _first_gap(contents[buffer - 1], room.sizes[index])) for buffer in buffers]
    return [Place(buffer, word) for buffer, word in words if word + room.sizes[index] <= room.depth]


def _first_gap(held: tuple[_Held, ...], size: int) -> int:
    word = 0
    for maps in held:
        if word + size <= maps.word:
            break
        word = maps.end
    return word


def _place_of(contents: Held, first_writer: int | None) -> Place:
    """Where the maps lie of which that layer writes the first; in DDR where no buffer holds them."""
    places = (
        Place(number, held.word)
        for number, buffer in enumerate(contents, 1)
        for held in buffer
        if held.first_writer == first_writer
    )
    return next(places, IN_DDR)


def _after(stays: tuple[Stay, ...], room: Room, index: int, contents: Held, place: Place) -> Held:
    """What both buffers hold for layers behind one that writes there."""
    first, second = (tuple(held for held in buffer if stays[held.first_writer].last > index) for buffer in contents)
    stay = stays[index]
    if not place.buffer or stay.last <= index or stay.beside not in (None, index):
        return first, second
    written = _Held(index, place.word, place.word + room.sizes[index])
    if place.buffer == 1:
        return _in_order((*first, written)), second
    return first, _in_order((*second, written))


def _in_order(held: tuple[_Held, ...]) -> tuple[_Held, ...]:
    return tuple(sorted(held, key=lambda maps: maps.word))
