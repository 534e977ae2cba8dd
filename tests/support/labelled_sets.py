"""The same objects in every layout of labelled sets, written to a folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from PIL import Image

from systolic.evaluation.layouts.darknet import Classes
from systolic.evaluation.layouts.labelled import Truth

CLASSES = Classes(("cat", "dog"), 2)


WIDTH, HEIGHT = 40, 20


OBJECTS = {"a": [Truth("dog", (10, 5, 30, 15)), Truth("cat", (0, 0, 4, 8))], "b": []}


XML = """<annotation><filename>a.jpg</filename>
<object><name>dog</name><difficult>0</difficult>
<bndbox><xmin>11</xmin><ymin>6</ymin><xmax>30</xmax><ymax>15</ymax></bndbox></object>
<object><name>cat</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>4</xmax><ymax>8</ymax></bndbox></object>
</annotation>"""


NOTHING = "<annotation></annotation>"


def picture(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.zeros((HEIGHT, WIDTH, 3), np.uint8)).save(path)


def text(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


LINES = "1 0.5 0.5 0.5 0.5\n0 0.05 0.2 0.1 0.4\n"


def yolo(folder: Path) -> Path:
    for name in OBJECTS:
        picture(folder / f"images/{name}.png")
    text(folder / "labels/a.txt", LINES)
    text(folder / "labels/b.txt", "")
    return folder


def yolo_split(folder: Path) -> Path:
    for name in OBJECTS:
        picture(folder / f"images/val/{name}.png")
    text(folder / "labels/val/a.txt", LINES)
    return folder


def darknet_list(folder: Path) -> Path:
    for name in OBJECTS:
        picture(folder / f"VOC/JPEGImages/{name}.jpg")
    text(folder / "VOC/labels/a.txt", LINES)
    return text(folder / "valid.txt", "VOC/JPEGImages/a.jpg\nVOC/JPEGImages/b.jpg\n")


def beside(folder: Path) -> Path:
    for name in OBJECTS:
        picture(folder / f"{name}.jpg")
    text(folder / "a.txt", LINES)
    text(folder / "classes.txt", "cat\ndog\n")
    return folder


def voc(folder: Path) -> Path:
    for name in OBJECTS:
        picture(folder / f"JPEGImages/{name}.jpg")
        text(folder / f"Annotations/{name}.xml", XML if name == "a" else NOTHING)
    text(folder / "ImageSets/Main/test.txt", "a\nb\n")
    return folder


def coco(folder: Path) -> Path:
    for name in OBJECTS:
        picture(folder / f"val2017/{name}.jpg")
    content = {
        "images": [{"id": 7, "file_name": "a.jpg"}, {"id": 9, "file_name": "b.jpg"}],
        "categories": [{"id": 3, "name": "cat"}, {"id": 18, "name": "dog"}],
        "annotations": [
            {"id": 1, "image_id": 7, "category_id": 18, "bbox": [10, 5, 20, 10], "iscrowd": 0},
            {"id": 2, "image_id": 7, "category_id": 3, "bbox": [0, 0, 4, 8]},
        ],
    }
    text(folder / "annotations/instances_val2017.json", json.dumps(content))
    return folder


def contest(folder: Path) -> Path:
    shifted = XML.replace("<xmin>11", "<xmin>10").replace("<ymin>6", "<ymin>5").replace("min>1<", "min>0<")
    for name in OBJECTS:
        picture(folder / f"boat1/{name}.jpg")
        text(folder / f"boat1/{name}.xml", shifted if name == "a" else NOTHING)
    return folder
