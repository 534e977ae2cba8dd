"""Tests of PyTorch modules, which PyTorch's own exporter writes as ONNX."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import systolic
from boards.errors import ConflictError, InvalidValueError, MissingToolError, ToolError, UnsupportedError
from cnn.float_model import run_float
from cnn.integer_model import run_integer
from cnn.onnx.pytorch import is_module, write_exported
from tests.support.cases import cases
from tests.support.errors import raises

EXAMPLE = "the example of a PyTorch module's input"


@pytest.fixture
def torch() -> Any:
    pytest.importorskip("onnxscript")
    return pytest.importorskip("torch")


@pytest.fixture
def module(torch: Any) -> Any:
    """Return a classifier with a batch norm, SiLU and a residual add."""
    nn = torch.nn

    class Residual(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.SiLU(), nn.MaxPool2d(2))
            self.branch = nn.Sequential(nn.Conv2d(8, 8, 1), nn.Hardswish())
            self.head = nn.Linear(8, 5)

        def forward(self, x: Any) -> Any:
            x = self.stem(x)
            x = x + self.branch(x)
            return self.head(torch.flatten(nn.functional.adaptive_avg_pool2d(x, 1), 1))

    torch.manual_seed(0)
    return Residual()


def test_module_becomes_a_network_with_equal_outputs(module: Any, torch: Any, tmp_path: Path) -> None:
    example = torch.rand(1, 3, 16, 12)
    names = tmp_path / "names"
    names.write_text("a\nb\nc\nd\ne\n")
    network = systolic.load(module, example, names).network
    assert module.training, "the module must stay in training mode"
    assert [node.name for node in network.nodes] == [
        *("input", "conv1", "silu1", "pool1", "conv2", "hard_swish1", "add1", "average1", "dense1")
    ]
    assert network.labels == ("a", "b", "c", "d", "e")
    expected = module.eval()(example).detach().numpy()[0]
    np.testing.assert_allclose(run_float(network, example[0].numpy())[-1].ravel(), expected, rtol=1e-5, atol=1e-6)


def test_module_that_cannot_be_exported_is_refused(module: Any, torch: Any) -> None:
    class Decomposed(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return torch.linalg.svd(x)[1]

    example = torch.rand(1, 3, 8, 8)
    with raises(ToolError, tool="PyTorch's exporter"):
        systolic.load(Decomposed(), example)
    with raises(ConflictError, subjects=("a PyTorch module", "seed")):
        systolic.load(module, example, seed=1)
    with raises(InvalidValueError, what=EXAMPLE, got=None):
        systolic.load(module)


@cases("name", ["../../escaped", "/{folder}/escaped", "N" * 5000, "a b<script>"])
def test_class_name_cannot_lead_out_of_the_folder(name: str, torch: Any, tmp_path: Path) -> None:
    kind = type(name.format(folder=tmp_path), (torch.nn.Sequential,), {})
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    path = write_exported(kind(torch.nn.Conv2d(3, 4, 3)), torch.zeros(1, 3, 8, 8), inside)
    assert [file.name for file in tmp_path.rglob("*.onnx")] == [path.name]
    assert path.parent == inside


def test_export_keeps_the_mode_of_every_part(torch: Any, tmp_path: Path) -> None:
    """Use a module in training mode with a batch norm in inference mode."""
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
    module.train()
    module[1].eval()
    write_exported(module, torch.zeros(1, 3, 8, 8), tmp_path)
    assert [part.training for part in module.modules()] == [True, True, False]


def test_failing_module_error_is_one_short_line(torch: Any, tmp_path: Path) -> None:
    class Failing(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            raise ValueError("\x1b[31mthe reason\n" + "is long " * 1000)

    with raises(ToolError, tool="PyTorch's exporter") as caught:
        write_exported(Failing(), torch.zeros(1, 3, 8, 8), tmp_path)
    assert caught.value.reason.startswith("cannot export Failing: ValueError: the reason is long is long")
    assert len(caught.value.reason) < 400
    assert caught.value.reason.isprintable()
    with raises(InvalidValueError, what=EXAMPLE, got=np.ndarray, required="a tensor of PyTorch"):
        write_exported(Failing(), np.zeros((1, 3, 8, 8), np.float32), tmp_path)


def test_module_that_exits_does_not_end_the_program(torch: Any, tmp_path: Path) -> None:
    class Leaving(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            raise SystemExit(0)

    class Stopped(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            raise KeyboardInterrupt

    with raises(ToolError, reason="cannot export Leaving: SystemExit: 0"):
        write_exported(Leaving(), torch.zeros(1, 3, 8, 8), tmp_path)
    with pytest.raises(KeyboardInterrupt):  # a user at the terminal must be able to stop the export
        write_exported(Stopped(), torch.zeros(1, 3, 8, 8), tmp_path)


@cases("example", [None, 4, np.zeros(3), np.zeros((1, 3, 8, 8, 8))])
def test_example_of_wrong_sides_is_refused(example: Any, tmp_path: Path) -> None:
    """Expect the refusal before PyTorch is imported. The error gives a tensor's shape, not its values."""
    got = example.shape if isinstance(example, np.ndarray) else example
    with raises(InvalidValueError, what=EXAMPLE, got=got):
        write_exported(object(), example, tmp_path)


def test_path_is_not_a_module() -> None:
    assert not is_module("net.onnx")
    assert not is_module(Path("net.onnx"))


def test_signal_and_row_examples_become_networks(torch: Any) -> None:
    nn = torch.nn
    signals = nn.Sequential(nn.Conv1d(4, 6, 5, dilation=2), nn.ReLU(), nn.MaxPool1d(2), nn.Flatten(), nn.Linear(24, 3))
    values = nn.Sequential(nn.Linear(20, 5), nn.Tanh())
    for module, sides in ((signals, (1, 4, 16)), (values, (1, 20))):
        example = torch.rand(sides)
        network = systolic.load(module, example).network
        shape = network.input_shape
        picture = example.numpy().reshape(shape.channels, shape.height, shape.width)
        expected = module.eval()(example).detach().numpy()
        np.testing.assert_allclose(run_float(network, picture)[-1].ravel(), expected.ravel(), rtol=1e-5, atol=1e-6)


def test_brevitas_module_keeps_its_integers(torch: Any) -> None:
    pytest.importorskip("onnxoptimizer")
    layers, quant = pytest.importorskip("brevitas.nn"), pytest.importorskip("brevitas.quant")
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        layers.QuantIdentity(act_quant=quant.Uint8ActPerTensorFloat),
        layers.QuantConv2d(3, 8, 3, bias=False, weight_quant=quant.Int8WeightPerChannelFloat, weight_bit_width=4),
        torch.nn.BatchNorm2d(8),
        layers.QuantReLU(bit_width=4),
        layers.QuantConv2d(8, 4, 1, bias=False, weight_bit_width=3),
        layers.QuantIdentity(bit_width=6),
    )
    for _ in range(3):
        module(torch.rand(4, 3, 10, 12))  # the scales follow from the observed values
    model = systolic.load(module, torch.rand(1, 3, 10, 12))
    assert model.quantized is not None
    assert [node.type.datatype.bits for node in model.quantized.nodes] == [8, 4, 6]
    picture = np.random.default_rng(1).integers(0, 256, (3, 10, 12), np.uint8)
    result, type_ = run_integer(model.quantized, picture)[-1], model.quantized.nodes[-1].type
    assert result is not None
    with torch.no_grad():
        expected = module.eval()(torch.tensor(picture[None] / np.float32(255)).float()).numpy()[0]
    steps = np.abs((result.astype(np.int64) - type_.zero_point) - np.rint(expected / type_.scale))
    assert np.count_nonzero(steps) <= steps.size // 100, "only values near a half may differ"


def test_brevitas_module_without_onnxoptimizer_is_refused(
    torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = type("Layer", (torch.nn.Module,), {"__module__": "brevitas.nn"})
    monkeypatch.setitem(sys.modules, "onnxoptimizer", None)
    with raises(MissingToolError, tool="the package onnxoptimizer", remedy="run pip install brevitas onnxoptimizer"):
        write_exported(kind(), torch.zeros(1, 3, 8, 8), tmp_path)


def test_divisor_override_is_refused(torch: Any) -> None:
    pool = torch.nn.AvgPool2d(2, divisor_override=3)
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 1), pool)
    with raises(UnsupportedError, subject="divisor_override=3 of 1"):
        systolic.load(module, torch.rand(1, 3, 8, 8))
    pool.divisor_override = None
    assert systolic.load(module, torch.rand(1, 3, 8, 8)).network.nodes[-1].shape.height == 4
