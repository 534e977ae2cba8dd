"""What AXI asks of who sends on a channel, and what this engine promises beside it, looked at cycle by cycle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PAGE = 4096
"""Bytes that no burst crosses the end of."""

Wires = Mapping[str, int]
"""Signal, as ``awvalid``, → its value in a cycle, when all has settled."""

MASTER = {
    "ar": ("araddr", "arlen"),
    "aw": ("awaddr", "awlen"),
    "w": ("wdata", "wstrb", "wlast"),
}
SLAVE = {"b": ("bresp",), "r": ("rdata", "rresp")}
"""Channels that are sent on, and their payload."""


@dataclass
class Stays:
    """VALID and its payload stay until READY."""

    channels: Mapping[str, tuple[str, ...]]
    waiting: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def see(self, wires: Wires) -> None:
        """AssertionError where a channel took its word back, or changed it."""
        for channel, names in self.channels.items():
            payload = tuple(wires[name] for name in names)
            if channel in self.waiting:
                assert wires[f"{channel}valid"], f"{channel.upper()}VALID stays until it is taken"
                assert payload == self.waiting[channel], f"{channel.upper()}: the payload stays until it is taken"
            self.waiting.pop(channel, None)
            if wires[f"{channel}valid"] and not wires[f"{channel}ready"]:
                self.waiting[channel] = payload


def taken(wires: Wires, channel: str) -> bool:
    """Whether a word moves on a channel."""
    return bool(wires[f"{channel}valid"] and wires[f"{channel}ready"])


@dataclass
class Bursts:
    """Of a master. word: bytes of a beat; length: beats of a burst at most; outstanding: bursts of each way."""

    word: int
    length: int
    outstanding: int
    stays: Stays = field(default_factory=lambda: Stays(MASTER))
    lengths: list[int] = field(default_factory=list)
    reads: int = 0
    writes: int = 0
    beats: int = 0

    def see(self, wires: Wires) -> None:
        """AssertionError where a cycle breaks a rule; ``idle`` is the writer's claim."""
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
        """AssertionError where something is still on its way."""
        assert (self.reads, self.writes, self.lengths) == (0, 0, []), "every burst came to its end"


@dataclass
class Answers:
    """Of a slave: an answer to each request, which stays until it is taken."""

    stays: Stays = field(default_factory=lambda: Stays(SLAVE))
    addresses: int = 0
    words: int = 0
    reads: int = 0

    def see(self, wires: Wires) -> None:
        """AssertionError where a cycle breaks a rule."""
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
        """AssertionError where a request has no answer."""
        assert (self.addresses, self.words, self.reads) == (0, 0, 0), "every request is answered"
