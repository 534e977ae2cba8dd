"""The layout of classification datasets: one folder per class, with the name or the number of the class."""

from __future__ import annotations

from pathlib import Path

from boards.errors import ChoiceError, FileAccessError, RangeError
from systolic.evaluation.layouts.darknet import Classes
from systolic.evaluation.layouts.labelled import LabelledPicture, LabelledSet, class_label, pictures_below


def read_class_folders(folder: Path, classes: Classes) -> LabelledSet:
    """Read each folder with images as one class. If there is no such folder, the images have no labels.

    Raises:
        FileAccessError: There is no such folder.
        ChoiceError, RangeError: The network does not have a class.
    """
    if not folder.is_dir():
        remedy = f"name a folder of {folder.parent} with --split, or leave it out"
        raise FileAccessError(str(folder), "does not exist", "folder", remedy=remedy)
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
    what, remedy = "the name of a folder of pictures", "rename it, or give --names FILE"
    if not classes.labels:
        raise RangeError(what, folder.name, 0, classes.count - 1, integer=True, where=str(folder), remedy=remedy)
    remedy = f"rename it as a class or as its number, 0 to {classes.count - 1}, or give --names FILE"
    raise ChoiceError(what, folder.name, classes.labels, where=str(folder), remedy=remedy)
