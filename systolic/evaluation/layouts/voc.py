"""The layouts of PASCAL VOC and of the DAC System Design Contest: one XML file per image.

VOC has the XML files in a folder of their own, numbers pixels from 1 and includes both edges in the box. The contest
has each XML file next to its image, and its edges are coordinates from 0.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from boards.errors import DamagedFileError, FileAccessError, InvalidValueError, cut, listed
from systolic.evaluation.layouts.labelled import (
    MAX_SET_FILE_BYTES,
    LabelledPicture,
    LabelledSet,
    Truth,
    is_box,
    pictures_below,
    reading,
)

ANNOTATIONS, PICTURES = "Annotations", "JPEGImages"
_EDGES = ("xmin", "ymin", "xmax", "ymax")


def read_voc(folder: Path, split: str | None) -> LabelledSet:
    """Read a PASCAL VOC dataset, a folder with the subfolders ``Annotations`` and ``JPEGImages``.

    Args:
        folder: The folder.
        split: The name of a list in ``ImageSets/Main``. None reads all images.

    Raises:
        FileAccessError: An image or the split does not exist.
        SystolicError: An error of ``read_xml``.
    """
    names, place = _split(folder, split), folder / PICTURES
    by_name = (
        {path.stem: path for path in reversed(pictures_below(place)) if path.parent == place} if place.is_dir() else {}
    )
    pictures = []
    for name in names:
        if name not in by_name:  # this also refuses names with folders, such as "../a"
            reason = f"does not exist, and {ANNOTATIONS}/{cut(name)}.xml describes it"
            raise FileAccessError(f"{place / cut(name)}.jpg", reason, "picture")
        truths = read_xml(folder / ANNOTATIONS / f"{name}.xml", first_pixel=1)
        pictures.append(LabelledPicture(by_name[name], truths))
    return LabelledSet("PASCAL VOC", tuple(pictures))


def _split(folder: Path, split: str | None) -> list[str]:
    """Return the names of the images of a split, without file extension. Without ``split``, return all names."""
    if split is None:
        return sorted(path.stem for path in (folder / ANNOTATIONS).glob("*.xml"))
    path = folder / "ImageSets" / "Main" / f"{split}.txt"
    if not path.is_file():
        names = listed(sorted(sibling.stem for sibling in path.parent.glob("*.txt"))) or "none"
        raise FileAccessError(str(path), "does not exist", "split", remedy=f"give --split one of {names}")
    with reading(path, MAX_SET_FILE_BYTES):
        return [line.split()[0] for line in path.read_text("utf-8").splitlines() if line.strip()]


def read_beside(folder: Path) -> LabelledSet:
    """Read a DAC-SDC dataset: all images of a folder and its subfolders, each with an XML file next to it.

    Raises:
        FileAccessError: An image has no XML file.
        SystolicError: An error of ``read_xml``.
    """
    paths = pictures_below(folder)
    missing = [path for path in paths if not path.with_suffix(".xml").is_file()]
    if missing:
        reason = f"does not exist; {len(missing):,} of {len(paths):,} pictures have no labels next to them"
        remedy = f"add {missing[0].stem}.xml or remove the picture"
        raise FileAccessError(str(missing[0].with_suffix(".xml")), reason, "file of labels", remedy=remedy)
    pictures = [LabelledPicture(path, read_xml(path.with_suffix(".xml"), first_pixel=0)) for path in paths]
    return LabelledSet("DAC-SDC", tuple(pictures))


def read_xml(path: Path, first_pixel: int) -> tuple[Truth, ...]:
    """Return the labelled objects of one image from its XML file.

    Args:
        path: The file.
        first_pixel: The number of the first column and row.

    Raises:
        DamagedFileError: The file is not XML.
        InvalidValueError: An object has no name or no box.
    """
    with reading(path):
        try:
            root = ElementTree.fromstring(path.read_bytes())
        except (ElementTree.ParseError, ValueError, LookupError) as error:  # the last two of its encoding
            raise DamagedFileError(str(path), f"is not XML ({cut(error)}); was it cut off?") from error
    return tuple(
        _truth(element, first_pixel, f"{path}, object {number}")
        for number, element in enumerate(root.iter("object"), 1)
    )


def _truth(element: ElementTree.Element, first_pixel: int, place: str) -> Truth:
    texts = [element.findtext(f"bndbox/{edge}") for edge in _EDGES]
    try:
        x0, y0, x1, y1 = (float(text or "") for text in texts)
    except ValueError as error:
        raise InvalidValueError("bndbox", texts, f"{', '.join(_EDGES)} as numbers", where=place) from error
    label = (element.findtext("name") or "").strip()
    box = (x0 - first_pixel, y0 - first_pixel, x1, y1)
    if not label or not (is_box(box) and box[0] < box[2] and box[1] < box[3]):
        raise InvalidValueError("an object", (label, *texts), "a name and a box with an area", where=place)
    return Truth(label, box, difficult=(element.findtext("difficult") or "0").strip() == "1")
