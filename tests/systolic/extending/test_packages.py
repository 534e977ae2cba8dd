"""A third-party package, installed into a folder, that adds an operator, a function, passes and front-ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from PIL import Image

from boards.errors import ConflictError, DamagedFileError, RangeError, StateError, UnsupportedError
from cnn.activations import FUNCTIONS
from cnn.float_model import run_float
from cnn.onnx.network import BUILDERS
from cnn.ops import Activate
from cnn.passes.transform import PASSES
from cnn.passes.view import View
from systolic.cli.main import main
from systolic.front_ends.registry import FRONT_ENDS
from systolic.loading import load_model, reload
from systolic.transforming import passes_of, transform
from tests.support.cases import cases
from tests.support.errors import raises, raises_among
from tests.support.extending.installing import installed

REGISTRIES = (FUNCTIONS, BUILDERS, PASSES, FRONT_ENDS)
ROOT = Path(__file__).resolve().parents[3]

ENTRY_POINTS = """[systolic.functions]
acme_cube = acme_layers:cube
[systolic.operators]
org.acme.Cube = acme_layers:cubed
[systolic.passes]
acme_drop_ones = acme_layers:drop_ones
acme_double = acme_layers:double
[systolic.front_ends]
acme = acme_layers:read
drawn = acme_layers:DRAWN
"""

MODULE = '''"""A function, the operator that applies it, two passes, and front-ends for files that hold one number."""

from dataclasses import replace

import numpy as np

from cnn.activations import Function
from cnn.maps import Padding, Shape
from cnn.network import Network, Node
from cnn.ops import Activate, Convolution, Input
from cnn.passes.view import View, without
from systolic.front_ends.front_end import FrontEnd
from systolic.model import Model

cube = Function(lambda x: x**3)


def cubed(layers, operation):
    source = layers.map(operation)
    return layers.with_node(operation, "cube", Activate("acme_cube"), layers.shape_of(source), source.node)


def drop_ones(network):
    """Return the network without its 1 × 1 depthwise convolutions whose weights are all 1."""
    for index, node in enumerate(network.nodes[:-1]):
        op = node.op
        if isinstance(op, Convolution) and op.weights.shape[1:] == (1, 1, 1) and (op.weights == 1).all():
            before = node.inputs[0]
            inputs = [tuple(before if i == index else i for i in reader.inputs) for reader in network.nodes]
            nodes = [replace(reader, inputs=i) for reader, i in zip(network.nodes, inputs)]
            return without(replace(network, nodes=tuple(nodes)), index)
    return network


def double(network):
    view = View(network)
    return view.with_initialiser("last.weights", view.initialiser("last.weights") * np.float32(2))


def read(path):
    """Return a network whose number of filters is the number in the file."""
    filters, shape = int(path.read_text()), Shape(3, 8, 12)
    random = np.random.default_rng(filters)
    ones = Convolution(np.ones((3, 1, 1, 1), np.float32), np.zeros(3, np.float32), None, 1, Padding(), 3, "linear")
    weights = random.normal(0, 0.3, (filters, 3, 3, 3)).astype(np.float32)
    last = Convolution(weights, np.zeros(filters, np.float32), None, 1, Padding(1, 1, 1, 1), 1, "relu")
    source = f"{path.name}:1"
    nodes = (
        Node("input", Input(), (), shape, source),
        Node("ones", ones, (0,), shape, source),
        Node("last", last, (1,), Shape(filters, 8, 12), source),
        Node("cube", Activate("acme_cube"), (2,), Shape(filters, 8, 12), source),
    )
    return Network("acme", nodes)


def scaled(path):
    """Return the network of the file's first number, with its last weights multiplied by the second, the seed."""
    filters, _, seed = path.read_text().partition(" ")
    path.with_suffix(".acme").write_text(filters)
    view = View(read(path.with_suffix(".acme")))
    return view.with_initialiser("last.weights", view.initialiser("last.weights") * np.float32(seed or 1))


def drawn(path, options):
    path.write_text(f"{path.read_text()} {options.seed}")
    return Model(scaled(path), "letterbox", {"model/network.drawn": path.read_bytes()})


DRAWN = FrontEnd("a .drawn file", drawn, scaled, takes=("names", "seed"))
'''


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that the package is installed into."""
    return installed(tmp_path_factory.mktemp("acme"), "acme_layers", {"acme_layers.py": MODULE}, ENTRY_POINTS)


@pytest.fixture
def package(target: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put the package on Python's path."""
    monkeypatch.syspath_prepend(str(target))
    for registry in REGISTRIES:
        registry.refresh()
    yield
    for registry in REGISTRIES:
        registry.refresh()


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write net.acme, net.onnx with an operator of the package, and a.png, and make their folder the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.acme").write_text("5")
    pixels = np.random.default_rng(0).integers(0, 256, (8, 12, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    weights = onnx.numpy_helper.from_array(
        np.random.default_rng(1).normal(0, 0.3, (4, 3, 3, 3)).astype(np.float32), "weights"
    )
    nodes = [
        onnx.helper.make_node("Conv", ["picture", "weights"], ["sums"]),
        onnx.helper.make_node("Cube", ["sums"], ["cubes"], domain="org.acme"),
    ]
    sides = [onnx.helper.make_tensor_value_info("picture", 1, (1, 3, 8, 12))]
    ends = [onnx.helper.make_tensor_value_info("cubes", 1, None)]
    graph = onnx.helper.make_graph(nodes, "net", sides, ends, [weights])
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("org.acme", 1)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "net.onnx")
    return tmp_path


STYLE = ("--style", "streaming", "--folding", "greedy", "--estimated-fifos", "--calibrate", "a.png")


@pytest.mark.usefixtures("package")
def test_package_extensions_generate_a_right_design(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "net.acme", *STYLE, "--pass", "acme_drop_ones", "-o", "design"]) == 0
    assert (files / "design" / "model" / "network.acme").read_text() == "5"
    capsys.readouterr()
    assert main(["simulate", "design", "--picture", "a.png", "--json", "-"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["mismatches"] == 0
    assert [layer["name"] for layer in values["layers"]] == ["last", "cube"]
    assert min(layer["sqnr_db"] for layer in values["layers"]) > 20  # compared with the transformed float network


@pytest.mark.usefixtures("package")
def test_package_operator_in_an_onnx_file_is_read(files: Path) -> None:
    network = load_model(files / "net.onnx").network
    assert network.nodes[-1].op == Activate("acme_cube")
    picture = np.random.default_rng(2).random((3, 8, 12)).astype(np.float32)
    outputs = run_float(network, picture)
    np.testing.assert_allclose(outputs[-1], outputs[-2] ** 3, rtol=1e-5)


@pytest.mark.usefixtures("package")
def test_package_pass_that_changes_results_is_refused(files: Path) -> None:
    with raises(RangeError, where="the pass 'acme_double'", what="the change of output 0 of 'acme'", low=0):
        transform(load_model(files / "net.acme"), "acme_double")
    with raises(ConflictError, subjects=("the network net.acme", "--seed")):
        load_model("net.acme", seed=1)


@pytest.mark.usefixtures("package")
def test_package_front_end_takes_only_its_options(files: Path) -> None:
    (files / "net.drawn").write_text("5")
    model = load_model(files / "net.drawn", seed=3)
    assert (model.fit, model.random) == ("letterbox", True)
    (files / "model").mkdir()
    for name, data in model.files.items():
        (files / name).write_bytes(data)
    last = View(load_model(files / "net.acme").network).initialiser("last.weights")
    for network in (model.network, reload(files)):
        np.testing.assert_array_equal(View(network).initialiser("last.weights"), 3 * last)
    reason = "a .drawn file takes --names, --seed"
    with raises(ConflictError, subjects=("the network net.drawn", "--size"), reason=reason):
        load_model("net.drawn", size=(8, 8))


def test_package_files_without_the_package_are_refused(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "net.acme", *STYLE, "-o", "design"]) == 2
    assert "net.acme as a network is not supported" in capsys.readouterr().err
    with raises_among(UnsupportedError, subject="org.acme.Cube 'cubes'"):
        load_model(files / "net.onnx")


def test_passes_of_a_damaged_list_is_refused(files: Path) -> None:
    (files / "model").mkdir()
    for text in ("{", '{"a": 1}', "[1]"):
        (files / "model" / "passes.json").write_text(text)
        with raises(DamagedFileError, path=str(files / "model/passes.json")):
            passes_of(files)


def test_transform_of_a_quantised_network_is_refused() -> None:
    with raises(StateError, subject="the network 'ultranet'"):
        transform(load_model("ultranet", seed=1), "fold_pointwise")


OWNER = "the package acme-broken"


@cases(
    "group, line, kind, fields",
    [
        (
            "passes",
            'fold_pointwise = "acme_broken:anything"',
            "ConflictError",
            (f"'fold_pointwise' of {OWNER}", "the existing 'fold_pointwise'"),
        ),
        ("passes", 'acme = "acme_broken:anything"', "ToolError", (OWNER, "adds 'acme', which cannot be imported")),
        ("functions", 'acme = "math:sin"', "InvalidValueError", (f"'acme' of {OWNER}", "a cnn.activations.Function")),
        ("layers", 'acme = "math:sin"', "InvalidValueError", (f"'acme' of {OWNER}", "a cnn.extending.layers.Layer")),
        ("blocks", 'acme = "acme_broken:block"', "ToolError", (OWNER, "adds 'acme', which cannot be imported")),
        (
            "blocks",
            'acme = "math:sin"',
            "InvalidValueError",
            (f"'acme' of {OWNER}", "a scheduler.streaming.blocks.added.AddedBlock (depth 1 or more"),
        ),
        (
            "blocks",
            'acme = "math:sin"\nacme = "math:cos"',
            "ConflictError",
            (f"'acme' of {OWNER}", "the existing 'acme'"),
        ),
    ],
)
def test_package_with_an_unusable_entry_point_is_refused(
    group: str, line: str, kind: str, fields: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "acme_broken-1.dist-info").mkdir()
    (tmp_path / "acme_broken-1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: acme-broken\nVersion: 1\n"
    )
    (tmp_path / "acme_broken-1.dist-info" / "entry_points.txt").write_text(
        f"[systolic.{group}]\n{line.replace(chr(34), '')}\n"
    )
    code = (
        "import dataclasses, json\nfrom boards.errors import SystolicError\n"
        "from cnn.activations import FUNCTIONS\nfrom cnn.passes.transform import PASSES\n"
        "from cnn.extending.layers import LAYERS\nfrom scheduler.streaming.blocks.packages import BLOCKS\n"
        f"try:\n    {group.upper()}['acme']\nexcept SystolicError as error:\n"
        "    print(json.dumps([type(error).__name__, dataclasses.asdict(error)], default=str))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(tmp_path)))}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    name, values = json.loads(run.stdout)
    assert (name, values["where"]) == (kind, f"systolic.{group}")
    told = {
        "ConflictError": values.get("subjects"),
        "ToolError": [values.get("tool"), values.get("reason")],
        "InvalidValueError": [values.get("what"), values.get("required")],
    }[name]
    assert [text.startswith(start) for text, start in zip(told, fields, strict=True)] == [True, True], told
