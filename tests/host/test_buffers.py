"""DDR buffers: all of them are allocated or none, and all of them are freed."""

from __future__ import annotations

import json
import shutil
import zlib
from pathlib import Path

import pytest

from boards.errors import AcceleratorError, InvalidValueError
from tests.support.errors import raises
from tests.support.host.hardware import Open
from tests.support.host.manifests import manifest_fields

pytestmark = pytest.mark.pynq


def test_accelerator_with_a_program_of_another_length_is_refused(tiny: Path, tmp_path: Path, accelerator: Open) -> None:
    folder = shutil.copytree(tiny, tmp_path / "design")
    values = manifest_fields(folder)
    program = (folder / "data/program.bin").read_bytes()[:-4]
    (folder / "data/program.bin").write_bytes(program)
    values["images"]["program"]["crc32"] = zlib.crc32(program)
    (folder / "manifest.json").write_text(json.dumps(values))
    with raises(InvalidValueError, where="data/program.bin", got=508):
        accelerator(folder)


def test_allocation_failure_states_the_bytes_already_held(tiny: Path, accelerator: Open) -> None:
    from host.simulated.faults import InjectedFault

    yolo = accelerator(tiny)
    held = yolo.buffers.weights[0].nbytes + yolo.buffers.requantisers.nbytes
    yolo.device.inject(InjectedFault("allocation failure", at=2))
    reason = (
        f"{yolo.manifest.maps_bytes} bytes of contiguous memory cannot be allocated: BO allocation failed: injected"
    )
    with raises(AcceleratorError, reason=reason, state=f"{held} bytes are held already"):
        yolo.reset()


def test_free_empties_the_table_and_may_be_repeated(tiny: Path, accelerator: Open) -> None:
    buffers = accelerator(tiny).buffers
    assert len(buffers.table) == 8  # weights, requantisers, maps, program, and two sets of input and result
    assert len({address for address, _ in buffers.table}) == 8
    buffers.free()
    buffers.free()
    assert buffers.table == ()
    assert not hasattr(buffers, "weights")
    buffers.verify()  # nothing is left to verify


def test_sets_have_programs_of_their_own(tiny: Path, accelerator: Open) -> None:
    yolo = accelerator(tiny, sets=3)
    assert [one.first_pass for one in yolo.buffers.batches] == [0, 2, 4]
    assert yolo.buffers.inspection_pass == 6
    assert yolo.buffers.program.nbytes == (3 + 1) * 2 * 64 * 4
