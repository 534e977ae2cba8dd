"""Tests of the built-in trained one-object network: it finds an object drawn among clutter, with integers only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cnn.exported.topology_file import read_topology
from cnn.zoo import folder, topology_file
from systolic.loading import load_model
from tests.support.command_line import call
from tools.demo.folders import write_scenes
from tools.demo.samples import SAMPLES, truth

NAME = "ultranet-small"
FIRST_SEED = 90_000_000


@pytest.mark.engine
def test_mean_iou_and_recall_on_new_images_reach_their_limits(tmp_path: Path) -> None:
    write_scenes(tmp_path, FIRST_SEED, 80, kind="one-object")
    done = call("evaluate", NAME, "--data", tmp_path, "--threshold", 0, "--workers", 1, "--json", "-")
    integer = done.json["integer"]
    assert integer["mean_iou"] >= 0.55
    assert integer["recall"] >= 0.75  # one box per image: the share of boxes with an IoU above a half


def test_weights_and_activations_have_4_bits() -> None:
    quantised = load_model(NAME).quantized
    assert quantised is not None
    assert {node.type.datatype.name for node in quantised.nodes} == {"UINT8", "UINT4", "INT16"}
    assert {kernel.weight_bits for _, kernel in read_topology(topology_file(NAME)).kernels} == {4}


def test_sample_truths_follow_from_their_seeds() -> None:
    written = json.loads((folder(NAME) / "samples" / "truth.json").read_text())
    assert written == [truth(sample, sample.draw()) for sample in SAMPLES[NAME]]
