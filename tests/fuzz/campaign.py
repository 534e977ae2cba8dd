"""The parameters that all campaigns share: the seed, the limits, and the folder for failures."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

LONGEST = 4
"""Limit for the time of a campaign that has not tried enough yet, as a multiple of ``seconds``.

Without the limit, a campaign whose cases are all refused would never end.
"""


@dataclass(frozen=True)
class Campaign:
    """The parameters of a campaign.

    Attributes:
        seed: The seed. The random numbers of a case depend only on the seed and the number of the case.
        cases: Limit for the number of cases; None for no limit.
        seconds: The time after which no further case begins; None for no limit.
        failures: The folder where each failure writes a small file that shows it again.
        first: The number of the first case, with which a campaign continues an earlier one.
        layers: For networks, the number of layers that must be executed. The campaign does not end before that, and
            fewer layers count as a defect.
        workers: The number of cases that are tried at once.
        replay: Files of failures, which are tried instead of drawn cases.
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
        """Yield the numbers of the cases, until all are tried, or the time is over and ``enough`` returns True."""
        number = self.first
        while (self.cases is None or number < self.first + self.cases) and not self._late(enough):
            yield number
            number += 1

    def keep(self, kind: str, number: int, told: str, model: bytes) -> None:
        """Write a model that shows a defect, and print the defect and the path of the file."""
        self.failures.mkdir(parents=True, exist_ok=True)
        path = self.failures / f"{kind}-{self.seed}-{number}.onnx"
        path.write_bytes(model)
        print(f"{kind} {number}: {told}: {path}", flush=True)

    def _late(self, enough: Callable[[], bool]) -> bool:
        if self.seconds is None:
            return False
        seconds = time.monotonic() - self.started
        return seconds > self.seconds and (enough() or seconds > LONGEST * self.seconds)
