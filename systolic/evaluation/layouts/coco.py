"""COCO's layout: one JSON file for all images, with boxes as x, y, width and height in pixels."""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from boards.errors import (
    DamagedFileError,
    FileAccessError,
    InvalidValueError,
    MissingValueError,
    RangeError,
    cut,
    listed,
)
from systolic.evaluation.layouts.labelled import (
    MAX_SET_FILE_BYTES,
    LabelledPicture,
    LabelledSet,
    Truth,
    is_box,
    is_file,
    reading,
)

MAX_NUMBERS, MAX_OBJECTS = 1 << 26, 1 << 23
"""The most numbers, and the most lists and objects, that a file may have, with the outlines of the labelled objects.

The limits exist because each takes more bytes in Python's memory than in the file.
"""

_KEYS = frozenset(
    {"annotations", "bbox", "categories", "category_id", "file_name", "id", "image_id", "images", "iscrowd", "name"}
)


def annotation_files(folder: Path) -> tuple[Path, ...]:
    """Return the JSON files that may be COCO annotations.

    These are all JSON files in the subfolder ``annotations``. Without any, they are the folder's own JSON files that
    have the key ``annotations``.
    """
    named = sorted((folder / "annotations").glob("*.json"))
    return tuple(named or (path for path in sorted(folder.glob("*.json")) if _has_annotations(path)))


def _has_annotations(path: Path) -> bool:
    """Return whether a JSON file has the key ``annotations``.

    Raises:
        SystolicError: An error of ``reading``.
    """
    if not is_file(path):
        return False
    with reading(path, MAX_SET_FILE_BYTES), path.open("rb") as file:
        if not path.stat().st_size:
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return data.find(b'"annotations"') >= 0


def read_coco(folder: Path, split: str | None) -> LabelledSet:
    """Read the images and boxes of a folder's only annotation file, or of the only one whose name ends in ``split``.

    Raises:
        MissingValueError: Not exactly one file fits.
        SystolicError: An error of ``read_file``.
    """
    files = [path for path in annotation_files(folder) if split is None or path.stem.endswith(split)]
    if len(files) != 1:
        names = listed(path.name for path in annotation_files(folder))
        remedy = "give the end of one file's name, such as val2017"
        raise MissingValueError("--split", f"{folder} has the annotations {names}", remedy=remedy)
    return read_file(files[0])


def read_file(path: Path) -> LabelledSet:
    """Read the images and boxes of one COCO annotation file. The images are near it; see ``_folders``.

    Raises:
        RangeError: It has more lists or numbers than are read.
        DamagedFileError: It is not JSON in the form of COCO.
        FileAccessError: One of its pictures does not exist.
        InvalidValueError: A box is not four numbers, or a picture is outside the folder.
    """
    with reading(path, MAX_SET_FILE_BYTES):
        text = path.read_text("utf-8")
    counts = (
        ("numbers", text.count(","), MAX_NUMBERS),
        ("lists and objects", text.count("[") + text.count("{"), MAX_OBJECTS),
    )
    for what, count, most in counts:
        if count > most:
            raise RangeError(f"the number of {what}", count, high=most, where=str(path), remedy="split the file")
    try:
        content = json.loads(text, object_pairs_hook=_wanted)
        labels = {category["id"]: str(category["name"]) for category in content["categories"]}
        names = {image["id"]: str(image["file_name"]) for image in content["images"]}
        truths: dict[Any, list[Truth]] = {key: [] for key in names}
        for number, annotation in enumerate(content["annotations"]):
            truths[annotation["image_id"]].append(_truth(annotation, labels, f"{path}, annotation {number}"))
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(str(path), f"is not JSON ({cut(error)}); was it cut off?") from error
    except (KeyError, TypeError, AttributeError) as error:
        reason = (
            "does not have images, categories, and annotations that name both by their id: "
            f"{cut(error)} is missing or of another kind"
        )
        raise DamagedFileError(str(path), reason) from error
    folders = _folders(path)
    pictures = [LabelledPicture(_picture(name, folders, path), tuple(truths[key])) for key, name in names.items()]
    return LabelledSet("COCO", tuple(pictures))


def _wanted(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object with only the keys in ``_KEYS``, so that the outlines of objects take no memory."""
    return {key: value for key, value in pairs if key in _KEYS}


def _truth(annotation: Mapping[str, Any], labels: Mapping[Any, str], place: str) -> Truth:
    try:
        x, y, width, height = (float(value) for value in annotation["bbox"])
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidValueError("bbox", annotation.get("bbox"), "four numbers", where=place) from error
    box = (x, y, x + width, y + height)
    if not is_box(box):
        raise InvalidValueError("bbox", annotation.get("bbox"), "four numbers of pixels", where=place)
    crowd = bool(annotation.get("iscrowd", 0))
    return Truth(labels[annotation["category_id"]], box, crowd=crowd)


def _folders(path: Path) -> list[Path]:
    """Return the folders in which the images of a COCO annotation file may be."""
    roots = [path.parent, path.parent.parent] if path.parent.name == "annotations" else [path.parent]
    return [place for root in roots for place in (root, *sorted(p for p in root.iterdir() if p.is_dir()))] + [
        place for root in roots if (root / "images").is_dir() for place in sorted((root / "images").iterdir())
    ]


def _picture(name: str, folders: Iterable[Path], path: Path) -> Path:
    named = PurePosixPath(name)
    if named.is_absolute() or ".." in named.parts:
        raise InvalidValueError("the name of a picture", name, "a path in the folder of the set", where=str(path))
    picture = next((place for folder in folders if is_file(place := folder / name)), None)
    if picture is None:
        reason = f"is in none of {listed(map(str, folders), 6)}"
        raise FileAccessError(name, reason, "picture", where=str(path))
    return picture
