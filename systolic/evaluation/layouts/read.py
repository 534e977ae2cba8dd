"""Finds out which layout a labelled dataset has, and reads it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from boards.errors import FileAccessError
from host.vision.detection import label_of
from systolic.evaluation.layouts import coco, darknet, voc
from systolic.evaluation.layouts.classes import read_class_folders
from systolic.evaluation.layouts.darknet import Classes
from systolic.evaluation.layouts.labelled import LabelledPicture, LabelledSet, known_labels, pictures_below
from systolic.pictures import ENDINGS


def read_labelled(data: Path, classes: Classes, split: str | None = None, classifier: bool = False) -> LabelledSet:
    """Read a folder in one of the layouts, a list of images (.txt) or COCO annotations (.json).

    Images without any label file are a set without labels.

    Args:
        data: The folder or file.
        classes: The network's classes.
        split: The part of the set to read, if the set has several parts.
        classifier: Whether each subfolder contains the images of one class.

    Raises:
        FileAccessError: There is no image.
        SystolicError: An error of the layout's reader.
    """
    labelled = _read(data, classes, split, classifier)
    if not labelled.pictures:
        reason = f"holds no picture ({', '.join(ENDINGS)})"
        raise FileAccessError(str(data), reason, "folder", remedy="name a folder with pictures")
    if classifier or not labelled.is_labelled:
        return labelled
    names = tuple(label_of(classes.labels, index) for index in range(classes.count))
    pictures, note = known_labels(labelled.pictures, names)
    return replace(labelled, pictures=pictures, notes=(*labelled.notes, note) if note else labelled.notes)


def _read(data: Path, classes: Classes, split: str | None, classifier: bool) -> LabelledSet:
    if data.suffix == ".json" and data.is_file():
        return coco.read_file(data)
    if data.is_file():
        return darknet.read_list(data, classes)
    if not data.is_dir():
        remedy = "name a folder with pictures and their labels with --data"
        raise FileAccessError(str(data), "does not exist", "folder", remedy=remedy)
    return _read_folder(data, classes, split, classifier)


def _read_folder(data: Path, classes: Classes, split: str | None, classifier: bool) -> LabelledSet:
    if classifier:
        return read_class_folders(data if split is None else data / split, classes)
    if (data / voc.ANNOTATIONS).is_dir():
        return voc.read_voc(data, split)
    if coco.annotation_files(data):
        return coco.read_coco(data, split)
    pictures = pictures_below(data)
    if any(darknet.label_file(picture) for picture in pictures):
        return darknet.read_folder(data, split, classes)
    if any(picture.with_suffix(".xml").is_file() for picture in pictures):
        return _one_class(voc.read_beside(data), classes)
    return LabelledSet("pictures without labels", tuple(map(LabelledPicture, pictures)))


def _one_class(labelled: LabelledSet, classes: Classes) -> LabelledSet:
    """Give all objects the only class of a one-class network, because the DAC-SDC contest scores boxes only."""
    if classes.count != 1:
        return labelled
    label = label_of(classes.labels, 0)
    pictures = tuple(
        replace(picture, truths=tuple(replace(truth, label=label) for truth in picture.truths or ()))
        for picture in labelled.pictures
    )
    return replace(labelled, pictures=pictures)
