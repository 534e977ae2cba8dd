"""The layout of Darknet and YOLO: one text file per image, with one line per object.

A line has the class number, then the box's centre, width and height as fractions of the image's sides. The text file of
``…/images/a.jpg`` is ``a.txt`` in the same folder, or ``…/labels/a.txt``. ``JPEGImages`` works like ``images``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from boards.errors import DamagedFileError, FileAccessError, InvalidValueError, MissingValueError, RangeError, listed
from systolic.evaluation.layouts.labelled import (
    MAX_SET_FILE_BYTES,
    LabelledPicture,
    LabelledSet,
    Truth,
    class_label,
    is_file,
    pictures_below,
    reading,
)

PICTURE_FOLDERS = ("images", "JPEGImages")
NO_LABELS = ("classes.txt", "README.txt", "train.txt", "valid.txt", "val.txt", "test.txt")
"""Text files that datasets have next to the images and that do not contain boxes."""

MAX_PICTURES = 1 << 21
"""The most lines that a list of images may have."""

_OUTSIDE = 0.01  # fraction of a side: rounding in the file can place a box this far outside the image


@dataclass(frozen=True)
class Classes:
    """The network's number of classes, and their labels, which may be fewer."""

    labels: tuple[str, ...]
    count: int


def read_list(path: Path, classes: Classes) -> LabelledSet:
    """Read the images that a text file lists, one path per line relative to its folder, with their labels.

    Raises:
        FileAccessError: The list or one of its pictures cannot be read.
        RangeError: It has too many lines.
        DamagedFileError: It names no picture.
    """
    with reading(path, MAX_SET_FILE_BYTES):
        text = path.read_text("utf-8")
    if text.count("\n") > MAX_PICTURES:
        what = "the number of lines of a list of pictures"
        raise RangeError(what, text.count("\n"), high=MAX_PICTURES, where=str(path), remedy="split it")
    names = [line.strip() for line in text.split("\n")]
    pictures = [path.parent / name for name in names if name and not name.startswith("#")]
    missing = [picture for picture in pictures if not is_file(picture)]
    if not pictures:
        raise DamagedFileError(str(path), "names no picture", remedy="write one path per line")
    if missing:
        reason = f"names {len(pictures)} pictures, of which {len(missing)} do not exist ({listed(missing, 3)})"
        remedy = f"write paths relative to {path.parent}"
        raise FileAccessError(str(path), reason, "list of pictures", remedy=remedy)
    return read_pictures(pictures, classes)


def read_folder(folder: Path, split: str | None, classes: Classes) -> LabelledSet:
    """Read a folder with the subfolders ``images`` and ``labels``, or a folder of images with their text files.

    Raises:
        FileAccessError: There is no such folder.
        MissingValueError: The folder has several sets, and ``split`` names none.
    """
    images = next((folder / name for name in PICTURE_FOLDERS if (folder / name).is_dir()), folder)
    if split is not None:
        images = images / split
    if not images.is_dir():
        remedy = "name another one with --split, or leave it out"
        raise FileAccessError(str(images), "does not exist", "folder of pictures", remedy=remedy)
    splits = sorted(path.name for path in images.iterdir() if path.is_dir())
    if images != folder and split is None and len(splits) > 1:
        reason = f"{images} holds several sets: {listed(splits)}"
        raise MissingValueError("--split", reason, remedy="name one of them")
    return read_pictures(pictures_below(images), classes)


def read_pictures(pictures: Sequence[Path], classes: Classes) -> LabelledSet:
    """Read the labels of these images. An image without a text file has no objects, as in YOLO's datasets.

    Raises:
        InvalidValueError: A line does not describe an object.
        RangeError: The network does not have a class.
    """
    labelled, missing = [], 0
    for picture in pictures:
        text = label_file(picture)
        missing += text is None
        truths = () if text is None else _truths(text, classes)
        labelled.append(LabelledPicture(picture, truths, relative=True))
    note = f"{missing:,} of {len(labelled):,} pictures have no file of labels: taken as pictures without objects"
    return LabelledSet("darknet / YOLO", tuple(labelled), (note,) if missing else ())


def label_file(picture: Path) -> Path | None:
    """Return the text file with the objects of an image, or None if there is none."""
    parts = picture.parts
    texts = [picture.with_suffix(".txt")]
    for index in reversed([i for i, part in enumerate(parts[:-1]) if part in PICTURE_FOLDERS]):
        texts.append(Path(*parts[:index], "labels", *parts[index + 1 :]).with_suffix(".txt"))
    return next((text for text in texts if text.name not in NO_LABELS and is_file(text)), None)


def _truths(path: Path, classes: Classes) -> tuple[Truth, ...]:
    with reading(path):
        lines = path.read_text("utf-8").splitlines()
    return tuple(_truth(line, classes, f"{path}:{i}") for i, line in enumerate(lines, 1) if line.strip())


def _truth(line: str, classes: Classes, place: str) -> Truth:
    try:
        index, x, y, width, height = (float(word) for word in line.split())
    except ValueError as error:
        required = "five numbers, the class and the box as centre x, y, width and height in fractions of the picture"
        raise InvalidValueError("a line", line.strip(), required, where=place) from error
    box = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
    if not (index.is_integer() and width > 0 and height > 0 and -_OUTSIDE <= min(box) <= max(box) <= 1 + _OUTSIDE):
        required = "the whole number of a class and a box in the picture, in fractions 0 to 1 of its sides"
        remedy = "divide pixels by the picture's width and height"
        raise InvalidValueError("a line", line.strip(), required, where=place, remedy=remedy)
    return Truth(class_label(classes.labels, int(index), classes.count, place), box)
