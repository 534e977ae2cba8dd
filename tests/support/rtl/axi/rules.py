"""The rules of AXI for the sender on a channel, and the engine's own promises, checked cycle by cycle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PAGE = 4096
"""The bytes of a page, whose end no burst crosses."""

Wires = Mapping[str, int]
"""The settled value of each signal, such as ``awvalid``, in a cycle."""

MASTER = {
    "ar": ("araddr", "arlen"),
    "aw": ("awaddr", "awlen"),
    "w": ("wdata", "wstrb", "wlast"),
}
SLAVE = {"b": ("bresp",), "r": ("rdata", "rresp")}
"""The channels that the master or the slave sends on, with their payload."""


@dataclass
class Stays:
    """The rule that VALID and its payload stay until READY."""

    channels: Mapping[str, tuple[str, ...]]
    waiting: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def see(self, wires: Wires) -> None:
        """Assert that no channel withdrew or changed its word in this cycle."""
        for channel, names in self.channels.items():
            payload = tuple(wires[name] for name in names)
            if channel in self.waiting:
                assert wires[f"{channel}valid"], f"{channel.upper()}VALID stays until it is taken"
                assert payload == self.waiting[channel], f"{channel.upper()}: the payload stays until it is taken"
            self.waiting.pop(channel, None)
            if wires[f"{channel}valid"] and not wires[f"{channel}ready"]:
                self.waiting[channel] = payload


def taken(wires: Wires, channel: str) -> bool:
    """Return whether a word is transferred on a channel."""
    return bool(wires[f"{channel}valid"] and wires[f"{channel}ready"])


@dataclass
class Bursts:
    """The rules of a master.

    Attributes:
        word: The bytes of a beat.
        length: The most beats of a burst.
        outstanding: The most unanswered bursts in each direction.
        stays: The rule of VALID for the master's channels.
        lengths: The beats of the write bursts whose data is not complete.
        reads: The unanswered read bursts.
        writes: The unanswered write bursts.
        beats: The beats of the current write burst so far.
    """

    word: int
    length: int
    outstanding: int
    stays: Stays = field(default_factory=lambda: Stays(MASTER))
    lengths: list[int] = field(default_factory=list)
    reads: int = 0
    writes: int = 0
    beats: int = 0

    def see(self, wires: Wires) -> None:
        """Assert that a cycle keeps the rules. ``idle`` is the writer's own signal."""
        self.stays.see(wires)
        if wires["idle"]:
            assert self.writes == 0, "idle only where every burst is answered"
        if taken(wires, "w"):
            self._beat(bool(wires["wlast"]))
        if taken(wires, "b"):
            self.writes -= 1
            assert self.writes >= 0, "an answer for every burst, and no more"
        if taken(wires, "r") and wires["rlast"]:
            self.reads -= 1
        for channel in ("ar", "aw"):
            if taken(wires, channel):
                self._burst(wires[f"{channel}addr"], wires[f"{channel}len"] + 1)
        self.reads += taken(wires, "ar")
        if taken(wires, "aw"):
            self.writes += 1
            self.lengths.append(wires["awlen"] + 1)
        assert self.reads <= self.outstanding, f"at most {self.outstanding} reads are on their way"
        assert self.writes <= self.outstanding, f"at most {self.outstanding} writes are on their way"

    def _burst(self, address: int, beats: int) -> None:
        assert address % self.word == 0, "a burst begins with a whole word"
        assert address // PAGE == (address + beats * self.word - 1) // PAGE, "no burst crosses 4 KB"
        assert beats <= self.length, f"a burst has at most {self.length} beats"

    def _beat(self, last: bool) -> None:
        assert self.lengths, "data only of a burst that was asked for"
        self.beats += 1
        assert last == (self.beats == self.lengths[0]), "WLAST with the last beat, and no other"
        if last:
            self.lengths.pop(0)
            self.beats = 0

    def end(self) -> None:
        """Assert that no burst is unanswered at the end."""
        assert (self.reads, self.writes, self.lengths) == (0, 0, []), "every burst came to its end"


@dataclass
class Answers:
    """The rules of a slave: every request has one answer, which stays until it is taken."""

    stays: Stays = field(default_factory=lambda: Stays(SLAVE))
    addresses: int = 0
    words: int = 0
    reads: int = 0

    def see(self, wires: Wires) -> None:
        """Assert that a cycle keeps the rules."""
        self.stays.see(wires)
        if wires["bvalid"]:
            assert self.addresses > 0 < self.words, "an answer only to an address and its word"
        if wires["rvalid"]:
            assert self.reads > 0, "data only where they were asked for"
        answered = taken(wires, "b")
        self.addresses += taken(wires, "aw") - answered
        self.words += taken(wires, "w") - answered
        self.reads += taken(wires, "ar") - taken(wires, "r")

    def end(self) -> None:
        """Assert that every request has its answer at the end."""
        assert (self.addresses, self.words, self.reads) == (0, 0, 0), "every request is answered"
