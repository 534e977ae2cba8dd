"""Trained networks exported as darknet files: both compute the same function up to rounding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cnn.darknet.files import read_darknet  # noqa: E402
from cnn.exported.network import make_exported  # noqa: E402
from cnn.float_model import run_float  # noqa: E402
from cnn.training.conversion import initialise, normalised, topology_of  # noqa: E402
from cnn.training.network import QuantisedNetwork  # noqa: E402
from cnn.training.pruning import pruned  # noqa: E402
from systolic.loading import load_model  # noqa: E402
from systolic.training.darknet import darknet_files  # noqa: E402
from tests.support.detectors import tiny_files  # noqa: E402


@pytest.mark.parametrize("method", ["lsq", "dorefa"])
@pytest.mark.parametrize("share", [0.0, 0.5])
@pytest.mark.parametrize("batch_norm", [True, False])
def test_darknet_files_of_a_trained_network_compute_the_same(
    tmp_path: Path, method: str, share: float, batch_norm: bool
) -> None:
    cfg, names = tiny_files(tmp_path)
    text = cfg.read_text()
    text = text.replace("[maxpool]", "[convolutional]\nfilters=8\nsize=3\npad=1\nactivation=relu\n\n[maxpool]")
    cfg.write_text(text if batch_norm else text.replace("batch_normalize=1\n", ""))
    model = load_model(str(cfg), None, names, 1)
    source = pruned(model.network, share)
    topology = topology_of(source, 4, "plain")
    trained = QuantisedNetwork(topology, method, normalised(source, topology))
    shape = source.input_shape
    pictures = np.random.default_rng(0).random((8, shape.channels, shape.height, shape.width), np.float32)
    initialise(trained, source, torch.from_numpy(pictures))
    exported = make_exported(*trained.exported())
    files = darknet_files(model.files["model/network.cfg"].decode(), source, exported)
    for ending, data in zip(("cfg", "weights"), files, strict=True):
        (tmp_path / f"out.{ending}").write_bytes(data)
    back = read_darknet(tmp_path / "out.cfg", tmp_path / "out.weights", names)
    assert [node.shape for node in back.nodes] == [node.shape for node in source.nodes]
    head = len(back.nodes) - 2
    result = run_float(back, pictures[0])[head]
    bias = exported.arrays["conv2_b"].reshape(-1, 1, 1)  # the host adds this bias for the exported network
    expected = run_float(exported.network, pictures[0])[head]
    assert expected.std() > 0.01
    assert result == pytest.approx(expected + bias, abs=1e-4)
