"""Fuzzing of a manifest's heads and of the maps that they read: random integers are decoded and drawn."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from boards.errors import InvalidValueError, ShapeError
from host.contract.codec import from_json, parse_json
from host.contract.parts import NetworkHead, TensorMap, check_tensor
from host.contract.tensors import to_floats
from host.vision.detection import detect
from host.vision.drawing import draw
from host.vision.heads.head import (
    CHOICES,
    KINDS,
    PROBABILITIES,
    PROBABLE,
    SEGMENTATION,
    VALUED,
    VALUES,
    FloatArray,
    Head,
)
from host.vision.heads.head import CLASSES as CLASSES_HEAD
from host.vision.heads.labels import chosen, chosen_of_pixels
from host.vision.heads.segmentation import segment
from host.vision.placement import Placement
from tests.fuzz.files import corpus
from tests.fuzz.files.hunt import hunt
from tests.fuzz.files.structured import JSON
from tests.fuzz.files.target import Target

SIDE, PICTURE = 32, (30, 20)
MAX_VALUES = 1 << 20


@dataclass(frozen=True)
class _Labels:
    labels: tuple[str, ...]


CLASSES = 2


def seeds() -> tuple[bytes, ...]:
    """Return a head of each kind, and the files that once showed a defect."""
    return (*(json.dumps(_described(kind)).encode() for kind in KINDS), *corpus.files("heads"))


def _described(kind: str) -> dict[str, Any]:
    anchors = [] if kind in ("anchor-free", SEGMENTATION, *CHOICES) else [[4.0, 9.0], [12.0, 3.0]]
    head = {"layer": 0, "kind": kind, "anchors": anchors, "classes": CLASSES, "coords": 4, "softmax": kind != "yolo"}
    head |= {"bins": 3, "scale_xy": 1.2} if kind not in CHOICES else {"k": 1}
    channels = Head.from_json(head).channels
    head |= {"bias": [0.5] * channels} if kind not in CHOICES else {}
    sides = (1, 1) if kind in ("cells", CLASSES_HEAD, VALUED, PROBABILITIES, PROBABLE) else (3, 4)
    tensor = {"channels": channels, "height": sides[0], "width": sides[1], "datatype": "INT8"}
    return {"head": head, "tensor": tensor | {"scale": 0.05, "zero_point": 3}, "labels": ["cat", "dog"]}


def read_head(path: Path) -> None:
    """Decode random integers with a head, as the host does with a manifest and with the output of a board."""
    values = parse_json(path.read_bytes(), path.name)
    if not isinstance(values, dict):
        raise InvalidValueError("a case", values, "an object")
    head = from_json(NetworkHead, values.get("head")).head
    tensor = from_json(TensorMap, values.get("tensor"))
    check_tensor("head", tensor, re.compile("INT8"), "INT8")
    if head.channels != tensor.channels or np.prod(tensor.shape) > MAX_VALUES:
        raise ShapeError(
            "the map of the head", tensor.shape, f"{head.channels} channels and at most {MAX_VALUES:,} values"
        )
    labels = from_json(_Labels, values).labels
    integers = np.random.default_rng(1).integers(-128, 128, tensor.shape, np.int16)
    placement = Placement(*PICTURE, SIDE, SIDE, 1, 6, SIDE - 2, SIDE - 12)
    picture = np.zeros((PICTURE[1], PICTURE[0], 3), np.uint8)
    with np.errstate(all="raise", under="ignore", over="ignore"):
        floats = to_floats(tensor, integers)
        if head.kind == SEGMENTATION:
            segmentation = segment(floats, head, placement, labels)
            assert sum(part.share for part in segmentation.segments) > 0.999
            draw(picture, (), labels, segmentation=segmentation)
            return
        if head.kind in CHOICES:
            _tell(floats, head, placement, labels)
            return
        boxes = detect([floats], [head], placement, labels, 0.3)
    assert all(np.isfinite(box.box).all() and 0 <= box.probability <= 1 + 1e-9 for box in boxes)
    draw(picture, boxes[:50], labels)


def _tell(floats: FloatArray, head: Head, placement: Placement, labels: tuple[str, ...]) -> None:
    if head.kind == VALUES:
        return
    if head.kind in (CLASSES_HEAD, PROBABILITIES) or floats.shape[1:] == (1, 1):
        assert len(chosen(floats, head, labels)) == head.k
    else:
        assert chosen_of_pixels(floats, head, placement, labels).classes.max() < head.classes


HEADS = Target("heads", seeds, JSON, read_head, "case.json")
heads = partial(hunt, HEADS)
