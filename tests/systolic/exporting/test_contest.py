"""Networks exported to the file format of UltraNet's exporter and read again: every integer is preserved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import systolic
from cnn.exported.seed import seeded_arrays
from cnn.exported.topology_file import parse_topology
from cnn.integer_model import run_integer
from cnn.quantized import QuantizedNetwork
from cnn.stored.npz import write_arrays
from systolic.cli.main import main
from tests.support.cases import cases
from tests.support.contest import CHAIN, FORM, check_equal
from tests.support.exported import convolution, described

HEAD = {"type": "one_object", "anchors": [[8, 8], [4, 4]]}
LAYERS = (
    convolution(32, padding=1, weight_bits=2, output_bits=3),
    {"type": "max_pool", "size": 3},
    convolution(6, 5, padding=2, weight_bits=8, extra_bits=4, bias=True),
    {"type": "convolution", "filters": 12, "kernel": 1, "weight_bits": 4},
    HEAD,
)
THRESHOLDS = convolution(4, requantise="thresholds")


def network_file(folder: Path, *layers: dict[str, Any], **others: Any) -> Path:
    """Write net.json with ``layers`` and net.npz with random arrays, and return the path of net.json."""
    path = folder / "net.json"
    path.write_text(json.dumps(described(*layers, **{**FORM, **others})))
    arrays = seeded_arrays(parse_topology(path.read_text(), path.name), 5)
    path.with_suffix(".npz").write_bytes(write_arrays(arrays))
    return path


def integers(path: Path) -> QuantizedNetwork:
    network = systolic.load(path).quantized
    assert network is not None
    return network


@cases("layers", [LAYERS, CHAIN], ids=["head", "linear"])
@cases("added_to", ["root", "variance"])
def test_export_in_both_forms_keeps_every_integer(
    layers: tuple[dict[str, Any], ...], added_to: str, tmp_path: Path
) -> None:
    path = network_file(tmp_path, *layers, batch_norm={"added_to": added_to, "epsilon": 1e-3}, labels=["object"])
    output = tmp_path / "out"
    assert main(["export", str(path), "--dialect", "contest", "-o", str(output)]) == 0
    files = {file.name for file in output.iterdir()}
    assert files == {"config.json", "config.npz", "config.h", "param.h", "last_bias.npy"}
    expected = integers(path)
    for again in (integers(output / "config.json"), integers(output / "param.h")):
        check_equal(again, expected)
        assert (again.name, again.labels) == (expected.name, expected.labels)
        frame = np.random.default_rng(1).integers(0, 256, (3, 8, 8), np.uint8)
        for values, others in zip(run_integer(again, frame), run_integer(expected, frame), strict=True):
            np.testing.assert_array_equal(np.asarray(values), np.asarray(others))


def test_export_writes_the_keys_of_the_exporter(tmp_path: Path) -> None:
    path = network_file(tmp_path, *CHAIN)
    output = tmp_path / "out"
    assert main(["export", str(path), "--dialect", "contest", "-o", str(output)]) == 0
    config = json.loads((output / "config.json").read_text())
    assert list(config) == ["conv_0", "pool_0", "conv_1", "linear_0", "linear_1", "network"]
    assert config["conv_1"] == {"in_shape": [4, 4, 4], "out_shape": [6, 2, 2], "k": 3, "s": 2, "p": 1}
    assert config["pool_0"] == {"in_shape": [4, 8, 8], "p": 2, "out_shape": [4, 4, 4]}
    assert config["linear_0"] == {"in_len": 24, "out_len": 5}
    with np.load(output / "config.npz") as arrays:
        shapes = [arrays[f"arr_{number}"].shape for number in range(len(arrays.files))]
    first, second, third = ([(filters,)] * 4 + [()] for filters in (4, 6, 5))
    assert shapes == [(4, 3, 3, 3), *first, (6, 4, 3, 3), (6,), *second, (5, 24), *third, (3, 5), (3,)]
    defines = (output / "config.h").read_text()
    assert "#define LINEAR_0_IN_LEN 24" in defines
    assert "LINEAR_0_K" not in defines


def test_export_of_integers_without_floats_writes_only_param_h(tmp_path: Path) -> None:
    last = {"type": "convolution", "filters": 3, "kernel": 1, "weight_bits": 4, "scale": 0.25}
    path = network_file(tmp_path, convolution(4, integers=True), last)
    output = tmp_path / "out"
    assert main(["export", str(path), "--dialect", "contest", "-o", str(output)]) == 0
    assert not (output / "config.npz").exists()
    check_equal(integers(output / "param.h"), integers(path))


@cases("command", ["fold", "schedule"])
def test_fold_and_schedule_of_param_h_need_no_seed(command: str, tmp_path: Path) -> None:
    """Read the weights from param.h itself, so that the commands need no seed."""
    assert (
        main(["export", str(network_file(tmp_path, *CHAIN)), "--dialect", "contest", "-o", str(tmp_path / "out")]) == 0
    )
    options = {"fold": ["--fps", "1000"], "schedule": ["--array", "2x4x4", "--workers", "1"]}[command]
    assert main([command, str(tmp_path / "out" / "param.h"), "--board", "zcu104", *options]) == 0


def test_export_of_a_design_keeps_every_integer(tmp_path: Path) -> None:
    path = network_file(tmp_path, *LAYERS)
    design = tmp_path / "design"
    options = ["--style", "streaming", "--fps", "1000", "--folding", "greedy", "--board", "zcu104"]
    assert main(["generate", str(path), *options, "-o", str(design)]) == 0
    output = tmp_path / "out"
    assert main(["export", str(design), "--dialect", "contest", "-o", str(output)]) == 0
    check_equal(integers(output / "param.h"), integers(path))
    first = integers(design / "parameters" / "param.h").nodes[1].op
    np.testing.assert_array_equal(first.weights[:, ::-1], integers(path).nodes[1].op.weights)  # type: ignore[union-attr]


@cases(
    "layers, sentence",
    [
        ((convolution(4, padding=[1, 0, 0, 0]),), "'convolution1' in config.json and param.h is"),
        (
            (THRESHOLDS, convolution(2, 1)),
            "every layer but the last has inc, bias and shift",
        ),
        (
            ({"type": "max_pool", "size": 3, "stride": 1}, convolution(4)),
            "'max_pool1' in config.json",
        ),
        (
            (convolution(4), {"type": "concat", "from": ["convolution1", "convolution1"]}),
            "'concat2' in",
        ),
    ],
)
def test_export_of_an_unsupported_layer_is_refused(
    layers: tuple[dict[str, Any], ...], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = network_file(tmp_path, *layers, input={"channels": 3, "height": 8, "width": 8})
    assert main(["export", str(path), "--dialect", "contest", "-o", str(tmp_path / "out")]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_export_into_a_used_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = network_file(tmp_path, *LAYERS)
    assert main(["export", str(path), "--dialect", "contest", "-o", str(tmp_path)]) == 2
    assert "is not empty; choose another folder" in capsys.readouterr().err


@pytest.mark.shared
def test_export_of_the_trained_ultranet_keeps_every_integer(shared: Path, tmp_path: Path) -> None:
    weights = shared / "data/ultranet/ultranet_4w4a.npz"
    expected = systolic.load("ultranet", weights).quantized
    assert expected is not None
    output = tmp_path / "out"
    assert main(["export", "ultranet", "--weights", str(weights), "--dialect", "contest", "-o", str(output)]) == 0
    check_equal(integers(output / "config.json"), expected)
    check_equal(integers(output / "param.h"), expected)
