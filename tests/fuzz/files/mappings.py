"""Fuzzing of files that people edit: boards, saved schedules, saved foldings, and hardware descriptions (.hwh)."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path

from boards.board import load, names, read_board
from cnn import zoo
from cnn.quantized import QuantizedNetwork
from host.board.overlay import check_description
from scheduler.streaming import folding_file
from scheduler.streaming.graph import StreamGraph
from scheduler.streaming.lower import lower
from scheduler.systolic import schedule_file
from systolic.loading import load_model
from systolic.model import Calibration, quantise_model, sample_pictures
from systolic.styles.options import saved_text
from systolic.styles.registry import style_named
from tests.fuzz.files import corpus
from tests.fuzz.files.hunt import hunt
from tests.fuzz.files.mutators import TEXT
from tests.fuzz.files.structured import JSON
from tests.fuzz.files.target import Target


def board_seeds() -> tuple[bytes, ...]:
    """Return all boards, and the board files that once showed a defect."""
    folder = Path(zoo.__file__).parents[1] / "boards"
    return (*((folder / f"{name}.toml").read_bytes() for name in names()), *corpus.files("board"))


def read_board_file(path: Path) -> None:
    """Read a board and list the clocks that it makes."""
    read_board(path).clocks()


@cache
def network() -> QuantizedNetwork:
    """Return a small network for the systolic style."""
    model = load_model(corpus.FOLDER / "cfg" / "small.cfg", None, None, 1)
    return quantise_model(model, Calibration(sample_pictures()[:1], method="max"))


@cache
def graph() -> StreamGraph:
    """Return a small network, lowered for the streaming style."""
    return lower(zoo.load_exported_file(corpus.FOLDER / "exported" / "small.json", None, 1).quantized)


def schedule_seeds() -> tuple[bytes, ...]:
    """Return a saved schedule, and the schedules that once showed a defect."""
    style = style_named("systolic")
    mapping = style.map(network(), load("pynq-z2"), 100.0, style.options(), lambda _: None)
    return (mapping.to_json().encode(), *corpus.files("schedule"))


def read_schedule(path: Path) -> None:
    """Read a schedule as the option --schedule does."""
    text, name = saved_text(path, "schedule", "systolic schedule --save")
    schedule_file.from_json(text, network(), name)


def folding_seeds() -> tuple[bytes, ...]:
    """Return a saved folding, and the foldings that once showed a defect."""
    style = style_named("streaming")
    quantised = zoo.load_exported_file(corpus.FOLDER / "exported" / "small.json", None, 1).quantized
    mapping = style.map(quantised, load("ultra96-v2"), None, style.options(search="greedy", fps=20000), lambda _: None)
    return (mapping.to_json().encode(), *corpus.files("folding"))


def read_folding(path: Path) -> None:
    """Read a folding as the option --folding does."""
    text, name = saved_text(path, "folding", "systolic fold --save")
    folding_file.from_json(text, graph(), name)


def hwh_seeds() -> tuple[bytes, ...]:
    """Return the generated hardware descriptions of both styles, and those files that once showed a defect."""
    golden = Path(__file__).resolve().parents[2] / "golden"
    return (*(path.read_bytes() for path in sorted(golden.glob("*/design/*.hwh"))), *corpus.files("hwh"))


HWH = Target("hwh", hwh_seeds, TEXT, check_description, "systolic.hwh")
BOARD = Target("board", board_seeds, TEXT, read_board_file, "board.toml")
SCHEDULE = Target("schedule", schedule_seeds, JSON, read_schedule, "schedule.json")
FOLDING = Target("folding", folding_seeds, JSON, read_folding, "folding.json")

board, schedule, folding = partial(hunt, BOARD), partial(hunt, SCHEDULE), partial(hunt, FOLDING)
hwh = partial(hunt, HWH)
