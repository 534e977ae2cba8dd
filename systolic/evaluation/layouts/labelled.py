"""Labelled images, independent of the layout that they are read from."""

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

MAX_LABEL_FILE_BYTES = 1 << 23
"""The most bytes that the label file of one image may have, enough for some hundred thousand objects."""

MAX_SET_FILE_BYTES = 1 << 29
"""The most bytes that a label file for a whole set may have. COCO's largest file has 448 MiB."""

_FILE = "file of labels"

FARTHEST = 1e9
"""The greatest coordinate of a box's corner, in pixels from the image's corner. Areas are still finite there."""


@dataclass(frozen=True)
class Truth:
    """One labelled object: its class and its box.

    Attributes:
        label: The name of the object's class.
        box: The corners x0, y0, x1, y1, in pixels or in fractions of the image's sides; see ``LabelledPicture``.
        difficult: Whether the object does not count, and a box that finds it is not wrong (VOC).
        crowd: Whether the box contains many objects (COCO). A crowd does not count either.
    """

    label: str
    box: Box
    difficult: bool = False
    crowd: bool = False

    @property
    def counts(self) -> bool:
        """Return whether a detector must find the object: it is neither difficult (VOC) nor a crowd (COCO)."""
        return not (self.difficult or self.crowd)


@dataclass(frozen=True)
class LabelledPicture:
    """An image file with its labelled boxes, or with one class for the whole image.

    Attributes:
        path: The image file.
        truths: The labelled objects. None if the dataset has no boxes for the image.
        category: The label of the whole image, in a classification dataset.
        relative: Whether the boxes are fractions of the image's sides, as in Darknet's files.
    """

    path: Path
    truths: tuple[Truth, ...] | None = None
    category: str | None = None
    relative: bool = False

    def in_pixels(self, width: int, height: int) -> LabelledPicture:
        """Return the labelled image with its boxes in pixels, for an image of this size."""
        if not self.relative or self.truths is None:
            return self
        truths = tuple(
            replace(truth, box=(x0 * width, y0 * height, x1 * width, y1 * height))
            for truth in self.truths
            for x0, y0, x1, y1 in [truth.box]
        )
        return replace(self, truths=truths, relative=False)

    def of_labels(self, labels: Sequence[str]) -> LabelledPicture:
        """Return the labelled image with only the objects that have one of these labels."""
        if self.truths is None:
            return self
        return replace(self, truths=tuple(truth for truth in self.truths if truth.label in labels))


@dataclass(frozen=True)
class LabelledSet:
    """The labelled images of a dataset, with the name of its layout and notes about its labels.

    Attributes:
        layout: The name of the layout that the set was read in, for reports.
        pictures: The images.
        notes: Sentences about labels that were left out or assumed.
    """

    layout: str
    pictures: tuple[LabelledPicture, ...]
    notes: tuple[str, ...] = ()

    @property
    def is_labelled(self) -> bool:
        """Return whether at least one image has labels."""
        return any(picture.truths is not None or picture.category is not None for picture in self.pictures)


def pictures_below(folder: Path) -> tuple[Path, ...]:
    """Return all image files of a folder and of its subfolders, sorted by path. Links to folders are not followed.

    Raises:
        FileAccessError: A folder cannot be read.
    """
    pictures, folders = [], [folder]  # a loop, because folders may be nested deeper than Python's recursion limit
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
    """Return whether the path is an existing file; False for a name that the file system does not allow."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_box(box: Box) -> bool:
    """Return whether all corners of a box are at most ``FARTHEST`` from 0, so that areas are finite."""
    return all(abs(edge) <= FARTHEST for edge in box)


def class_label(labels: Sequence[str], index: int, classes: int, place: str) -> str:
    """Return the label of the network's class number ``index``.

    Raises:
        RangeError: The network has only ``classes`` classes. The message names ``place``.
    """
    if not 0 <= index < classes:
        remedy = "give the labels of this network"
        raise RangeError("the number of a class of this network", index, 0, classes - 1, where=place, remedy=remedy)
    return label_of(labels, index)


def known_labels(pictures: Sequence[LabelledPicture], labels: Sequence[str]) -> tuple[tuple[LabelledPicture, ...], str]:
    """Return the images without the labelled objects whose class the network does not have.

    Returns:
        The images, and a sentence about the removed objects, or "" if there were none.

    Raises:
        MismatchError: The network has no class for any of the objects.
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
def reading(path: Path, largest: int = MAX_LABEL_FILE_BYTES) -> Iterator[None]:
    """Inside this context, turn errors of reading a label file into the project's; refuse devices and large files.

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
