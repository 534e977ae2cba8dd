"""Test the public Python interface, ``import systolic``, from network to result in both styles."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import systolic
from boards.errors import ChoiceError, FileAccessError, ShapeError, UnknownKeyError
from host.contract import manifest as contract
from host.contract.systolic import SystolicManifest
from systolic import choices
from systolic.styles.registry import STYLES
from systolic.styles.systolic.style import SystolicStyle
from tests.support.command_line import call
from tests.support.detectors import LABELS, tiny_files
from tests.support.errors import raises
from tests.support.small_network import write_small

PICTURE = systolic.samples()[0]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> systolic.Model:
    """Return a small detection network with random weights."""
    cfg, names = tiny_files(tmp_path_factory.mktemp("tiny"))
    return systolic.load(cfg, names=names, seed=1)


@pytest.fixture(scope="module")
def array(tiny: systolic.Model) -> systolic.GeneratedDesign:
    """Return a generated design of the systolic style for the tiny network."""
    return systolic.design(tiny, board="pynq-z2", clock_mhz=100, calibrate=[PICTURE], array="4x8x8")


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> systolic.GeneratedDesign:
    """Return a generated design of the streaming style for a small quantised network."""
    network = systolic.load(write_small(tmp_path_factory.mktemp("small")), seed=1)
    return systolic.design(network, "ultra96-v2", "streaming", fps=20_000, search="greedy", estimated_fifos=True)


DESIGNS = ("array", "pipeline")


@pytest.fixture
def design(request: pytest.FixtureRequest) -> systolic.GeneratedDesign:
    """Return the design of the fixture that the parameter names."""
    made = request.getfixturevalue(request.param)
    assert isinstance(made, systolic.GeneratedDesign)
    return made


both = pytest.mark.parametrize("design", DESIGNS, indirect=True)


@both
def test_generated_design_in_memory_simulates_without_mismatches(design: systolic.GeneratedDesign) -> None:
    result = design.simulate(PICTURE)
    assert result.mismatches == 0
    assert result.right
    assert "<table>" in result._repr_html_()
    report = design.cycles(PICTURE)
    assert report.cycles_per_frame > 0
    assert report.frames_per_second == pytest.approx(report.clock_mhz * 1e6 / report.cycles_per_frame, rel=0.01)
    assert report.values()["frames_per_second"] == pytest.approx(report.frames_per_second, abs=0.01)
    assert "<table>" in report._repr_html_()
    assert report.timeline().axes


def test_calibrate_arrays_match_their_files(tiny: systolic.Model) -> None:
    array = np.asarray(Image.open(PICTURE).convert("RGB"))
    options: dict[str, Any] = {"board": "pynq-z2", "clock_mhz": 100, "array": "4x8x8"}
    of_file, *of_arrays = (
        systolic.design(tiny, calibrate=pictures, **options).files.digest
        for pictures in (PICTURE, array, [array], array[None])
    )
    assert of_arrays == [of_file] * 3
    with raises(ShapeError, what="the picture", got="float64 [4, 4]"):
        systolic.design(tiny, calibrate=[np.zeros((4, 4))], **options)  # type: ignore[list-item]


@both
def test_opened_design_simulates_and_runs(design: systolic.GeneratedDesign, tmp_path: Path) -> None:
    design.write(tmp_path / "design")
    opened = systolic.open(tmp_path / "design")
    assert opened.simulate(PICTURE).mismatches == 0
    assert opened.name in repr(opened)
    assert opened.name in opened._repr_html_()
    seen = opened.run(PICTURE, threshold=0.5)
    assert seen.mismatches == 0
    seen.save(tmp_path / "boxes.png")
    assert Image.open(tmp_path / "boxes.png").size == seen.draw().size
    assert seen._repr_html_().startswith("<img")


@both
def test_repr_of_results_is_their_text(design: systolic.GeneratedDesign, tiny: systolic.Model) -> None:
    """Expect a short text at a prompt: a dump of weights, pixels and schedules would have millions of characters."""
    trace = design.trace(PICTURE)
    told = (design.simulate(PICTURE), design.run(PICTURE), trace.report(), trace.fifos(), design.mapping)
    assert [repr(value) for value in told] == [value.text() for value in told]
    model_line = "<tiny: 5 nodes, 36 × 28 pixels of 3 channels>"
    assert (repr(tiny), repr(tiny.network)) == (model_line, model_line)
    assert repr(design.mapping.network).startswith(f"<quantised {design.mapping.network.name}: ")
    assert repr(trace) == f"<trace of {design.opened.manifest.network} on {design.opened.manifest.board}>"


@both
def test_report_gives_text_values_and_html(design: systolic.GeneratedDesign, tmp_path: Path) -> None:
    report = design.report()
    assert design.mapping.network.name in str(report)
    assert report.values()["network"] == design.mapping.network.name
    report.save(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text().startswith("<!DOCTYPE html>")
    assert "<svg" in report._repr_html_()


@both
def test_write_to_existing_design_requires_replace(design: systolic.GeneratedDesign, tmp_path: Path) -> None:
    design.write(tmp_path / "design")
    with raises(FileAccessError, path=str(tmp_path / "design"), reason="holds a generated design already"):
        design.write(tmp_path / "design")
    assert design.write(tmp_path / "design", replace=True).folder == tmp_path / "design"


def test_simulate_takes_pixels_as_an_array(array: systolic.GeneratedDesign) -> None:
    assert array.labels == LABELS
    pixels = np.asarray(Image.open(PICTURE).convert("RGB"))
    assert array.simulate(pixels).outputs[0].shape == array.simulate(PICTURE).outputs[0].shape
    with raises(ShapeError, what="the picture", got="float64 [2, 2]"):
        array.simulate(np.zeros((2, 2)))  # type: ignore[arg-type]


def test_model_html_escapes_labels(tmp_path: Path) -> None:
    cfg, names = tiny_files(tmp_path, labels=("<img src=x>", "b", "c"))
    text = systolic.load(cfg, names=names, seed=1)._repr_html_()
    assert "<img" not in text
    assert "&lt;img src=x&gt;" in text


def test_errors_derive_from_systolic_error(tiny: systolic.Model) -> None:
    for name in systolic.__all__:
        if name.endswith("Error"):
            assert issubclass(getattr(systolic, name), systolic.SystolicError)
    with raises(ChoiceError, what="the board", got="zcu105"):
        systolic.design(tiny, "zcu105")
    with raises(ChoiceError, what="the style", got="analog", choices=("systolic", "streaming")):
        systolic.design(tiny, style="analog")
    with raises(UnknownKeyError, keys=["speed"], where="the options of the streaming style"):
        systolic.design(tiny, style="streaming", speed=3)


@pytest.mark.engine
def test_schedule_compare_and_pareto_front_give_figures(tiny: systolic.Model) -> None:
    best = systolic.schedule(tiny, "pynq-z2", 100, array="4x8x8")
    assert best.cycles_per_frame == systolic.schedule(tiny, "pynq-z2", 100, schedule=best.to_json()).cycles_per_frame
    assert best.figure("tiling", "conv1").axes
    with raises(ChoiceError, got="pie", choices=("cycles", "roofline", "buffers", "tiling")):
        best.figure("pie")
    rows = systolic.compare(tiny, ["pynq-z2"], ["4x8x8", "64x64x64"]).rows
    assert [row.mapping is not None for row in rows] == [True, False]
    front = systolic.pareto_front(tiny, "zcu104", 300, rows=4, lanes=16)
    assert repr(front) == front.text()
    assert front.points
    assert "<svg" in front._repr_html_()


def test_public_names_exist() -> None:
    for name in systolic.__all__:
        assert getattr(systolic, name) is not None
    assert set(dir(systolic)) == set(systolic.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = systolic.nonsense


def test_import_loads_no_slow_library() -> None:
    code = "import sys, systolic; print(sorted({'numpy', 'matplotlib', 'PIL'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    code = "import sys; from systolic.cli.main import parser; parser(); print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False", "the parser must not import matplotlib, because few commands draw figures"


# --- the registry of styles --------------------------------------------------------------------------------------


class OtherManifest(SystolicManifest):
    """The manifest of a systolic design that states the style "other"."""

    style = "other"


class OtherStyle(SystolicStyle):
    """The systolic style under another name, which is also the style in the manifest that it writes."""

    name = "other"
    summary = "for this test"
    arguments = ()

    def options_from(self, options: Any) -> Any:
        return self.options()

    def generate(self, *arguments: Any) -> Any:
        from dataclasses import replace

        plan = super().generate(*arguments)
        files = dict(plan.files.files)
        text = files["manifest.json"].decode().replace('"style": "systolic"', '"style": "other"')
        files["manifest.json"] = text.encode()
        return replace(plan, files=replace(plan.files, files=files))

    def open(self, path: Path, manifest: Any) -> Any:
        from dataclasses import fields, replace

        plain = SystolicManifest(**{field.name: getattr(manifest, field.name) for field in fields(manifest)})
        return replace(super().open(path, plain), manifest=manifest)


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch) -> str:
    """Register the style "other" for a test and return its name."""
    monkeypatch.setitem(STYLES, "other", OtherStyle())
    monkeypatch.setitem(choices.STYLES, "other", OtherStyle.summary)
    monkeypatch.setitem(contract.MANIFESTS, "other", OtherManifest)
    return "other"


@pytest.mark.engine
def test_registered_style_works_in_every_command(other: str, tmp_path: Path) -> None:
    cfg, names = tiny_files(tmp_path)
    out = tmp_path / "design"
    done = call("generate", cfg, "--names", names, "--seed", 1, "--board", "pynq-z2", "--style", other, "-o", out)
    assert done.code == 0, done.error
    assert '"style": "other"' in (out / "manifest.json").read_text()
    assert call("simulate", out, "--picture", PICTURE, "--json", "-").json["mismatches"] == 0
    assert call("simulate", out, "--picture", PICTURE, "--cycles", "--json", "-").json["cycles_per_frame"] > 0
    assert systolic.open(out).simulate(PICTURE).right


# --- the command itself ------------------------------------------------------------------------------------------


def test_version_and_help_are_printed() -> None:
    assert call("--version").out == f"systolic {systolic.__version__}\n"
    bare = call()
    assert (bare.code, bare.error) == (0, "")
    assert bare.out == call("--help").out


def test_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "systolic", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"systolic {systolic.__version__}\n"


def test_shell_completion_offers_commands(tmp_path: Path) -> None:
    pytest.importorskip("argcomplete")
    out = tmp_path / "completions"
    line = "systolic sim"
    environment = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(out),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "PYTHONPATH": ":".join(sys.path),
        "PATH": "/usr/bin:/bin",
    }
    subprocess.run([sys.executable, "-m", "systolic"], env=environment, check=False, capture_output=True)
    assert "simulate" in out.read_text()
