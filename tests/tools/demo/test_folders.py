"""Scenes on disk, and their labels as they are read again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from systolic.evaluation.layouts.darknet import Classes
from systolic.evaluation.layouts.read import read_labelled
from tools.demo import folders
from tools.demo.objects import LABELS
from tools.demo.scenes import LONE, letterboxed, lone


def test_write_scenes_keeps_existing_pictures_and_labels_are_read_back(tmp_path: Path) -> None:
    assert folders.main([str(tmp_path), "--first", "77", "--count", "2"]) == 0
    (tmp_path / "77.jpg").write_bytes(b"")
    folders.write_scenes(tmp_path, 77, 3)
    assert (tmp_path / "77.jpg").read_bytes() == b""
    pictures = read_labelled(tmp_path, Classes(LABELS, len(LABELS))).pictures
    assert [picture.path.name for picture in pictures] == ["77.jpg", "78.jpg", "79.jpg"]
    for seed, picture in zip((77, 78, 79), pictures, strict=True):
        truths = picture.in_pixels(160, 160).truths
        assert truths is not None
        expected = letterboxed(seed, 160).truths
        assert [LABELS.index(truth.label) for truth in truths] == expected[:, 0].tolist()
        assert np.array([truth.box for truth in truths]) == pytest.approx(expected[:, 1:], abs=1e-3)


def test_folders_of_kind_one_object_have_one_label_per_picture(tmp_path: Path) -> None:
    words = [str(tmp_path), "--kind", "one-object", "--first", "5", "--count", "2", "--size", "96"]
    assert folders.main(words) == 0
    pictures = read_labelled(tmp_path, Classes((LONE,), 1)).pictures
    for seed, picture in zip((5, 6), pictures, strict=True):
        truths = picture.in_pixels(96, 48).truths
        assert truths is not None
        assert [truth.label for truth in truths] == [LONE]
        assert truths[0].box == pytest.approx(lone(seed, 96, 48).truths[0, 1:], abs=1e-3)
