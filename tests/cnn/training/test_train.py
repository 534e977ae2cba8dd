"""The trainer's command line, its cfg, and the files of the model that comes with the project."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import cnn
from cnn.training import train
from cnn.training.objects import LABELS

SHAPES = Path(cnn.__file__).parent / "models" / "shapes"


def parameters() -> int:
    """Floats in the weights file: 4 a filter and the kernel, and the head with one bias a filter."""
    channels = (3, *train.WIDTHS)
    body = sum(o * (4 + 9 * i) for i, o in pairwise(channels))
    return body + len(train.ANCHORS) * (5 + train.CLASSES) * (1 + channels[-1])


def test_help_shows_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        train.parse(["--help"])
    assert "python -m cnn.training.train --out /tmp/shapes --minutes 25" in " ".join(capsys.readouterr().out.split())


def test_settings_are_read() -> None:
    settings = train.parse(["--out", "x", "--minutes", "1.5", "--seed", "9"])
    assert (settings.out, settings.minutes, settings.seed) == (Path("x"), 1.5, 9)


def test_the_learning_rate_rises_then_falls() -> None:
    assert train.schedule(0) == 0
    assert train.schedule(0.05) == pytest.approx(1, abs=0.002)
    assert train.schedule(0.5) > train.schedule(0.9) > train.schedule(1.0) > 0


def test_mirroring_twice_changes_nothing() -> None:
    truths = np.array([[1, 10, 20, 50, 60]], np.float32)
    assert train.mirrored(truths)[0].tolist() == [1, 110, 20, 150, 60]
    assert np.array_equal(train.mirrored(train.mirrored(truths)), truths)


def test_suppression_keeps_the_most_probable_of_overlapping_boxes() -> None:
    boxes = np.array([[0, 0, 10, 10], [0, 0, 10, 11], [50, 50, 60, 60]], float)
    assert train._kept(boxes, np.array([0.5, 0.9, 0.3]), 0.01) == [1, 2]
    assert train._kept(boxes, np.array([0.5, 0.9, 0.3]), 0.4) == [1]


def test_the_model_in_the_project_is_the_one_that_the_trainer_describes() -> None:
    assert (SHAPES / "shapes.cfg").read_text() == train.darknet_cfg()
    assert (SHAPES / "shapes.names").read_text().split() == list(LABELS)


def test_the_weights_file_has_exactly_the_parameters_and_sane_statistics() -> None:
    data = (SHAPES / "shapes.weights").read_bytes()
    assert np.frombuffer(data[:12], "<i4").tolist() == [0, 2, 0]
    values = np.frombuffer(data[20:], "<f4")
    assert len(values) == parameters()
    assert len(data) < 2_000_000
    assert np.isfinite(values).all()
    first = train.WIDTHS[0]
    assert (values[3 * first : 4 * first] > 1e-6).all()  # variances of the first layer


def test_exported_weights_compute_what_pytorch_computes() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    network = train.build_network()
    with torch.no_grad():
        network(torch.rand(8, 3, train.SIZE, train.SIZE))  # some running statistics
        network.eval()
        picture = torch.rand(1, 3, train.SIZE, train.SIZE)
        expected = network[0:3](picture).numpy()
    values = np.frombuffer(train.darknet_weights(network, 5)[20:], "<f4")
    first = train.WIDTHS[0]
    bias, scale, mean, variance = values[: 4 * first].reshape(4, first, 1, 1).astype(np.float64)
    sums = torch.nn.functional.conv2d(
        picture, torch.tensor(values[4 * first :][: first * 27].reshape(first, 3, 3, 3)), padding=1
    )
    normed = scale * (sums.numpy() - mean) / (np.sqrt(variance) + 1e-6) + bias
    assert np.where(normed > 0, normed, 0.1 * normed) == pytest.approx(expected, abs=1e-5)


def test_the_sixth_pool_pads_right_and_bottom_and_padding_never_wins() -> None:
    torch = pytest.importorskip("torch")
    pad, pool = list(train.build_network())[23:25]
    values = -torch.arange(1.0, 10.0).view(1, 1, 3, 3)
    assert pool(pad(values))[0, 0].tolist() == [[-1, -2, -3], [-4, -5, -6], [-7, -8, -9]]


def test_a_truth_lands_in_its_cell_and_decodes_back() -> None:
    torch = pytest.importorskip("torch")
    truth = np.array([[2, 40, 70, 88, 102]], np.float32)
    where, goal, labels, _ = train.targets([truth])
    assert labels.tolist() == [2]
    assert [int(w) for w in where] == [0, int(where[1]), 2, 2]
    grid = torch.zeros(1, len(train.ANCHORS), train.CELLS, train.CELLS, 5 + train.CLASSES)
    grid[where] = torch.cat([torch.logit(goal[0, :2]), goal[0, 2:], torch.zeros(1 + train.CLASSES)])
    assert train.decode_boxes(grid)[where][0].tolist() == pytest.approx([40, 70, 88, 102], abs=1e-3)


def test_a_box_near_a_truth_is_taught_its_class_and_others_are_not() -> None:
    torch = pytest.importorskip("torch")
    truths = [np.array([[4, 10, 10, 50, 50], [2, 90, 90, 130, 130]], np.float32)] * 2
    boxes = torch.zeros(2, len(train.ANCHORS), train.CELLS, train.CELLS, 4)
    boxes[..., 2:] = 1
    boxes[1, 3, 2, 1] = torch.tensor([92.0, 90, 130, 130])
    boxes[0, 0, 0, 0] = torch.tensor([10.0, 10, 50, 45])
    boxes[0, 1, 0, 0] = torch.tensor([10.0, 10, 50, 50])
    own = tuple(torch.tensor([v]) for v in (0, 1, 0, 0))
    near, labels = train.near_truths(boxes, truths, own)
    assert near.nonzero().tolist() == [[0, 0, 0, 0], [1, 3, 2, 1]]
    assert labels.tolist() == [4, 2]


def test_generalised_iou_by_hand() -> None:
    torch = pytest.importorskip("torch")
    one, other = torch.tensor([[0.0, 0, 2, 2], [0, 0, 1, 1]]), torch.tensor([[0.0, 0, 2, 2], [2, 2, 3, 3]])
    assert train.generalised_iou(one, other).tolist() == pytest.approx([1, -7 / 9])
