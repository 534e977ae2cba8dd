"""The C ABI of the simulation libraries: an exception raised while generated code runs reaches the caller."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from boards.errors import DamagedFileError
from host.contract.libraries import StoppedError, StreamingLibrary, SystolicLibrary
from host.contract.manifest import of_style, read_manifest
from host.contract.streaming import StreamingManifest
from systolic.execution.build import build
from systolic.styles.systolic.simulate import arena, open_design
from tests.support.errors import raises


@pytest.mark.parametrize("kind", [KeyboardInterrupt, ZeroDivisionError, SystemExit])
def test_run_with_an_exception_after_a_pass_stops_and_raises_it(tiny: Path, kind: type[BaseException]) -> None:
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


def test_run_of_a_pipeline_without_enough_words_stops(centre: Path) -> None:
    manifest = of_style(StreamingManifest, read_manifest(centre))
    library, image = StreamingLibrary(build(centre), manifest), np.fromfile(centre / manifest.images[0].path, np.uint8)
    packets = np.zeros((1, manifest.packet_in.bytes), np.uint8)
    assert library.run([image], packets).shape == (1, manifest.packet_out.bytes)
    with raises(StoppedError, code="the generated pipeline stopped", current=0) as caught:
        library.run([image[:30]], packets)
    assert "weights_centre" in caught.value.sentence


def test_library_of_the_other_style_is_refused(tiny: Path, centre: Path) -> None:
    manifest = of_style(StreamingManifest, read_manifest(centre))
    library = build(tiny)
    with raises(DamagedFileError, path=str(library), remedy="build it again") as caught:
        StreamingLibrary(library, manifest)
    assert "systolic_stream" in caught.value.reason
