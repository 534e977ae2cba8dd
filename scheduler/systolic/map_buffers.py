"""The places of maps in the two map buffers, and the choice of the maps that stay on chip if not all of them fit.

A map occupies its place from the pass that writes it to the last pass that reads it. The place is the first gap of a
buffer that is large enough. Maps that are stored side by side, for a concat, have one place together. A pass never
writes the buffer that it reads. A map that the Saver adds must be in the other buffer. The sum is then written over
the added map or next to it:

    x ─┬─ conv ── conv, x added ── z        x in buffer 1, the map between in 2, z in 1 over x
       └────────────┘
    x ─┬─ conv ── y ─┬─ concat [y, z]       x in buffer 1, y and z side by side in 2
       └─ conv ── z ─┘

A map buffer and the row buffer have the same number of banks, one per row of the array. Row y of a map is stored in
bank (y + turn) mod rows. The row buffer of a layer with ``turn`` rows of padding above has row y in the same bank. The
row buffer of a layer with less padding starts with another bank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import nlargest

from cnn.quantized import QuantizedNetwork
from scheduler.systolic.network.layer import Layer
from scheduler.systolic.on_chip import Handover, broken_stay_rules, common_rotations, handovers

MAX_STATES = 512
"""The maximum number of states of the buffers that ``_best_placement`` keeps per layer. No known network reaches it."""


@dataclass(frozen=True)
class Stay:
    """The facts about a layer that decide whether its output map stays in a map buffer on chip, and where.

    Layers are identified by their numbers. Maps that are stored side by side form a group, and a map without
    neighbours is a group by itself.

    Attributes:
        is_allowed: Whether the rules allow the layer's map to stay on chip.
        reads: The first layer that writes a map of the group that the layer reads; None for the picture.
        adds: The first layer that writes a map of the group that the layer's Saver adds; None if it adds none.
        last: The last layer that reads, adds or writes a map of the group of the layer's own map.
        bank_rotation: Rows by which the banks of this group are rotated: row y of a map is in bank (y + turn) mod rows.
        first_writer: The first layer that writes a map of this group; None if the group has one map.
    """

    is_allowed: bool
    reads: int | None
    adds: int | None
    last: int
    bank_rotation: int
    first_writer: int | None = None


@dataclass(frozen=True)
class Room:
    """The sizes of all layers' maps, and the depth of the two map buffers on chip.

    Attributes:
        sizes: Per layer, the words of a bank that its map and the maps stored side by side with it take.
        depth: Words of a bank of a map buffer.
    """

    sizes: tuple[int, ...]
    depth: int


@dataclass(frozen=True)
class Place:
    """The location of a feature map on chip: a map buffer and its first word. Maps that are stored side by side share
    it.

    Attributes:
        buffer: The map buffer, 1 or 2; 0 for DDR.
        word: The first word in the banks of the buffer.
    """

    buffer: int
    word: int


IN_DDR = Place(0, 0)


@dataclass(frozen=True)
class _StoredMaps:
    """A map, or maps that are stored side by side, that occupies words of a map buffer.

    Attributes:
        first_writer: The first layer that writes one of the maps.
        word: The first word of the maps in the banks.
        end: The word after the last one.
    """

    first_writer: int
    word: int
    end: int


BufferContents = tuple[tuple[_StoredMaps, ...], tuple[_StoredMaps, ...]]
"""The contents of both buffers, sorted by word."""

Choices = tuple[tuple[bool, ...], ...]
"""The options of each layer: (True,) keeps its map on chip, (False,) stores it in DDR, (True, False) leaves it open."""


@dataclass(frozen=True)
class _Placement:
    """A placement of the maps of the layers so far in the map buffers, and how much DDR traffic it saves.

    Attributes:
        avoided_words: Words that DDR does not have to move.
        places: The place of each layer's map.
    """

    avoided_words: int
    places: tuple[Place, ...]


# --- what depends on the network ----------------------------------------------------------------------------------


def stays_of(network: QuantizedNetwork, layers: Sequence[Layer]) -> tuple[Stay, ...]:
    """Return for each layer the facts that decide whether its output map stays on chip, as a ``Stay``."""
    maps = handovers(network, layers)
    reads = {reader: handover.number for handover in maps for reader, _ in handover.readers}
    adds = {adder: handover.number for handover in maps for adder in handover.adders}
    rotations = _bank_rotations(maps, adds)

    def stay_of(number: int) -> Stay:
        handover = maps[number]
        first = handover.number
        first_writer = first if len(handover.writers) > 1 else None
        is_allowed = not broken_stay_rules(handover)
        return Stay(is_allowed, reads.get(number), adds.get(number), handover.last, rotations[first], first_writer)

    return tuple(stay_of(number) for number in range(len(maps)))


def _bank_rotations(maps: Sequence[Handover], adds: dict[int, int]) -> dict[int, int]:
    """Return, per group of maps, by how many rows its banks in the map buffer are rotated. The key is the group's first
    writer.

    A sum can only be written over the map that is added if both are rotated alike. Therefore both groups get the same
    turn if one exists that is allowed for all readers of both.

    Args:
        maps: The handover of each layer.
        adds: For each layer that adds a map, the first writer of the added map's group.
    """
    group_of = {handover.number: [handover] for handover in maps}
    for number, other in adds.items():
        own, added = group_of[maps[number].number], group_of[other]
        if own is not added and common_rotations(handover.bank_rotations for handover in (*own, *added)) != frozenset():
            merged = [*added, *own]
            group_of |= {handover.number: merged for handover in merged}
    return {number: _bank_rotation(group) for number, group in group_of.items()}


def _bank_rotation(group: Sequence[Handover]) -> int:
    """Return the number of banks by which these maps are rotated: a reader's most rows of padding above, if allowed,
    else the least allowed.

    With this turn, the row buffer of the reader with the most padding starts with bank 0.
    """
    most = max((above for handover in group if (above := handover.most_above) is not None), default=0)
    allowed = common_rotations(handover.bank_rotations for handover in group)
    return most if allowed is None or most in allowed else min(allowed, default=0)


# --- where maps lie -----------------------------------------------------------------------------------------------


def choose_maps_on_chip(stays: Sequence[Stay], room: Room, words: Sequence[int]) -> tuple[bool, ...]:
    """Return for each layer whether its output map stays on chip. If not all fit, the maps that save the most DDR
    traffic stay.

    If the buffers can hold all maps that may stay and that fit a buffer alone, all of them stay. Otherwise the maps
    that spare DDR the most words stay.

    Args:
        stays: The facts about each layer.
        room: The sizes of the maps and of the buffers.
        words: Words that DDR moves for each layer's map if it does not stay: once per write and per read.
    """
    staying = tuple(stay.is_allowed and size <= room.depth for stay, size in zip(stays, room.sizes, strict=True))
    places = places_of(stays, staying, room)
    if places is None:
        choices = tuple((True, False) if wants else (False,) for wants in staying)
        places, _ = _best_placement(tuple(stays), choices, room, tuple(words))
    return tuple(place.buffer > 0 for place in places)


def places_of(stays: Sequence[Stay], on_chip: Sequence[bool], room: Room) -> tuple[Place, ...] | None:
    """Return each layer's place in a map buffer or in DDR; None if the buffers cannot hold all maps of ``on_chip``."""
    places, reached = _placed(stays, on_chip, room)
    return places if reached == len(stays) else None


def first_unplaced(stays: Sequence[Stay], on_chip: Sequence[bool], room: Room) -> int | None:
    """Return the first layer whose map finds no room in the map buffers if all maps of ``on_chip`` stay there; None if
    all do."""
    reached = _placed(stays, on_chip, room)[1]
    return None if reached == len(stays) else reached


def _placed(stays: Sequence[Stay], on_chip: Sequence[bool], room: Room) -> tuple[tuple[Place, ...], int]:
    """Return the places if exactly the maps of ``on_chip`` stay in map buffers, and the number of layers that found
    one."""
    choices = tuple((stays_there,) for stays_there in on_chip)
    return _best_placement(tuple(stays), choices, room, (0,) * len(choices))


@lru_cache(maxsize=4096)
def _best_placement(
    stays: tuple[Stay, ...], choices: Choices, room: Room, words: tuple[int, ...]
) -> tuple[tuple[Place, ...], int]:
    """Return the places of all layers' maps that save the most DDR words, and the number of layers that found a place.

    This is dynamic programming over the layers: for each state of the buffers only the best way to it is kept. The
    places are empty if not all layers could be placed.
    """
    placements: dict[BufferContents, _Placement] = {((), ()): _Placement(0, ())}
    for index, options in enumerate(choices):
        reached: dict[BufferContents, _Placement] = {}
        for contents, placement in placements.items():
            for place in _choices(stays, room, index, contents, options):
                held = _contents_after(stays, room, index, contents, place)
                gain = placement.avoided_words + (words[index] if place.buffer else 0)
                if held not in reached or gain > reached[held].avoided_words:
                    reached[held] = _Placement(gain, (*placement.places, place))
        if not reached:
            return (), index
        placements = dict(nlargest(MAX_STATES, reached.items(), key=lambda pair: pair[1].avoided_words))
    return max(placements.values(), key=lambda placement: placement.avoided_words).places, len(choices)


def _choices(
    stays: tuple[Stay, ...], room: Room, index: int, contents: BufferContents, options: tuple[bool, ...]
) -> list[Place]:
    """Return the places in the map buffers or DDR to which a layer may write its map, given the buffers' contents
    before it."""
    stay = stays[index]
    read, added = _place_of(contents, stay.reads), _place_of(contents, stay.adds)
    if read.buffer and read.buffer == added.buffer:
        return []
    if stay.first_writer in (None, index):
        places = [added] if added.buffer else _free_places(contents, room, index)
        leaves = False in options
    else:
        places = [_place_of(contents, stay.first_writer)]  # the first writer has chosen the place of the group
        leaves = places == [IN_DDR]
    kept = [place for place in places if _may_write(stays, index, read, added, place)] if True in options else []
    return [*kept, IN_DDR] if leaves else kept


def _may_write(stays: tuple[Stay, ...], index: int, read: Place, added: Place, place: Place) -> bool:
    """Return whether a layer may write its map to ``place`` of a map buffer, without overwriting what it or later
    layers read.

    It may not write the buffer that it reads. If it adds a map of a buffer, it may write there in two cases. Its own
    map and the added one are stored side by side. Or the sum replaces the added map: both are alone in their groups,
    have the same turn, and no later layer reads the added map.
    """
    stay = stays[index]
    if place.buffer in (0, read.buffer):
        return False
    if not added.buffer:
        return True
    assert stay.adds is not None
    alone = stay.first_writer is None and stays[stay.adds].first_writer is None
    over = alone and stays[stay.adds].last == index and stays[stay.adds].bank_rotation == stay.bank_rotation
    return stay.adds == stay.first_writer or (place == added and over)


def _free_places(contents: BufferContents, room: Room, index: int) -> list[Place]:
    """Return the first free place in each map buffer that can hold the layer's map. If both are empty, only one place
    is returned."""
    buffers = (1,) if contents == ((), ()) else (1, 2)
    words = [(buffer, _first_free_word(contents[buffer - 1], room.sizes[index])) for buffer in buffers]
    return [Place(buffer, word) for buffer, word in words if word + room.sizes[index] <= room.depth]


def _first_free_word(held: tuple[_StoredMaps, ...], size: int) -> int:
    """Return the first word of the first ``size`` free words of a map buffer, which may follow the last map."""
    word = 0
    for maps in held:
        if word + size <= maps.word:
            break
        word = maps.end
    return word


def _place_of(contents: BufferContents, first_writer: int | None) -> Place:
    """Return the place of the maps whose first writing layer is ``first_writer``; IN_DDR if no map buffer holds
    them."""
    places = (
        Place(number, held.word)
        for number, buffer in enumerate(contents, 1)
        for held in buffer
        if held.first_writer == first_writer
    )
    return next(places, IN_DDR)


def _contents_after(
    stays: tuple[Stay, ...], room: Room, index: int, contents: BufferContents, place: Place
) -> BufferContents:
    """Return the contents of the two map buffers after layer ``index`` has written its map to ``place``.

    Maps without a later reader are dropped.
    """
    first, second = (tuple(held for held in buffer if stays[held.first_writer].last > index) for buffer in contents)
    stay = stays[index]
    if not place.buffer or stay.last <= index or stay.first_writer not in (None, index):
        return first, second
    written = _StoredMaps(index, place.word, place.word + room.sizes[index])
    if place.buffer == 1:
        return _sorted_by_word((*first, written)), second
    return first, _sorted_by_word((*second, written))


def _sorted_by_word(held: tuple[_StoredMaps, ...]) -> tuple[_StoredMaps, ...]:
    return tuple(sorted(held, key=lambda maps: maps.word))
