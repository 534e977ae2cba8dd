"""Layers and functions of installed packages are drawn into random networks, and a package's fault is found."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cnn.activations import FUNCTIONS
from cnn.extending.layers import LAYERS
from cnn.network import Network
from cnn.ops import Activate, Custom
from scheduler.streaming.blocks.packages import BLOCKS
from tests.fuzz.networks.added import with_added
from tests.fuzz.networks.case import Case, read_case
from tests.fuzz.networks.draw import draw_case
from tests.fuzz.networks.prepare import read_model
from tests.fuzz.networks.trial import try_case
from tests.support.extending.acme import documented, entry_points
from tests.support.extending.installing import installed

GREATER = "".join(
    f"[systolic.{group}s]\nacme_greater = tests.support.extending.greater:{group}\n" for group in ("layer", "block")
)
CUBE = "from cnn.activations import Function\ncube = Function(lambda x: x**3)\n"
SEED, DRAWN, FEW = 77, 40, 8
MAX_CASES = 6
"""Limit for the cases after which the planted fault must be found."""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(os.environ.get("SYSTOLIC_TEST_BUILDS", tmp_path_factory.mktemp("builds")))
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Case]]:
    """Return the first cases of a seed, drawn while three packages are installed.

    They add a layer with one input, a layer with two inputs and a function.
    """
    folder, files = tmp_path_factory.mktemp("packages"), documented()
    points = entry_points(files.pop("pyproject.toml"))
    installed(folder, "acme_greater", {}, GREATER)
    installed(folder, "acme_cubed", {"acme_cubed.py": CUBE}, "[systolic.functions]\nacme_cubed = acme_cubed:cube\n")
    target = installed(folder, "acme_shuffle", files, points)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(target))
        for registry in (LAYERS, BLOCKS, FUNCTIONS):
            registry.refresh()
        yield [draw_case(SEED, number) for number in range(DRAWN)]
    for registry in (LAYERS, BLOCKS, FUNCTIONS):
        registry.refresh()


def with_layer(drawn: list[Case], style: str, name: str) -> list[Case]:
    return [
        case for case in drawn if case.style == style and name in case.network.get("added", {"layers": []})["layers"]
    ]


def test_draw_case_without_packages_adds_no_layer() -> None:
    for registry in (LAYERS, BLOCKS, FUNCTIONS):
        registry.refresh()
    assert not any("added" in draw_case(SEED, number).network for number in range(FEW))


@pytest.mark.engine
def test_draw_case_adds_layers_of_packages_that_the_style_supports(drawn: list[Case]) -> None:
    for name in ("acme_shuffle", "acme_greater", "acme_cubed"):
        assert with_layer(drawn, "streaming", name)
        assert bool(with_layer(drawn, "systolic", name)) == (name == "acme_cubed")
    exported = [case for case in drawn if case.network["form"] == "exported" and "added" in case.network]
    assert exported
    assert not any("acme_cubed" in case.network["added"]["layers"] for case in exported)
    assert all(read_case(case.text()).text() == case.text() for case in drawn)


def added_to(case: Case, folder: Path) -> tuple[Network, Network]:
    model = read_model(case, folder)
    return model.network, with_added(model, case.network["added"]).network


@pytest.mark.engine
def test_with_added_layer_reads_fitting_maps_and_is_read(drawn: list[Case], tmp_path: Path) -> None:
    parameters = set()
    for case in with_layer(drawn, "streaming", "acme_shuffle") + with_layer(drawn, "streaming", "acme_cubed"):
        before, after = added_to(case, tmp_path)
        new = [index for index, node in enumerate(after.nodes) if node.name.startswith("added")]
        assert len(after.nodes) == len(before.nodes) + len(new)
        # The new map has the shape of its input, so that the input's readers can read it.
        assert len(after.outputs) == len(before.outputs)
        for node in (after.nodes[index] for index in new):
            assert isinstance(node.op, (Activate, Custom))
            assert all(after.nodes[i].shape == node.shape for i in node.inputs)
            if isinstance(node.op, Custom) and node.op.layer == "acme_shuffle":
                parameters.add(node.op.parameters)
                assert node.shape.channels % node.op.parameters[0] == 0
    assert len(parameters) > 1


@pytest.mark.engine
@pytest.mark.parametrize(
    ("style", "name"), [("streaming", "acme_greater"), ("streaming", "acme_cubed"), ("systolic", "acme_cubed")]
)
def test_try_case_with_added_layer_matches_golden_model(drawn: list[Case], cache: Path, style: str, name: str) -> None:
    outcome = try_case(replace(with_layer(drawn, style, name)[0], checks=("native", "golden")), cache)
    assert outcome.state == "passed", f"{outcome.stage}: {outcome.sentence}"
    assert outcome.layers.get("Custom", 0) + outcome.layers.get("Activate", 0) >= 1


@pytest.mark.engine
def test_try_case_with_faulty_package_hardware_fails(
    drawn: list[Case], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plant a header that does not reorder the channels. The case that fails passes without the fault."""
    block = BLOCKS["acme_shuffle"]
    ((header, text),) = block.files.items()
    planted = text.replace("coming[c % GROUPS * EACH + c / GROUPS]", "coming[c]")
    assert planted != text
    cases = [replace(case, checks=("native",)) for case in with_layer(drawn, "streaming", "acme_shuffle")][:MAX_CASES]
    hardware = sys.modules["acme_shuffle.hardware"]
    for case in cases:
        with monkeypatch.context() as patch:
            patch.setattr(hardware, "block", replace(block, files={header: planted}))
            outcome = try_case(case, cache)
        if outcome.state == "failed":
            assert (outcome.stage, "wrong integers in frame 0" in outcome.sentence) == ("native", True)
            assert try_case(case, cache).state == "passed"
            return
    pytest.fail(f"not found in {len(cases)} cases")
