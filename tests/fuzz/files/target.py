"""The description of one kind of file for a campaign."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

Mutate = Callable[[bytes, Random, Sequence[bytes]], bytes]
"""A function that returns a changed file. Its arguments are the file, random numbers, and files to take parts from."""

MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Target:
    """A kind of file.

    Attributes:
        name: The name of the kind.
        seeds: Returns good files, and every bad file that once showed a defect.
        mutators: The functions that change a file.
        read: Reads a file as the project does. It may raise only errors that derive from SystolicError.
        file_name: The name of the file on disk.
        extra_bytes: The memory in bytes, in addition to 512 MB, that reading such a file may need.
        runs: The programs that reading such a file may start.
    """

    name: str
    seeds: Callable[[], Sequence[bytes]]
    mutators: tuple[Mutate, ...]
    read: Callable[[Path], None]
    file_name: str = "file"
    extra_bytes: int = 0
    runs: tuple[str, ...] = ()

    def case(self, seeds: Sequence[bytes], seed: int, number: int) -> bytes:
        """Return the file of one case: first the seeds themselves, then mutated seeds.

        Equal arguments give equal files.
        """
        if number < len(seeds):
            return seeds[number]
        random = Random(f"{seed}:{self.name}:{number}")
        data = random.choice(seeds)
        for _ in range(random.choice((1, 1, 1, 2, 2, 3, 5))):
            data = random.choice(self.mutators)(data, random, seeds)
        return data
