"""What a campaign over files needs to know of one kind of file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

Mutate = Callable[[bytes, Random, Sequence[bytes]], bytes]
"""A file, random numbers, and files to take parts from → another file."""

MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Target:
    """A kind of file.

    seeds: good files, and every bad one that was a defect once. mutators: what makes others of them. read: what the
    project does with such a file; it may raise what derives from SystolicError, and nothing else. name: that the file
    has. extra_bytes: of memory beyond 512 MB that reading it may honestly take. runs: programs that it may start.
    """

    name: str
    seeds: Callable[[], Sequence[bytes]]
    mutators: tuple[Mutate, ...]
    read: Callable[[Path], None]
    file_name: str = "file"
    extra_bytes: int = 0
    runs: tuple[str, ...] = ()

    def case(self, seeds: Sequence[bytes], seed: int, number: int) -> bytes:
        """The file of one case: the seeds themselves first, then mutated ones; the same numbers give the same file."""
        if number < len(seeds):
            return seeds[number]
        random = Random(f"{seed}:{self.name}:{number}")
        data = random.choice(seeds)
        for _ in range(random.choice((1, 1, 1, 2, 2, 3, 5))):
            data = random.choice(self.mutators)(data, random, seeds)
        return data
