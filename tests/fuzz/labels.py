"""Fuzzing of folders with labelled pictures: their labels are read in each layout, and the precision is computed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from boards.errors import SystolicError
from host.vision.detection import Detection
from systolic.evaluation.layouts.read import read_labelled
from systolic.evaluation.precision import average_precisions
from tests.fuzz.files import corpus
from tests.fuzz.files.hunt import hunt
from tests.fuzz.files.mutators import TEXT
from tests.fuzz.files.structured import JSON, archive, read_members, write_members
from tests.fuzz.files.target import Mutate, Target
from tests.support import labelled_sets as layouts

WRITERS: tuple[Callable[[Path], Path], ...] = (
    *(layouts.yolo, layouts.yolo_split, layouts.darknet_list, layouts.beside, layouts.voc, layouts.coco),
    layouts.contest,
)
SEEN = Detection("dog", 0.9, (9.0, 5.0, 30.0, 15.0))


def seeds() -> tuple[bytes, ...]:
    """Return an archive of a folder in each layout, and the archives that once showed a defect."""
    return (*map(_packed, WRITERS), *corpus.files("labels"))


def _packed(write: Callable[[Path], Path]) -> bytes:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder)
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        return write_members([(path.relative_to(folder).as_posix(), path.read_bytes()) for path in paths])


def _inner(name: str) -> Sequence[Mutate]:
    return JSON if name.endswith(".json") else TEXT


def read_folder(path: Path) -> None:
    """Read a folder as ``systolic evaluate`` does, for a detector and for a classifier.

    If the folder has a list of pictures, it is read too.
    """
    folder = Path(tempfile.mkdtemp(dir=path.parent))
    for name, data in read_members(path.read_bytes()):
        inside = Path(name)
        if len(name) < 100 and name.isprintable() and ".." not in inside.parts and not inside.is_absolute():
            _put(folder / inside, data)
    named = folder / "valid.txt"
    for place, classifier in ((folder, False), (folder, True), *([(named, False)] if named.is_file() else [])):
        try:
            labelled = read_labelled(place, layouts.CLASSES, None, classifier)
        except SystolicError:
            continue
        truths = [picture.in_pixels(layouts.WIDTH, layouts.HEIGHT).truths or () for picture in labelled.pictures]
        average_precisions([(SEEN,)] * len(truths), truths, 0.5)


def _put(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError:  # a folder already has this name, or a file has the name of a parent folder
        return


LABELS = Target("labels", seeds, (archive(_inner),), read_folder, "case.zip")
labels = partial(hunt, LABELS)
