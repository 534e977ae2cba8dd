"""The C ABI of the simulation libraries: what is raised while generated code runs comes out of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from boards.errors import SimulationError
from host.contract.libraries import StoppedError, StreamingLibrary, SystolicLibrary
from host.contract.manifest import of_style, read_manifest
from host.contract.streaming import StreamingManifest
from systolic.execution.build import build
from systolic.styles.systolic.simulate import arena, open_design
from tests.host.pipelines import make_by_hand


@pytest.mark.parametrize("kind", [KeyboardInterrupt, ZeroDivisionError, SystemExit])
def test_what_is_raised_after_a_pass_stops_the_code_and_comes_out(tiny: Path, kind: type[BaseException]) -> None:
    design = open_design(tiny)
    library, memory = SystolicLibrary(build(tiny), design.manifest), design.memory(arena(design))
    seen = []

    def after_pass(index: int) -> None:
        seen.append(index)
        raise kind("in the callback")

    with pytest.raises(kind, match="in the callback"):
        library.run(memory, 0, design.manifest.passes, after_pass)
    assert design.manifest.passes > 1
    assert seen == [0], "passes after it were executed"
    library.run(memory, 0, design.manifest.passes, seen.append)
    assert seen == [0, *range(design.manifest.passes)]


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> tuple[StreamingLibrary, StreamingManifest, np.ndarray]:
    folder = make_by_hand(tmp_path_factory.mktemp("pipeline"))
    manifest = of_style(StreamingManifest, read_manifest(folder))
    return StreamingLibrary(build(folder), manifest), manifest, np.fromfile(folder / manifest.images[0].path, np.uint8)


def test_a_pipeline_is_left_as_soon_as_it_asks_for_words_that_are_not_there(
    pipeline: tuple[StreamingLibrary, StreamingManifest, np.ndarray],
) -> None:
    library, manifest, image = pipeline
    packets = np.zeros((1, manifest.packet_in.bytes), np.uint8)
    assert library.run([image], packets).shape == (1, manifest.packet_out.bytes)
    with pytest.raises(StoppedError, match=r"the generated pipeline stopped: .*weights_centre") as caught:
        library.run([image[:30]], packets)
    assert "weights_centre" in caught.value.sentence


def test_a_library_of_the_other_style_is_refused(tiny: Path, tmp_path: Path) -> None:
    manifest = of_style(StreamingManifest, read_manifest(make_by_hand(tmp_path)))
    with pytest.raises(SimulationError, match="has no systolic_stream: it is a library of another style; build it ag"):
        StreamingLibrary(build(tiny), manifest)
