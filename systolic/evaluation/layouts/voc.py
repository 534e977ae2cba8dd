"""PASCAL VOC's layout, an XML file a picture, and that of the DAC System Design Contest, where it lies beside it.

VOC counts pixels from 1 and both edges are in the box; the contest's edges are coordinates from 0.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from boards.errors import LabelError, cut, listed, shown
from systolic.evaluation.layouts.labelled import (
    LARGEST_SET,
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
    """A folder with ``Annotations`` and ``JPEGImages``; split: of ``ImageSets/Main``, else all. LabelError."""
    names, place = _split(folder, split), folder / PICTURES
    by_name = (
        {path.stem: path for path in reversed(pictures_below(place)) if path.parent == place} if place.is_dir() else {}
    )
    pictures = []
    for name in names:
        if name not in by_name:  # then the name is no path either
            raise LabelError(
                f"{place / cut(name)}.jpg: there is no such picture, and {ANNOTATIONS}/{cut(name)}.xml describes it"
            )
        truths = read_xml(folder / ANNOTATIONS / f"{name}.xml", first_pixel=1)
        pictures.append(LabelledPicture(by_name[name], truths))
    return LabelledSet("PASCAL VOC", tuple(pictures))


def _split(folder: Path, split: str | None) -> list[str]:
    """Names of pictures without an ending."""
    if split is None:
        return sorted(path.stem for path in (folder / ANNOTATIONS).glob("*.xml"))
    path = folder / "ImageSets" / "Main" / f"{split}.txt"
    if not path.is_file():
        names = listed(sorted(sibling.stem for sibling in path.parent.glob("*.txt"))) or "none"
        raise LabelError(f"{path}: there is no such file; --split is one of {names}")
    with reading(path, LARGEST_SET):
        return [line.split()[0] for line in path.read_text("utf-8").splitlines() if line.strip()]


def read_beside(folder: Path) -> LabelledSet:
    """Pictures with an XML file each of the same name beside them, at any depth. LabelError where one has none."""
    paths = pictures_below(folder)
    missing = [path for path in paths if not path.with_suffix(".xml").is_file()]
    if missing:
        raise LabelError(
            f"each picture needs its labels beside it, but {len(missing):,} of {len(paths):,} have none, as "
            f"{cut(missing[0])}; add {missing[0].stem}.xml or take the picture away"
        )
    pictures = [LabelledPicture(path, read_xml(path.with_suffix(".xml"), first_pixel=0)) for path in paths]
    return LabelledSet("DAC-SDC", tuple(pictures))


def read_xml(path: Path, first_pixel: int) -> tuple[Truth, ...]:
    """The objects of a file. first_pixel: what the first column is called. LabelError names the file and the object."""
    with reading(path):
        try:
            root = ElementTree.fromstring(path.read_bytes())
        except (ElementTree.ParseError, ValueError, LookupError) as error:  # the last two of its encoding
            raise LabelError(f"{path}: the file is no XML ({cut(error)}); was it cut off?") from error
    return tuple(
        _truth(element, first_pixel, f"{path}, object {number}")
        for number, element in enumerate(root.iter("object"), 1)
    )


def _truth(element: ElementTree.Element, first_pixel: int, place: str) -> Truth:
    texts = [element.findtext(f"bndbox/{edge}") for edge in _EDGES]
    try:
        x0, y0, x1, y1 = (float(text or "") for text in texts)
    except ValueError as error:
        raise LabelError(f"{place}: bndbox has {', '.join(_EDGES)} as numbers, not {shown(texts)}") from error
    label = (element.findtext("name") or "").strip()
    box = (x0 - first_pixel, y0 - first_pixel, x1, y1)
    if not label or not (is_box(box) and box[0] < box[2] and box[1] < box[3]):
        raise LabelError(f"{place}: an object has a name and a box with an area, not {shown((label, *texts))}")
    return Truth(label, box, difficult=(element.findtext("difficult") or "0").strip() == "1")
