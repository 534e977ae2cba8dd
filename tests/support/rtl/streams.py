"""Streams of words into and out of a module under Verilator, with random gaps on every valid and ready."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.support.rtl.bench import Bench

PATIENCE = 4000  # the most cycles of a run


class Stream:
    """Words for an input of an instance. Each one is offered until it is taken, with random gaps."""

    def __init__(self, bench: Bench, instance: str, names: tuple[str, str, str], words: Sequence[int]) -> None:
        self.bench, self.instance = bench, instance
        self.valid, self.ready, self.data = names
        self.words, self.offered = list(words), False

    def offer(self, dice: random.Random, gaps: float) -> None:
        self.offered = bool(self.words) and (self.offered or dice.random() >= gaps)
        word = self.words[0] if self.offered else dice.getrandbits(32)
        self.bench.put(self.instance, {self.valid: int(self.offered), self.data: word})

    def move(self) -> None:
        if self.offered and self.bench.get(self.instance, self.ready):
            self.words.pop(0)
            self.offered = False


class Sink:
    """Words from an output of an instance."""

    def __init__(self, bench: Bench, instance: str, names: tuple[str, str, str]) -> None:
        self.bench, self.instance = bench, instance
        self.valid, self.ready, self.data = names
        self.words: list[int] = []
        self.waiting: int | None = None

    def move(self, ready: bool) -> None:
        valid, word = self.bench.get(self.instance, self.valid), self.bench.get(self.instance, self.data)
        if self.waiting is not None:
            assert (valid, word) == (1, self.waiting), "a word stays until it is taken"
        self.waiting = word if valid and not ready else None
        if valid and ready:
            self.words.append(word)


def drive(bench: Bench, streams: Sequence[Stream], sink: Sink, count: int, seed: int, gaps: float = 0.4) -> list[int]:
    """Return ``count`` words of the sink, after all words of the streams are taken."""
    dice = random.Random(seed)
    for _ in range(PATIENCE):
        for stream in streams:
            stream.offer(dice, gaps)
        ready = dice.random() >= gaps
        bench.put(sink.instance, {sink.ready: int(ready)})
        bench.settle()
        for stream in streams:
            stream.move()
        sink.move(ready)
        bench.edge()
        if len(sink.words) == count and not any(stream.words for stream in streams):
            return sink.words
    raise AssertionError(f"{len(sink.words)} of {count} words arrived in {PATIENCE} cycles")


def pulse(bench: Bench, instance: str, port: str = "start") -> None:
    """Set an input to 1 for one cycle."""
    bench.put(instance, {port: 1})
    bench.settle()
    bench.edge()
    bench.put(instance, {port: 0})
