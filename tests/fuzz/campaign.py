"""What every campaign has: its seed, where it ends, and where it leaves what it finds."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

LONGEST = 4
"""How many times ``seconds`` a campaign takes at most that has not enough yet: of a hundred refusals none is enough."""


@dataclass(frozen=True)
class Campaign:
    """How long to look, from which seed, and where failures are written.

    seed: the first case's; every case's random numbers follow from it and the case's number alone.
    cases: the most cases tried; None for no limit. first: the number of the first, so that a campaign goes on later.
    seconds: no case begins after so long; None for no limit.
    failures: a folder; each failure leaves a small file there that shows it again.
    layers: of networks, how many must be executed: the time is not used up before, and fewer are a defect.
    workers: cases tried at once. replay: such files, which are tried instead of other cases.
    """

    seed: int
    cases: int | None
    seconds: float | None
    failures: Path
    first: int = 0
    layers: int = 0
    workers: int = 1
    replay: tuple[Path, ...] = ()
    started: float = field(default_factory=time.monotonic)

    def numbers(self, enough: Callable[[], bool] = lambda: True) -> Iterator[int]:
        """The cases' numbers, until the count is used up, or the time and there is ``enough``."""
        number = self.first
        while (self.cases is None or number < self.first + self.cases) and not self._late(enough):
            yield number
            number += 1

    def keep(self, kind: str, number: int, told: str, model: bytes) -> None:
        """Write a model that shows a defect, and print what it is and where it lies."""
        self.failures.mkdir(parents=True, exist_ok=True)
        path = self.failures / f"{kind}-{self.seed}-{number}.onnx"
        path.write_bytes(model)
        print(f"{kind} {number}: {told}: {path}", flush=True)

    def _late(self, enough: Callable[[], bool]) -> bool:
        if self.seconds is None:
            return False
        seconds = time.monotonic() - self.started
        return seconds > self.seconds and (enough() or seconds > LONGEST * self.seconds)
