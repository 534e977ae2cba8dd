"""What every campaign has: its seed, where it ends, and where it leaves what it finds."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Campaign:
    """How long to look, from which seed, and where failures are written.

    seed: the first case's; every case's random numbers follow from it and the case's number alone.
    cases: the most cases tried; None for no limit. first: the number of the first, so that a campaign goes on later.
    seconds: no case begins after so long; None for no limit.
    failures: a folder; each failure leaves a small file there that shows it again.
    workers: cases tried at once. replay: such files, which are tried instead of other cases.
    """

    seed: int
    cases: int | None
    seconds: float | None
    failures: Path
    first: int = 0
    workers: int = 1
    replay: tuple[Path, ...] = ()
    started: float = field(default_factory=time.monotonic)

    def numbers(self) -> Iterator[int]:
        """The cases' numbers, until the count or the time is used up."""
        number = self.first
        while (self.cases is None or number < self.first + self.cases) and not self._late():
            yield number
            number += 1

    def _late(self) -> bool:
        return self.seconds is not None and time.monotonic() - self.started > self.seconds
