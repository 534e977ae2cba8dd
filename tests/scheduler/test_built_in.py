"""Every built-in network of a cfg, small where its layers allow: quantised, mapped, generated and executed."""

from __future__ import annotations

import pytest

from cnn import zoo
from cnn.darknet.files import parameter_count, read_topology
from cnn.network import macs
from scheduler.systolic.array import Array
from tests.support.arrays.built_in import SIZES, SYSTOLIC, quantised
from tests.support.arrays.run import Run
from tests.support.cases import cases
from tests.support.schedules import first_fit

ARRAYS = {
    "8 bits": Array(
        4,
        16,
        16,
        row_depth=1024,
        weight_depth=1024,
        kept_depth=1024,
        chunk=8,
        channel_tiles=128,
        upscale=2,
        windows=True,
    )
}
PUBLISHED = {
    "ds-cnn": ("12×1×1", 3.19, 0.0245),
    "mobilenet-v1": ("1000×1×1", 569, 4.25),
    "mobilenet-v2": ("1000×1×1", 301, 3.54),
    "resnet8": ("10×1×1", 12.5, 0.079),
    "skynet": ("12×20×40", 464, 0.45),
    "squeezenet": ("1000×1×1", 349, 1.24),
    "yolo-fastest": ("255×20×20", 125, 0.35),
    "yolov3-tiny": ("255×26×26", 2782, 8.86),
    "yolov4-tiny": ("255×26×26", 3454, 6.06),
}
"""The shape of the last layer, millions of multiply-accumulates per frame, and millions of parameters."""


@cases("name", PUBLISHED)
def test_definitions_have_the_size_of_the_published_networks(name: str) -> None:
    shape, millions, parameters = PUBLISHED[name]
    network = read_topology(zoo.topology_file(name))
    assert str(network.nodes[-1].shape) == shape
    assert sum(map(macs, network.nodes)) / 1e6 == pytest.approx(millions, rel=0.01)
    assert sum(map(parameter_count, network.nodes)) / 1e6 == pytest.approx(parameters, rel=0.03)


@pytest.mark.engine
@pytest.mark.parametrize("name", SYSTOLIC)
def test_engine_built_in_networks_are_bit_exact(name: str, run: Run) -> None:
    assert run("8 bits", first_fit(quantised(name, SIZES.get(name)), ARRAYS["8 bits"]), 3) == 0


@pytest.mark.parametrize("name", zoo.LABELS_OF)
def test_load_networks_of_coco_have_its_labels(name: str) -> None:
    labels = zoo.load(name, 1).labels
    assert (len(labels), labels[0]) == (80, "person")
