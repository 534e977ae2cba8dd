"""Dataset layouts: every layout gives the same objects, and a broken file is refused with its path and line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from boards.errors import (
    ChoiceError,
    DamagedFileError,
    FileAccessError,
    InvalidValueError,
    MismatchError,
    MissingValueError,
    RangeError,
    SystolicError,
)
from systolic.evaluation.layouts.coco import annotation_files
from systolic.evaluation.layouts.darknet import Classes
from systolic.evaluation.layouts.labelled import LabelledSet, Truth
from systolic.evaluation.layouts.read import read_labelled
from tests.support.cases import cases
from tests.support.errors import raises
from tests.support.labelled_sets import (
    CLASSES,
    HEIGHT,
    LINES,
    OBJECTS,
    WIDTH,
    XML,
    beside,
    coco,
    contest,
    darknet_list,
    picture,
    text,
    voc,
    yolo,
    yolo_split,
)


def objects(labelled: LabelledSet) -> dict[str, list[Truth]]:
    """Return the objects of each picture by the stem of its file name, with boxes in pixels."""
    pixels = [each.in_pixels(WIDTH, HEIGHT) for each in labelled.pictures]
    return {each.path.stem: list(each.truths or ()) for each in pixels}


@cases("write", [yolo, yolo_split, darknet_list, beside, voc, coco, contest])
def test_read_labelled_of_every_layout_gives_the_same_objects(write: Callable[[Path], Path], tmp_path: Path) -> None:
    labelled = read_labelled(write(tmp_path), CLASSES)
    assert labelled.is_labelled
    seen = objects(labelled)
    assert list(seen) == ["a", "b"]
    assert [truth.label for truth in seen["a"]] == ["dog", "cat"]
    for truth, expected in zip(seen["a"], OBJECTS["a"], strict=True):
        assert truth.box == pytest.approx(expected.box)
    assert seen["b"] == []


@cases("write, split", [(voc, "test"), (coco, "val2017"), (yolo_split, "val")])
def test_read_labelled_reads_the_named_split(write: Callable[[Path], Path], split: str, tmp_path: Path) -> None:
    assert list(objects(read_labelled(write(tmp_path), CLASSES, split))) == ["a", "b"]
    with pytest.raises((FileAccessError, MissingValueError)) as caught:
        read_labelled(tmp_path, CLASSES, "train")
    assert "--split" in str(caught.value)


def test_read_labelled_of_several_sets_requires_a_split(tmp_path: Path) -> None:
    yolo_split(tmp_path)
    picture(tmp_path / "images/train/c.png")
    with raises(MissingValueError, what="--split", reason=f"{tmp_path}/images holds several sets: train, val"):
        read_labelled(tmp_path, CLASSES)
    assert list(objects(read_labelled(tmp_path, CLASSES, "train"))) == ["c"]


def test_read_labelled_of_one_class_ignores_the_names_of_the_contest(tmp_path: Path) -> None:
    labelled = read_labelled(contest(tmp_path), Classes(("thing",), 1))
    assert {truth.label for truth in objects(labelled)["a"]} == {"thing"}


def test_read_labelled_of_pictures_alone_has_no_labels(tmp_path: Path) -> None:
    picture(tmp_path / "a.png")
    labelled = read_labelled(tmp_path, CLASSES)
    assert not labelled.is_labelled
    assert not read_labelled(tmp_path, CLASSES, classifier=True).is_labelled


def test_read_labelled_reports_pictures_without_a_label_file(tmp_path: Path) -> None:
    assert "1 of 2 pictures have no file of labels" in read_labelled(beside(tmp_path), CLASSES).notes[0]


def test_read_labelled_takes_classes_from_folder_names_or_numbers(tmp_path: Path) -> None:
    picture(tmp_path / "val/cat/x.png")
    picture(tmp_path / "val/1/y.png")
    labelled = read_labelled(tmp_path, CLASSES, "val", classifier=True)
    assert {each.path.stem: each.category for each in labelled.pictures} == {"x": "cat", "y": "dog"}
    picture(tmp_path / "val/horse/z.png")
    with raises(ChoiceError, got="horse", choices=("cat", "dog"), where=str(tmp_path / "val/horse")):
        read_labelled(tmp_path, CLASSES, "val", classifier=True)


def test_read_labelled_marks_difficult_objects_and_crowds(tmp_path: Path) -> None:
    voc(tmp_path)
    text(tmp_path / "Annotations/a.xml", XML.replace("difficult>0", "difficult>1"))
    assert [truth.counts for truth in objects(read_labelled(tmp_path, CLASSES))["a"]] == [False, True]
    path = coco(tmp_path / "coco") / "annotations/instances_val2017.json"
    path.write_text(path.read_text().replace('"iscrowd": 0', '"iscrowd": 1'))
    assert [truth.crowd for truth in objects(read_labelled(path, CLASSES))["a"]] == [True, False]


def test_read_labelled_omits_and_reports_objects_of_other_classes(tmp_path: Path) -> None:
    labelled = read_labelled(voc(tmp_path), Classes(("cat",), 1))
    assert [truth.label for truth in objects(labelled)["a"]] == ["cat"]
    assert "1 of 2 objects are of classes that the network does not have (dog): left out" in labelled.notes
    with raises(MismatchError, what="a label of the pictures", got="cat, dog", expected="one of horse"):
        read_labelled(tmp_path, Classes(("horse",), 1))


IN_FRACTIONS = "divide pixels by the picture's width and height"
COCO_FILE = "annotations/instances_val2017.json"
BROKEN: dict[str, tuple[Callable[[Path], Path], str, str, type[SystolicError], dict[str, object]]] = {
    "words": (beside, "a.txt", "1 0.5 0.5 0.5\n", InvalidValueError, {"where": "a.txt:1", "got": "1 0.5 0.5 0.5"}),
    "a class": (beside, "a.txt", LINES + "2 .5 .5 .1 .1\n", RangeError, {"where": "a.txt:3", "got": 2, "high": 1}),
    "pixels": (beside, "a.txt", "1 20 10 8 8\n", InvalidValueError, {"where": "a.txt:1", "remedy": IN_FRACTIONS}),
    "no number": (beside, "a.txt", "1 nan .5 .1 .1\n", InvalidValueError, {"where": "a.txt:1"}),
    "no XML": (voc, "Annotations/a.xml", XML[:100], DamagedFileError, {"path": "Annotations/a.xml"}),
    "no box": (
        voc,
        "Annotations/a.xml",
        XML.replace("xmin>11", "xmin>e"),
        InvalidValueError,
        {"where": "Annotations/a.xml, object 1", "what": "bndbox", "got": ["e", "6", "30", "15"]},
    ),
    "no area": (
        voc,
        "Annotations/a.xml",
        XML.replace("xmin>11", "xmin>99"),
        InvalidValueError,
        {"where": "Annotations/a.xml, object 1", "got": ("dog", "99", "6", "30", "15")},
    ),
    "no JSON": (coco, COCO_FILE, "{", DamagedFileError, {"path": COCO_FILE}),
    "no images": (coco, COCO_FILE, '{"categories": []}', DamagedFileError, {"path": COCO_FILE}),
    "a list": (
        darknet_list,
        "valid.txt",
        "x.jpg\n",
        FileAccessError,
        {"path": "valid.txt", "what": "list of pictures"},
    ),
}


@cases("case", BROKEN)
def test_read_labelled_of_a_broken_file_names_its_place(case: str, tmp_path: Path) -> None:
    write, name, content, kind, fields = BROKEN[case]
    data = write(tmp_path)
    text(tmp_path / name, content)
    expected = {
        field: f"{tmp_path}/{value}" if field in ("path", "where") else value for field, value in fields.items()
    }
    with raises(kind, **expected):
        read_labelled(data, CLASSES)


@cases("write, name", [(voc, "JPEGImages/a.jpg"), (coco, "val2017/a.jpg")])
def test_read_labelled_names_a_missing_picture(write: Callable[[Path], Path], name: str, tmp_path: Path) -> None:
    (write(tmp_path) / name).unlink()
    with raises(FileAccessError, what="picture") as caught:
        read_labelled(tmp_path, CLASSES)
    assert caught.value.path.endswith("a.jpg")


def test_read_labelled_refuses_missing_and_empty_folders(tmp_path: Path) -> None:
    with raises(FileAccessError, path=str(tmp_path / "x"), reason="does not exist"):
        read_labelled(tmp_path / "x", CLASSES)
    with raises(FileAccessError, path=str(tmp_path)):
        read_labelled(tmp_path, CLASSES)
    contest(tmp_path)
    (tmp_path / "boat1/b.xml").unlink()
    with raises(FileAccessError, path=str(tmp_path / "boat1/b.xml"), remedy="add b.xml or remove the picture"):
        read_labelled(tmp_path, CLASSES)


@cases(
    "line, is_box",
    [
        ("0 0.5 0.5 1 1", True),
        ("0 0.5 0.5 1.019 1", True),
        ("0 0.5 0.5 1.021 1", False),
        ("0 0.5 0.5 1 1.021", False),
        ("0 0.51 0.5 1 1", True),
        ("0 0.511 0.5 1 1", False),
        ("0 0.489 0.5 1 1", False),
        ("0 0.5 0.489 1 1", False),
        ("0 0.4901 0.4901 1 1", True),
        ("0 0.5 0.5 0 1", False),
        ("0 0.5 0.5 1 0", False),
        ("0 0.5 0.5 -1 1", False),
        ("0.5 0.5 0.5 1 1", False),
        ("0 5 0.5 0.1 0.1", False),
    ],
)
def test_read_labelled_allows_boxes_outside_by_a_hundredth(line: str, is_box: bool, tmp_path: Path) -> None:
    picture(tmp_path / "a.jpg")
    text(tmp_path / "a.txt", line)
    if is_box:
        assert len(objects(read_labelled(tmp_path, CLASSES, None, False))["a"]) == 1
    else:
        with raises(InvalidValueError, got=line, where=f"{tmp_path}/a.txt:1"):
            read_labelled(tmp_path, CLASSES, None, False)


@cases("place", ["", "images", "val2017", "images/val2017"])
def test_read_labelled_finds_coco_pictures_in_several_folders(place: str, tmp_path: Path) -> None:
    coco(tmp_path)
    (tmp_path / place).mkdir(parents=True, exist_ok=True)
    for name in OBJECTS:
        (tmp_path / f"val2017/{name}.jpg").rename(tmp_path / place / f"{name}.jpg")
    labelled = read_labelled(tmp_path / "annotations/instances_val2017.json", CLASSES, None, False)
    assert objects(labelled) == OBJECTS


def test_annotation_files_omit_json_without_annotations(tmp_path: Path) -> None:
    text(tmp_path / "empty.json", "")
    text(tmp_path / "other.json", '{"images": []}')
    path = text(tmp_path / "some.json", '{"annotations": []}')
    (tmp_path / "folder.json").mkdir()
    assert annotation_files(tmp_path) == (path,)
