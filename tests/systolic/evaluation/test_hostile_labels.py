"""Hostile datasets: each is refused with an error, soon, and without reading a file outside the dataset's folder."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from boards.errors import DamagedFileError, FileAccessError, InvalidValueError, RangeError, SystolicError
from systolic.evaluation.layouts.darknet import MAX_PICTURES
from systolic.evaluation.layouts.labelled import MAX_LABEL_FILE_BYTES, MAX_SET_FILE_BYTES, pictures_below
from systolic.evaluation.layouts.read import read_labelled
from tests.support.cases import cases
from tests.support.errors import raises
from tests.support.labelled_sets import CLASSES, XML, beside, coco, contest, darknet_list, picture, text, voc

INSTANCES = "annotations/instances_val2017.json"

Refused = TypeVar("Refused", bound=SystolicError)


def refused(data: Path, kind: type[Refused], split: str | None = None) -> Refused:
    """Read a dataset that must be refused, and return the error, whose class must be exactly ``kind``."""
    with raises(kind) as caught:
        read_labelled(data, CLASSES, split)
    return caught.value


def changed(folder: Path, change: Callable[[Any], None]) -> Path:
    """Write a dataset in COCO's layout with ``change`` applied to its annotations, and return ``folder``."""
    path = coco(folder) / INSTANCES
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return folder


@cases("value", [math.nan, math.inf, -math.inf, 1e308, 10**400, 1e10])
def test_read_labelled_refuses_coco_boxes_with_extreme_numbers(value: float, tmp_path: Path) -> None:
    for edge in range(4):
        folder = tmp_path / str(edge)
        data = changed(folder, lambda content, edge=edge: content["annotations"][1]["bbox"].__setitem__(edge, value))  # type: ignore[misc]
        error = refused(data, InvalidValueError)
        assert (error.what, error.where) == ("bbox", f"{folder / INSTANCES}, annotation 1")


@cases("value", ["nan", "inf", "1e300"])
def test_read_labelled_refuses_voc_boxes_with_extreme_numbers(value: str, tmp_path: Path) -> None:
    text(voc(tmp_path) / "Annotations/a.xml", XML.replace("xmax>30", f"xmax>{value}"))
    error = refused(tmp_path, InvalidValueError)
    assert (error.where, error.required) == (f"{tmp_path}/Annotations/a.xml, object 1", "a name and a box with an area")


@cases("name", ["../outside.jpg", "{folder}/outside.jpg", "val2017/../../outside.jpg"])
def test_read_labelled_refuses_coco_pictures_outside_the_folder(name: str, tmp_path: Path) -> None:
    picture(tmp_path / "outside.jpg")
    name = name.format(folder=tmp_path)
    data = changed(tmp_path / "set", lambda content: content["images"][0].update(file_name=name))
    error = refused(data, InvalidValueError)
    assert (error.got, error.required) == (name, "a path in the folder of the set")


@cases("name", ["a" * 300, "\0", "\ud800", "a/" * 3000])
def test_read_labelled_refuses_impossible_file_names(name: str, tmp_path: Path) -> None:
    data = changed(tmp_path / "set", lambda content: content["images"][0].update(file_name=name))
    assert refused(data, FileAccessError).path == name
    if "\ud800" not in name:
        listing = text(tmp_path / "list.txt", f"{name}\n{picture_of(tmp_path)}\n")
        assert "names 2 pictures, of which 1 do not exist" in refused(listing, FileAccessError).reason


def picture_of(folder: Path) -> Path:
    picture(folder / "known.png")
    return folder / "known.png"


@cases("name", ["../../*", "/etc/*", "**x", "../a", "a/../a", "\0", "b" * 300, "[", "."])
def test_read_labelled_refuses_patterns_and_paths_in_a_split(name: str, tmp_path: Path) -> None:
    text(voc(tmp_path) / "ImageSets/Main/test.txt", f"a\n{name}\n")
    assert refused(tmp_path, FileAccessError, split="test").what == "picture"


@cases("encoding", ["nothing", "idna", "utf-7", "rot13", "undefined", "punycode"])
def test_read_labelled_refuses_xml_with_an_unusable_encoding(encoding: str, tmp_path: Path) -> None:
    text(voc(tmp_path) / "Annotations/a.xml", f'<?xml version="1.0" encoding="{encoding}"?>{XML}')
    assert refused(tmp_path, DamagedFileError).reason.startswith("is not XML")


def test_read_labelled_refuses_xml_with_nested_entities(tmp_path: Path) -> None:
    entities = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10 if i else "dog" * 100}">' for i in range(9))
    laughs = f"<!DOCTYPE annotation [{entities}]>" + XML.replace("<name>dog", "<name>&e8;")
    text(voc(tmp_path) / "Annotations/a.xml", laughs)
    assert refused(tmp_path, DamagedFileError).reason.startswith("is not XML")


FILES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "darknet": (beside, "a.txt"),
    "list": (darknet_list, "valid.txt"),
    "VOC": (voc, "Annotations/a.xml"),
    "COCO": (coco, INSTANCES),
    "contest": (contest, "boat1/a.xml"),
}


@cases("layout", FILES)
def test_read_labelled_does_not_block_on_pipes_or_devices(layout: str, tmp_path: Path) -> None:
    write, name = FILES[layout]
    makers: tuple[Callable[[Path], None], ...] = (os.mkfifo, lambda path: path.symlink_to("/dev/zero"))
    for number, make in enumerate(makers):
        folder = tmp_path / str(number)
        path = write(folder) / name if layout != "list" else write(folder)
        path.unlink()
        make(path)
        if layout == "darknet":  # only regular files count as labels of a picture in this layout
            assert not read_labelled(folder, CLASSES).is_labelled
            continue
        error = refused(path if layout == "list" else folder, FileAccessError)
        assert error.path == str(path)


@cases("layout", FILES)
def test_read_labelled_refuses_a_large_file_before_reading(layout: str, tmp_path: Path) -> None:
    write, name = FILES[layout]
    written = write(tmp_path)
    path, largest = tmp_path / name, MAX_SET_FILE_BYTES if layout in ("COCO", "list") else MAX_LABEL_FILE_BYTES
    os.truncate(path, largest + 1)
    error = refused(path if layout == "list" else written, FileAccessError)
    assert error.path == str(path)
    assert error.reason == f"has {largest + 1:,} bytes, and at most {largest:,} are read"


def test_read_labelled_refuses_a_large_json_next_to_pictures(tmp_path: Path) -> None:
    picture(tmp_path / "a.png")
    (tmp_path / "a.json").touch()
    assert not read_labelled(tmp_path, CLASSES).is_labelled
    os.truncate(tmp_path / "a.json", MAX_SET_FILE_BYTES + 1)
    assert refused(tmp_path, FileAccessError).path == str(tmp_path / "a.json")


def test_read_labelled_limits_the_values_of_a_coco_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("systolic.evaluation.layouts.coco.MAX_OBJECTS", 10)
    error = refused(coco(tmp_path), RangeError)
    assert (error.what, error.high) == ("the number of lists and objects", 10)
    monkeypatch.setattr("systolic.evaluation.layouts.coco.MAX_OBJECTS", 13)
    monkeypatch.setattr("systolic.evaluation.layouts.coco.MAX_NUMBERS", 3)
    error = refused(tmp_path, RangeError)
    assert (error.what, error.high) == ("the number of numbers", 3)


def test_read_labelled_limits_the_lines_of_a_list(tmp_path: Path) -> None:
    text(tmp_path / "list.txt", "\n" * (MAX_PICTURES + 1))
    error = refused(tmp_path / "list.txt", RangeError)
    assert (error.got, error.high, error.where) == (MAX_PICTURES + 1, MAX_PICTURES, str(tmp_path / "list.txt"))


def test_read_labelled_discards_outlines(tmp_path: Path) -> None:
    """Discard the outlines of objects while parsing, so that their size and nesting depth do not matter."""
    data = changed(tmp_path, lambda content: content["annotations"][0].update(segmentation=[[1.0] * 100] * 100))
    assert read_labelled(data, CLASSES).is_labelled
    path = tmp_path / INSTANCES
    path.write_text(path.read_text().replace('"segmentation": ', '"segmentation": ' + "[" * 100_000, 1))
    assert refused(data, DamagedFileError).reason.startswith("is not JSON")


def test_pictures_below_reads_folders_deeper_than_the_recursion_limit(tmp_path: Path) -> None:
    place = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=place)
        inner = os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(place)
    picture(tmp_path / "a.png")
    assert pictures_below(tmp_path) == (tmp_path / "a.png",)
    _removed(tmp_path / "d")


def _removed(folder: Path) -> None:
    """Remove nested folders named d without recursion, because shutil.rmtree would exceed Python's recursion limit."""
    place = folder
    while (place / "d").is_dir():
        (place / "d").rename(folder.with_name("inner"))
        place.rmdir()
        folder.with_name("inner").rename(place)
    place.rmdir()


def test_pictures_below_does_not_follow_circular_links(tmp_path: Path) -> None:
    picture(tmp_path / "a.png")
    (tmp_path / "again").symlink_to(tmp_path)
    (tmp_path / "self.png").symlink_to(tmp_path / "self.png")
    assert pictures_below(tmp_path) == (tmp_path / "a.png",)


def test_read_labelled_refuses_a_missing_split_of_a_classifier(tmp_path: Path) -> None:
    picture(tmp_path / "val/cat/x.png")
    with raises(FileAccessError, path=str(tmp_path / "train"), reason="does not exist"):
        read_labelled(tmp_path, CLASSES, "train", classifier=True)
