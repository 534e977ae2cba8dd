"""`python -m tests.fuzz arguments`: commands with arguments that nobody would type.

A case is a JSON list of arguments. The command runs in a folder with a network, pictures, a schedule and a compiled
design. A defect is an exit status other than 0, 1 and 2, a status 2 without a sentence, a traceback, a sentence of
excessive length, and every defect of files. No argument may name a path outside the folder.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from random import Random

import matplotlib.backends.backend_agg
import matplotlib.backends.backend_svg  # noqa: F401, which looks for its settings once
from PIL import Image

from cnn import zoo
from systolic import explorations
from systolic.cli.main import main, parser
from systolic.loading import load_model
from systolic.model import sample_pictures
from tests.fuzz.files import corpus, designs
from tests.fuzz.files.hunt import hunt
from tests.fuzz.files.mutators import NUMBERS
from tests.fuzz.files.target import MEGABYTE, Target

LONGEST_SENTENCE = 3000
"""The limit for the length of a line of standard error, in characters."""

CODES = (0, 1, 2)
"""The exit statuses that commands may have."""

INPUTS = (
    "small.cfg",
    "small.json",
    "small.names",
    "a.png",
    "schedule.json",
    "board.toml",
    "pictures",
    "design",
    "none",
)
"""Names of files and folders in the folder; "none" does not exist."""
WORDS = (
    *INPUTS, *NUMBERS, "-", "--", "", " ", "-o", "new", "x.json", "x.html", "x.png", "16x12", "0x0", "4x4x4",
    "1,2", "systolic", "streaming", "pynq-z2", "ultra96-v2", "fps", "latency", "ddr", "greedy", "exact", "conv1", "all",
    "\t", "\n", "é", "\udcff", "\u202e", "a" * 300, "a" * 5000, "%s", "{}", "[", "@small.cfg", "shapes",
)  # fmt: skip
"""Words that replace arguments."""

Edit = Callable[[list[str], int], list[str]]
"""Returns changed arguments. Its arguments are a call, and the index of the argument to change."""

_SLOW = re.compile(r"--(w|wo.*|d|da.*)(=|$)|shapes$")  # --workers, --dask, --data, their short forms; a network
_PATH_ENDS = re.compile(r"[=,: ]")


class StatusError(Exception):
    """A violation of the contract of exit statuses and sentences."""


# --- the folder


@cache
def inputs() -> dict[str, bytes]:
    """Return the files of the folder, except the design's."""
    cfg, exported = corpus.file("cfg", "small.cfg"), corpus.file("exported", "small.json")
    picture = io.BytesIO()
    with Image.open(sample_pictures()[0]) as sample:
        sample.resize((32, 24)).save(picture, "PNG")
    board = (Path(zoo.__file__).parents[1] / "boards" / "pynq-z2.toml").read_bytes()
    schedule = explorations.schedule(load_model(corpus.FOLDER / "cfg" / "small.cfg", seed=1), "pynq-z2", 100.0)
    return {
        "small.cfg": cfg,
        "small.json": exported,
        "small.names": b"cat\ndog\n",
        "a.png": picture.getvalue(),
        "pictures/b.png": picture.getvalue(),
        "board.toml": board,
        "schedule.json": schedule.to_json().encode(),
    }


def lay(folder: Path) -> None:
    """Write the files of the folder, and copy a compiled design to it."""
    for name, data in inputs().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    shutil.copytree(designs.base("systolic"), folder / "design")


# --- cases


@cache
def options() -> dict[str, tuple[str, ...]]:
    """Return the options of each command, as its parser lists them."""
    (commands,) = (action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    return {
        name: tuple(flag for action in command._actions for flag in action.option_strings)
        for name, command in commands.choices.items()
    }


def seeds() -> tuple[bytes, ...]:
    """Return the calls that once showed a defect, and a working call of each command, the fast ones first.

    Everything slow is done here, before workers are forked.
    """
    inputs()
    designs.base("systolic")
    priced = ["--board", "pynq-z2", "--clock", "100", "--schedule", "schedule.json"]
    folded = ["--board", "ultra96-v2", "--folding", "greedy", "--estimated-fifos"]
    calls = [
        ["boards"],
        ["boards", "pynq-z2", "--json", "-"],
        ["run", "design", "a.png", "-o", "x.png", "--threshold", "0.5", "--overlap", "0.4"],
        ["schedule", "small.cfg", *priced, "--save", "x.json", "--report", "x.html"],
        ["fold", "small.json", *folded, "--fps", "100", "--save", "x.json", "--report", "x.html"],
        ["generate", "small.cfg", "--seed", "1", *priced, "--calibrate", "a.png", "-o", "new"],
        ["run", "design", "pictures", "-o", "boxes"],
        ["simulate", "design", "--picture", "a.png", "--json", "x.json"],
        ["compare", "small.cfg", "--board", "pynq-z2", "--clock", "100", "--array", "4x4x4", "--report", "x.html"],
        ["pareto", "small.cfg", "--board", "pynq-z2", "--clock", "100", "--array", "4x4x4", "--picture", "x.png"],
        ["generate", "small.cfg", "--seed", "1", *priced, "--calibrate", "a.png", "-o", "design", "--force"],
        ["package", "design", "--without-bitstream", "-o", "dist"],
        ["simulate", "design", "--picture", "a.png", "--cycles", "--timeline", "x.png"],
        ["generate", "small.json", "--seed", "1", "--style", "streaming", *folded, "-o", "new"],
        ["demo", "-o", "demo"],
    ]
    return (*corpus.files("arguments"), *(json.dumps(call).encode() for call in calls))


def another(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    """Replace an argument by another word."""
    return _edited(data, random, lambda call, place: [*call[:place], random.choice(WORDS), *call[place + 1 :]])


def missing(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    """Remove an argument, or repeat it at another place."""
    again = random.random() < 0.5

    def edit(call: list[str], place: int) -> list[str]:
        rest = [*call[:place], *call[place + 1 :]]
        end = random.randrange(len(call) + 1)
        return [*call[:end], call[place], *call[end:]] if again else rest

    return _edited(data, random, edit)


def option(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    """Insert an option of the command, or sometimes of another command, with or without a value."""
    command = random.choice(list(options()))

    def edit(call: list[str], place: int) -> list[str]:
        known = options().get(call[0] if random.random() < 0.9 else command, ("--json",))
        flag, word = random.choice(known), random.choice(WORDS)
        return [*call[: place + 1], *random.choice(([flag], [flag, word], [f"{flag}={word}"])), *call[place + 1 :]]

    return _edited(data, random, edit)


def letter(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    """Remove a character of an argument, double it, or replace it."""

    def edit(call: list[str], place: int) -> list[str]:
        word = call[place] or "0"
        at = random.randrange(len(word))
        by = random.choice(("", word[at] * 2, random.choice("0-9.,xe=\t")))
        return [*call[:place], word[:at] + by + word[at + 1 :], *call[place + 1 :]]

    return _edited(data, random, edit)


def _edited(data: bytes, random: Random, edit: Edit) -> bytes:
    call = json.loads(data)
    return json.dumps(edit(call, random.randrange(len(call))) if call else ["--help"]).encode()


# --- what is done with one


def stays_inside(call: Sequence[str]) -> bool:
    """Return whether no argument names a path outside the folder, to which the command might write."""
    pieces = [piece for word in call for piece in _PATH_ENDS.split(word)]
    return not any(piece.startswith(("/", "~")) or ".." in piece for piece in pieces)


def read(path: Path) -> None:
    """Run one call in a new folder.

    Raises:
        StatusError: The call violates the contract of exit statuses and sentences.
    """
    call = json.loads(path.read_bytes())
    if not stays_inside(call) or not _quick(call):
        return
    folder = path.with_name("work")
    shutil.rmtree(folder, ignore_errors=True)
    lay(folder)
    out, told = io.StringIO(), io.StringIO()
    with _inside(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(told):
        code = _status(call)
    sentence = told.getvalue()
    if code not in CODES:
        raise StatusError(f"exit status {code}")
    if code == 2 and "systolic: " not in sentence and "error: " not in sentence:
        raise StatusError(f"exit status 2 without a sentence: {sentence}")
    if "Traceback" in sentence or max(map(len, sentence.splitlines()), default=0) > LONGEST_SENTENCE:
        raise StatusError(f"standard error has a traceback or a long line, {len(sentence)} characters: {sentence}")


def _status(call: Sequence[str]) -> object:
    try:
        return main(call)
    except SystemExit as end:  # argparse
        return end.code or 0


def _quick(call: Sequence[str]) -> bool:
    """Return whether a call takes little time: no demo, no built-in network, no cluster and no pool of processes."""
    return call[:1] != ["demo"] and not any(_SLOW.match(word) for word in call)


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = os.getcwd()  # noqa: PTH109
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


ARGUMENTS = Target(
    "arguments", seeds, (another, another, option, option, missing, letter), read, "case", 256 * MEGABYTE, ("g++",)
)

run = partial(hunt, ARGUMENTS)
