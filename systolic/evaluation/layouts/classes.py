"""Classification: a folder a class, named as the class or by its number."""

from __future__ import annotations

from pathlib import Path

from boards.errors import LabelError, listed
from systolic.evaluation.layouts.darknet import Classes
from systolic.evaluation.layouts.labelled import LabelledPicture, LabelledSet, class_label, pictures_below


def read_class_folders(folder: Path, classes: Classes) -> LabelledSet:
    """Every folder with pictures is a class; pictures that lie in none are without labels, where there is none.

    LabelError for a class that the network does not have.
    """
    if not folder.is_dir():
        raise LabelError(f"{folder}: there is no such folder; --split names one of {folder.parent}, or is left out")
    folders = sorted(path for path in folder.iterdir() if path.is_dir() and pictures_below(path))
    if not folders:
        return LabelledSet("pictures without labels", tuple(map(LabelledPicture, pictures_below(folder))))
    pictures = [
        LabelledPicture(picture, category=_category(place, classes))
        for place in folders
        for picture in pictures_below(place)
    ]
    return LabelledSet("classification folders", tuple(pictures))


def _category(folder: Path, classes: Classes) -> str:
    if folder.name in classes.labels:
        return folder.name
    if folder.name.isdecimal():
        return class_label(classes.labels, int(folder.name), classes.count, str(folder))
    raise LabelError(
        f"{folder}: a folder is named as one of the network's classes or by its number, 0…{classes.count - 1}, and the "
        f"classes are {listed(classes.labels) or 'without names'}; rename it, or give --names FILE"
    )
