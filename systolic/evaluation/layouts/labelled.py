"""Pictures and what is on them, whatever file said so."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from boards.errors import DamagedFileError, FileAccessError, MismatchError, RangeError, listed
from host.vision.detection import label_of
from systolic.pictures import ENDINGS

Box = tuple[float, float, float, float]

LARGEST_LABELS = 1 << 23
"""Bytes of the labels of one picture: some hundred thousand objects."""

LARGEST_SET = 1 << 29
"""Bytes of a file about all pictures of a set; COCO's largest one has 448 MiB."""

_FILE = "file of labels"

FARTHEST = 1e9
"""Pixels from a picture's corner to that of a box; areas are still finite then."""


@dataclass(frozen=True)
class Truth:
    """One object. box: x0, y0, x1, y1 in pixels of the picture.

    difficult: neither counts nor is wrong where it is found (VOC). crowd: many objects in one box (COCO), likewise.
    """

    label: str
    box: Box
    difficult: bool = False
    crowd: bool = False

    @property
    def counts(self) -> bool:
        """Whether it is to be found."""
        return not (self.difficult or self.crowd)


@dataclass(frozen=True)
class LabelledPicture:
    """truths: the objects, None where nobody said. category: of a classification.

    relative: whether the boxes are fractions of the picture's sides, as in darknet's files.
    """

    path: Path
    truths: tuple[Truth, ...] | None = None
    category: str | None = None
    relative: bool = False

    def in_pixels(self, width: int, height: int) -> LabelledPicture:
        """The same with boxes in pixels of a picture of this size."""
        if not self.relative or self.truths is None:
            return self
        truths = tuple(
            replace(truth, box=(x0 * width, y0 * height, x1 * width, y1 * height))
            for truth in self.truths
            for x0, y0, x1, y1 in [truth.box]
        )
        return replace(self, truths=truths, relative=False)

    def of_labels(self, labels: Sequence[str]) -> LabelledPicture:
        """The same without objects of other labels."""
        if self.truths is None:
            return self
        return replace(self, truths=tuple(truth for truth in self.truths if truth.label in labels))


@dataclass(frozen=True)
class LabelledSet:
    """layout: what it was read as, for a person. notes: sentences on what was left out or assumed."""

    layout: str
    pictures: tuple[LabelledPicture, ...]
    notes: tuple[str, ...] = ()

    @property
    def is_labelled(self) -> bool:
        """Whether anything is known of the pictures."""
        return any(picture.truths is not None or picture.category is not None for picture in self.pictures)


def pictures_below(folder: Path) -> tuple[Path, ...]:
    """Return all pictures of a folder and of the folders in it, in the order of their paths; FileAccessError for a
    folder that cannot be read. Folders may be nested deeper than Python can call itself; links to folders are not
    followed."""
    pictures, folders = [], [folder]
    while folders:
        place = folders.pop()
        try:
            with os.scandir(place) as entries:
                listing = list(entries)
        except OSError as error:
            raise FileAccessError(str(place), f"cannot be read: {error.strerror or error}", "folder") from error
        folders += [place / entry.name for entry in listing if entry.is_dir(follow_symlinks=False)]
        paths = [place / entry.name for entry in listing if Path(entry.name).suffix.lower() in ENDINGS]
        pictures += [path for path in paths if is_file(path)]
    return tuple(sorted(pictures))


def is_file(path: Path) -> bool:
    """Whether it is one; a name that no file system takes is none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_box(box: Box) -> bool:
    """Whether its corners are numbers that areas can be reckoned with."""
    return all(abs(edge) <= FARTHEST for edge in box)


def class_label(labels: Sequence[str], index: int, classes: int, place: str) -> str:
    """Return the network's label of class ``index``; RangeError at ``place`` if it has fewer ``classes``."""
    if not 0 <= index < classes:
        remedy = "give the labels of this network"
        raise RangeError("the number of a class of this network", index, 0, classes - 1, where=place, remedy=remedy)
    return label_of(labels, index)


def known_labels(pictures: Sequence[LabelledPicture], labels: Sequence[str]) -> tuple[tuple[LabelledPicture, ...], str]:
    """The pictures without the objects that the network has no class for, and a sentence on those.

    MismatchError if it has no class for any of them.
    """
    foreign = sorted({truth.label for picture in pictures for truth in picture.truths or ()} - set(labels))
    if not foreign:
        return tuple(pictures), ""
    shorter = tuple(picture.of_labels(labels) for picture in pictures)
    total, remaining = (sum(len(picture.truths or ()) for picture in each) for each in (pictures, shorter))
    if not remaining:
        remedy = "give --names FILE with the names of its classes"
        raise MismatchError("a label of the pictures", listed(foreign), f"one of {listed(labels)}", remedy=remedy)
    return shorter, (
        f"{total - remaining:,} of {total:,} objects are of classes that the network does not have "
        f"({listed(foreign)}): left out"
    )


@contextmanager
def reading(path: Path, largest: int = LARGEST_LABELS) -> Iterator[None]:
    """Guard the reading of a file of labels. A pipe would be waited for, and a device has no end.

    Raises:
        FileAccessError: It cannot be opened, is not a regular file, or has more than ``largest`` bytes.
        DamagedFileError: It is not text.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise FileAccessError(str(path), "is a folder or a device", _FILE)
        if status.st_size > largest:
            reason = f"has {status.st_size:,} bytes, and at most {largest:,} are read"
            raise FileAccessError(str(path), reason, _FILE, remedy="split it")
        yield
    except FileNotFoundError as error:
        raise FileAccessError(str(path), "does not exist", _FILE) from error
    except UnicodeDecodeError as error:
        raise DamagedFileError(str(path), "is not text in UTF-8", remedy="save it as UTF-8") from error
    except OSError as error:
        raise FileAccessError(str(path), f"cannot be read: {error.strerror or error}", _FILE) from error
