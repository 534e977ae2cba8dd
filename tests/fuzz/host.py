"""`python -m tests.fuzz host`: faults on the simulated board while it computes frames, and a close at any moment.

A case opens a small design, injects faults, and uses the design as programs do: streams that are left early or whose
pictures raise an error, single frames, layers, resets, a close from another thread or from the caller's own iterator. A
defect is

- integers that differ from the golden model's without an error,
- an error although the host can recover from the fault, or a ``verify`` that does not report a corrupt word,
- an exception that is not one of the project's, or a sentence of excessive length,
- a call that does not end, or a thread that is left over,
- a buffer that is not freed, or that is freed while the accelerator may write to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from boards.errors import SystolicError
from systolic.execution import build, compiler
from tests.fuzz.campaign import Campaign
from tests.support.shared_builds import shared

Picture = npt.NDArray[np.uint8]

HARMLESS = ("late interrupt", "lost interrupt", "double interrupt")
"""Faults that the host recovers from without an error."""

LOUD = ("hang", "allocation failure")
"""Faults that the host reports."""

QUIET = ("corrupt word", "missing flush")
"""Faults that only ``verify`` and ``verify_every`` report."""

WEIGHTS = {"tiny": "weights_0", "batches": "weights_0", "centre": "weights_centre"}
"""The name of each design's buffer of weights."""
CLOSERS = ("nobody", "nobody", "a thread", "a thread", "the pictures", "between frames")
ACTIONS = ("stream", "stream", "detect", "detect_async", "run", "layers", "reset", "verify")
PICTURES = 8
"""The number of different input images."""

TIMEOUT_S, ENDLESS_S = 0.1, 60.0
"""Timeouts in seconds: if the case has a hang, and otherwise. The second is long enough for a busy machine."""

PATIENCE_S = 60.0
"""The time in seconds after which a call counts as endless."""

LONGEST_SENTENCE = 3000
"""The limit for the length of an error's sentence, in characters."""


class VanishedError(Exception):
    """The error of the caller's own iterator."""


@dataclass(frozen=True)
class Injection:
    """The fields of a ``host.simulated.faults.InjectedFault``. This class can be used without pynq."""

    kind: str
    at: int
    in_pass: int = 0
    buffer: str = "weights_0"
    word: int = 0
    seconds: float = 0.01


@dataclass(frozen=True)
class Case:
    """The use of a design, and the faults meanwhile. If ``beside`` is true, a second thread requests frames too.

    Attributes:
        design: The design's name, a key of WEIGHTS.
        wait: How the host waits for the accelerator: "poll" or "interrupt".
        sets: The number of batches in flight.
        frames: The number of pictures of each stream.
        faults: The faults that are injected.
        raises_at: The number of the picture at which the caller's iterator raises an error; None for no error.
        taken: The number of the result after which a stream is left; None if all results are taken.
        closer: What closes the accelerator early, one of CLOSERS.
        moment: The time of the early close: seconds after the beginning, or the number of the picture divided by 100.
        actions: The calls, in their order.
        recovers: Whether reset() is called after an error that asks for it.
    """

    design: str
    wait: str = "poll"
    sets: int = 2
    frames: int = 4
    faults: tuple[Injection, ...] = ()
    raises_at: int | None = None
    taken: int | None = None
    closer: str = "nobody"
    moment: float = 0.0
    beside: bool = False
    actions: tuple[str, ...] = ("stream",)
    recovers: bool = True

    def suffers(self, *kinds: str) -> bool:
        """Return whether one of the faults has one of these kinds."""
        return any(fault.kind in kinds for fault in self.faults)

    @property
    def undisturbed(self) -> bool:
        """Return whether every call must return what was requested."""
        return self.closer == "nobody" and not self.beside and not self.suffers(*LOUD, *QUIET)


def draw(seed: int, number: int) -> Case:
    """Return the case ``number`` of a campaign."""
    dice = random.Random(f"{seed}/{number}")
    design = dice.choice(["tiny", "tiny", "batches", "centre"])
    frames = dice.randint(1, 10)
    return Case(
        design=design,
        wait=dice.choice(["poll", "interrupt"]),
        sets=dice.randint(1, 4),
        frames=frames,
        faults=tuple(_fault(dice, design, word) for word in range(dice.choice([0, 1, 1, 2, 3]))),
        raises_at=dice.choice([None, None, None, dice.randrange(frames)]),
        taken=dice.choice([None, None, dice.randint(0, frames)]),
        closer=dice.choice(CLOSERS),
        moment=dice.choice([0.0, dice.random() * 0.02, dice.random() * 0.1]),
        beside=dice.random() < 0.15,
        actions=tuple(dice.choices(ACTIONS, k=dice.randint(1, 4))),
        recovers=dice.random() < 0.7,
    )


def _fault(dice: random.Random, design: str, word: int) -> Injection:
    """Draw a fault.

    Args:
        word: The number of the corrupt word. It differs per fault, because two faults in one word would cancel out.
    """
    kind = dice.choice([*HARMLESS, *LOUD, *QUIET])
    places = [WEIGHTS[design]] if design == "centre" else [WEIGHTS[design], "requantisers", "program"]
    return Injection(kind, dice.randrange(8), dice.randrange(3), dice.choice(places), word, dice.random() * 0.03)


def picture(number: int) -> Picture:
    """Return one of ``PICTURES`` uint8 images of shape (14, 18, 3)."""
    return np.random.default_rng(number % PICTURES).integers(0, 256, (14, 18, 3), np.uint8)


class Designs:
    """Two systolic designs and a pipeline, compiled once.

    Attributes:
        folders: The folder of each design.
        golden: The golden model's outputs of every picture, for each design.
    """

    def __init__(self, folder: Path) -> None:
        from host.opened import open_executed
        from host.options import Options
        from tests.support.detectors import write_tiny_design
        from tests.support.host.hardware import described
        from tests.support.host.pipelines import make_by_hand

        self.folders: dict[str, Path] = {}
        self.golden: dict[str, list[tuple[npt.NDArray[Any], ...]]] = {}
        for name, batch in (("tiny", None), ("batches", 3)):
            (folder / name).mkdir()
            write_tiny_design(folder / name / "design", "zcu104", (18, 14), ("a", "b", "c"), batch=batch)
            build.build(folder / name / "design")
            self.folders[name] = described(folder / name / "design")
        self.folders["centre"] = make_by_hand(folder / "centre")
        for name, design in self.folders.items():
            with open_executed(design, Options(threshold=1.0)) as detector:
                self.golden[name] = [detector.detect(picture(number)).outputs for number in range(PICTURES)]


@dataclass
class Trial:
    """One case while it runs.

    Attributes:
        complaints: The sentences about defects.
        happened: The number of faults by kind, of errors, and of frames.
        yolo: The open accelerator.
        resets: The number of successful resets.
    """

    designs: Designs
    case: Case
    complaints: list[str] = field(default_factory=list)
    happened: Counter[str] = field(default_factory=Counter)
    yolo: Any = None
    resets: int = 0

    def play(self) -> None:
        """Run the case, and wait for the end of every thread."""
        from host import Accelerator, Options

        before = set(threading.enumerate())
        timeout_s = TIMEOUT_S if self.case.suffers("hang") else ENDLESS_S
        options = Options(wait=self.case.wait, sets=self.case.sets, timeout_s=timeout_s, threshold=1.0)
        self.yolo = Accelerator(self.designs.folders[self.case.design], options)
        board = self.yolo.device
        self._inject(board)
        threads = [self._thread(self._work)]
        if self.case.beside:
            threads.append(self._thread(self._look_beside))
        if self.case.closer == "a thread":
            time.sleep(self.case.moment)
            threads += [self._thread(self.yolo.close), self._thread(self.yolo.close)]
        self._wait("the work", threads)
        self._wait("close()", [self._thread(self.yolo.close)])
        self.complaints += board.freed_at_work
        self.happened.update(fault.kind for fault in self.case.faults)
        self.happened.subtract(fault.kind for fault in board.faults._waiting)
        if board.allocations:
            self.complaints.append(f"{board.allocations} buffers were not given back")
        self._wait("a thread", [thread for thread in threading.enumerate() if thread not in before])

    def _inject(self, board: Any) -> None:
        from host.simulated.faults import InjectedFault

        board.inject(*(InjectedFault(**vars(fault)) for fault in self.case.faults))

    # --- threads

    def _thread(self, work: Callable[[], object]) -> threading.Thread:
        thread = threading.Thread(target=self._guarded, args=(work,), name=work.__name__, daemon=True)
        thread.start()
        return thread

    def _wait(self, name: str, threads: list[threading.Thread]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                self.complaints.append(f"{name} does not end: {thread.name}")

    def _guarded(self, work: Callable[[], object]) -> None:
        """Run ``work``. An error of the project is judged; any other exception is a complaint."""
        try:
            work()
        except SystolicError as error:
            self._judge(error)
        except BaseException as error:
            self.complaints.append(f"{type(error).__name__}: {error}")

    def _judge(self, error: SystolicError) -> None:
        self.happened["errors"] += 1
        expected = isinstance(error.__cause__, VanishedError)
        if self.case.undisturbed and not expected:
            self.complaints.append(f"the case is undisturbed, and an error was raised: {error}")
        if not 10 < len(str(error)) < LONGEST_SENTENCE:
            self.complaints.append(f"a sentence of {len(str(error))} characters")

    # --- what is done

    def _work(self) -> None:
        actions: dict[str, Callable[[], object]] = {
            "stream": self._stream,
            "detect": lambda: self._check(3, self.yolo.detect(picture(3)).outputs),
            "detect_async": lambda: self._check(4, asyncio.run(self.yolo.detect_async(picture(4))).outputs),
            "run": lambda: self._check(5, self.yolo.run(self.yolo.prepare(picture(5))[1])),
            "layers": self._layers,
            "reset": self._reset,
            "verify": self.yolo.verify,
        }
        for name in self.case.actions:
            try:
                actions[name]()
            except SystolicError as error:
                self._judge(error)
                if self.case.recovers and "call reset()" in str(error):
                    self._reset()
        if self.case.suffers("corrupt word") and not self.case.suffers(*LOUD) and self.case.closer == "nobody":
            self._tell_of_words()

    def _reset(self) -> None:
        """Reset the accelerator as a program would, and again after each failed allocation."""
        for left in reversed(range(len(self.case.faults) + 1)):
            try:
                self.yolo.reset()
            except SystolicError:
                if not left or self.yolo._gate.shut:
                    raise
            else:
                self.resets += 1
                return

    def _stream(self) -> None:
        every = 1 if self.case.suffers(*QUIET) else None
        flow = self.yolo.stream(self._pictures(), verify_every=every)
        with contextlib.closing(flow):
            for count, result in enumerate(flow):
                self._check(count, result.outputs, verified=every is not None)
                if self.case.closer == "between frames":
                    self.yolo.close()
                if count == self.case.taken:
                    break

    def _pictures(self) -> Iterator[Picture]:
        for number in range(self.case.frames):
            if number == self.case.raises_at:
                raise VanishedError("the caller's iterator")
            if self.case.closer == "the pictures" and number == int(self.case.moment * 100):
                self.yolo.close()
            yield picture(number)

    def _layers(self) -> None:
        """Read all layers, or only the first. In every design, the last layer's map is an output."""
        layers = self.yolo.layers(self.yolo.prepare(picture(6))[1])
        with contextlib.closing(layers):
            maps = [next(layers)[1]] if self.case.taken else [integers for _, integers in layers]
        if not self.case.taken:
            self._check(6, (maps[-1],))

    def _look_beside(self) -> None:
        for _ in range(5):
            with contextlib.suppress(SystolicError):
                self._check(7, self.yolo.detect(picture(7)).outputs)
            time.sleep(0.002)

    def _tell_of_words(self) -> None:
        waiting = {fault.word for fault in self.yolo.device.faults._waiting if fault.kind == "corrupt word"}
        spoilt = [fault for fault in self.case.faults if fault.kind == "corrupt word" and fault.word not in waiting]
        if spoilt and not self.resets and not self.case.beside:
            try:
                self.yolo.verify()
            except SystolicError:
                return
            self.complaints.append(f"verify() does not report {spoilt}")

    def _check(self, number: int, outputs: tuple[npt.NDArray[Any], ...], *, verified: bool = False) -> None:
        """Compare the outputs of a frame with the golden model's.

        Args:
            verified: Whether corrupt words would have been reported.
        """
        golden = self.designs.golden[self.case.design][number % PICTURES][-len(outputs) :]
        equal = all(np.array_equal(map_, right) for map_, right in zip(outputs, golden, strict=True))
        self.happened["frames"] += 1
        if equal or (self.case.suffers(*QUIET) and not verified):
            return
        self.complaints.append(f"frame {number} differs from the golden model's, and no error was raised")


def tried(designs: Designs, case: Case) -> Trial:
    """Run the case, and return its trial."""
    trial = Trial(designs, case)
    trial.play()
    return trial


def run(campaign: Campaign) -> int:
    """Print every defect, and how often each event happened; return the number of defects."""
    happened: Counter[str] = Counter()
    defects = cases = 0
    with TemporaryDirectory() as folder:
        work = Path(folder)
        with patch.object(build, "compile_to", shared(compiler.compile_to, work)):
            designs = Designs(work)
        began = time.monotonic()
        for number in campaign.numbers():
            case = draw(campaign.seed, number)
            trial = tried(designs, case)
            cases += 1
            happened.update(trial.happened)
            if trial.complaints:
                defects += 1
                report = f"seed {campaign.seed}, case {number}: {case}: {'; '.join(trial.complaints)}"
                print(report, file=sys.stderr, flush=True)
                campaign.failures.mkdir(parents=True, exist_ok=True)
                (campaign.failures / f"host-{campaign.seed}-{number}.txt").write_text(report + "\n")
        seconds = time.monotonic() - began
    print(f"{cases} cases in {seconds:.0f} s, {defects} defects; {_told(happened)}")
    return defects


def _told(happened: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(happened.items()))
