"""Pictures and what is on them, whatever file said so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from boards.errors import LabelError, listed
from host.vision.detection import label_of
from systolic.pictures import ENDINGS

Box = tuple[float, float, float, float]

LARGEST_LABELS = 1 << 30
"""Bytes of a file of labels."""


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
    """All pictures of a folder and of those in it, in the order of their paths."""
    return tuple(sorted(path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS and path.is_file()))


def class_label(labels: Sequence[str], index: int, classes: int, place: str) -> str:
    """What the network calls class ``index``. LabelError, naming ``place``, where it has fewer ``classes``."""
    if not 0 <= index < classes:
        raise LabelError(f"{place}: a class is 0…{classes - 1} for this network, not {index}; are these its labels?")
    return label_of(labels, index)


def known_labels(pictures: Sequence[LabelledPicture], labels: Sequence[str]) -> tuple[tuple[LabelledPicture, ...], str]:
    """The pictures without the objects that the network has no class for, and a sentence on those.

    LabelError where it has none for any of them.
    """
    foreign = sorted({truth.label for picture in pictures for truth in picture.truths or ()} - set(labels))
    if not foreign:
        return tuple(pictures), ""
    shorter = tuple(picture.of_labels(labels) for picture in pictures)
    total, remaining = (sum(len(picture.truths or ()) for picture in each) for each in (pictures, shorter))
    if not remaining:
        raise LabelError(
            f"the network must know one of the labels, but the pictures have {listed(foreign)} and the network "
            f"{listed(labels)}; give --names FILE with the names of its classes"
        )
    return shorter, (
        f"{total - remaining:,} of {total:,} objects are of classes that the network does not have "
        f"({listed(foreign)}): left out"
    )


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """LabelError where the file of labels cannot be opened, is too large or is no text."""
    try:
        if path.stat().st_size > LARGEST_LABELS:
            raise LabelError(f"{path}: a file of labels has at most {LARGEST_LABELS:,} bytes; split it")
        yield
    except FileNotFoundError as error:
        raise LabelError(f"{path}: there is no such file, and labels or pictures are named there") from error
    except UnicodeDecodeError as error:
        raise LabelError(f"{path}: labels are text in UTF-8, and this file is not; save it as UTF-8") from error
    except OSError as error:
        raise LabelError(f"{path} cannot be read: {error.strerror}") from error
