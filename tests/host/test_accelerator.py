"""Tests of the code that also runs on the board, with the real pynq and the simulated board."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from boards.board import load
from boards.errors import (
    AcceleratorError,
    DamagedFileError,
    FileAccessError,
    MismatchError,
    RangeError,
    StateError,
    UnsupportedError,
)
from host.simulated.ddr import BusError
from systolic.designs import design as design_of
from systolic.execution.build import build
from systolic.execution.run import run
from systolic.loading import load_model
from systolic.model import Calibration, sample_pictures
from systolic.styles.systolic.simulate import open_design
from tests.support.errors import raises
from tests.support.host.hardware import Open, described, description
from tests.support.host.manifests import manifest_fields


def test_detect_equals_the_golden_model_in_every_bit(shapes: Path, accelerator: Open) -> None:
    picture = sample_pictures()[0]
    wanted = run(open_design(shapes), picture)
    yolo = accelerator(shapes)
    for wait in ("poll", "interrupt"):
        yolo.wait = wait
        found = yolo.detect(picture)
        assert found.detections == wanted.detections
        assert len(found.detections) >= 3
        assert np.array_equal(found.outputs[0], wanted.simulation.outputs[-1])
    assert wanted.simulation.mismatches == 0


@pytest.mark.engine
def test_detect_with_yolo_lite_equals_the_executed_design(shared: Path, tmp_path: Path, accelerator: Open) -> None:
    data = shared / "data"
    model = load_model(
        str(data / "networks/yolo-lite-voc-trial3-noBatch.cfg"),
        data / "networks/yolo-lite-voc-trial3-noBatch.weights",
        data / "networks/voc.names",
    )
    picture = data / "pictures/dog.jpg"
    made = design_of(model, load("zcu104"), calibrate=Calibration((picture,)))
    made.write(tmp_path / "design")
    wanted = run(open_design(tmp_path / "design"), picture)
    found = accelerator(described(tmp_path / "design")).detect(picture)
    assert found.detections == wanted.detections
    assert "dog" in {one.label for one in found.detections}
    assert np.array_equal(found.outputs[0], wanted.simulation.outputs[-1])


def test_detect_async_lets_other_coroutines_run(shapes: Path, accelerator: Open) -> None:
    yolo = accelerator(shapes)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    async def both() -> object:
        ticking = asyncio.create_task(tick())
        result = await yolo.detect_async(sample_pictures()[0])
        ticking.cancel()
        return result

    assert asyncio.run(both()).detections == yolo.detect(sample_pictures()[0]).detections  # type: ignore[attr-defined]
    assert ticks > 5


def test_detect_without_an_interrupt_polls(tiny: Path, tmp_path: Path, accelerator: Open) -> None:
    folder = shutil.copytree(tiny, tmp_path / "design")
    ports = manifest_fields(folder)["array"]
    for path in [*folder.glob("*.hwh"), *folder.glob("*/*.hwh")]:
        path.write_text(description(ports["map_ports"], ports["weight_ports"], interrupt=False))
    yolo = accelerator(folder, wait="interrupt")
    assert not yolo.has_interrupt
    yolo.detect(sample_pictures()[0])


def test_accelerator_uses_the_classes_of_pynq(tiny: Path, accelerator: Open) -> None:
    import pynq

    yolo = accelerator(tiny)
    assert type(yolo.overlay) is pynq.Overlay
    assert yolo.overlay.is_loaded()
    assert type(yolo.ip).__mro__[2] is pynq.DefaultIP
    assert all(type(one) is pynq.buffer.PynqBuffer for one in yolo.buffers.weights)
    base = int(yolo.ip.mmio.base_addr)
    offset = yolo.ip.offset("maps_read_0_1")
    low, high = (pynq.MMIO(base, 0x1000).read(offset + at) for at in (0, 4))
    assert low | high << 32 == yolo.buffers.map_base
    assert high > 0, "the simulated DDR must be above 4 GB, so that a forgotten upper half is found"
    assert int(yolo.ip.register_map.maps_read_0_2.maps_read_0) == high
    assert bool(yolo.ip.register_map.CTRL.AP_IDLE)
    with raises(BusError, address=0xB0000000, subject="slave"):
        pynq.MMIO(0xB0000000, 0x1000).read(0)


def test_simulated_board_without_a_bitstream_refuses_to_allocate(tiny: Path, accelerator: Open) -> None:
    from host.contract.manifest import read_manifest
    from host.contract.simulation_library import find_library
    from host.simulated.device import SimulatedBoard

    board = SimulatedBoard(read_manifest(tiny), find_library(tiny, None))
    with pytest.raises(RuntimeError, match="no bitstream is loaded"):
        board.allocate((4,), "u1")
    board.close()


def test_reset_with_a_failed_allocation_frees_all_buffers(tiny: Path, accelerator: Open) -> None:
    from host.simulated.faults import InjectedFault

    yolo = accelerator(tiny)
    held = yolo.device.allocations
    assert held == 8
    for number in range(held):
        yolo.device.inject(InjectedFault("allocation failure", at=number))
        with raises(AcceleratorError) as caught:
            yolo.reset()
        assert "bytes of contiguous memory cannot be allocated: BO allocation failed" in caught.value.reason
        # The buffers are freed at once, although a kept exception refers to every object of the call.
        assert yolo.device.allocations == 0, number
        with raises(StateError, state="has no memory, since the last reset() failed"):
            yolo.detect(sample_pictures()[0])
        yolo.reset()
        assert yolo.device.allocations == held
    yolo.detect(sample_pictures()[0])


def test_reset_with_a_lost_upload_raises_mismatch_error(tiny: Path, accelerator: Open) -> None:
    from host.simulated.faults import InjectedFault

    yolo = accelerator(tiny)
    yolo.device.inject(InjectedFault("missing flush"))
    with raises(MismatchError, what="the checksum of data/weights_0.bin in DDR, just uploaded,"):
        yolo.reset()
    yolo.reset()


def test_accelerator_of_an_incomplete_folder_is_refused(tiny: Path, tmp_path: Path, accelerator: Open) -> None:
    with raises(FileAccessError, path=str(tmp_path), what="generated design"):
        accelerator(tmp_path)
    folder = shutil.copytree(tiny, tmp_path / "design")
    shutil.rmtree(folder / "build")
    with raises(FileAccessError, path=f"{folder}/build", what="folder"):
        accelerator(folder)
    folder = shutil.copytree(tiny, tmp_path / "undescribed")
    for path in [*folder.glob("*.hwh"), *folder.glob("*/*.hwh")]:
        path.unlink()
    with raises(FileAccessError, path=str(folder), what="folder") as caught:
        accelerator(folder)
    assert "must hold one *.hwh" in caught.value.reason
    folder = shutil.copytree(tiny, tmp_path / "damaged")
    (folder / "data/weights_0.bin").write_bytes(b"\0" * (folder / "data/weights_0.bin").stat().st_size)
    with raises(MismatchError, what="the checksum", where=str(folder / "data/weights_0.bin")):
        accelerator(folder)


def test_detect_of_a_closed_accelerator_is_refused(tiny: Path, accelerator: Open) -> None:
    with accelerator(tiny) as yolo:
        pass
    with raises(StateError, subject="the accelerator", state="is closed"):
        yolo.detect(sample_pictures()[0])


def test_pictures_and_boxes_need_no_pynq() -> None:
    code = "import sys, host, host.detector, host.vision.video, host.vision.drawing; sys.exit('pynq' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_accelerator_on_a_zynq_7000_detects_or_refuses_pynq_4_0(tmp_path: Path, accelerator: Open) -> None:
    import pynq

    made = design_of(load_model("shapes"), load("pynq-z2"), calibrate=Calibration(sample_pictures()[:1]))
    made.write(tmp_path / "design")
    build(tmp_path / "design")
    if pynq.__version__.startswith("4.0"):
        with raises(UnsupportedError) as caught:
            accelerator(tmp_path / "design")
        assert "finds no PL clock in the description of a Zynq-7000" in caught.value.reason
        return
    wanted = run(open_design(tmp_path / "design"), sample_pictures()[0])
    yolo = accelerator(tmp_path / "design")
    assert yolo.buffers.map_base < 1 << 32
    assert yolo.detect(sample_pictures()[0]).detections == wanted.detections


def test_time_scale_uses_the_cycles_of_the_design(tiny: Path, tmp_path: Path, accelerator: Open) -> None:
    folder = shutil.copytree(tiny, tmp_path / "design")
    with raises(RangeError, got=0, low=0, exclusive=True):
        accelerator(folder, time_scale=0)
    yolo = accelerator(folder, time_scale="fit")
    assert yolo.device.pace.source == "modelled"
    yolo.close()
    passes = yolo.manifest.passes
    (folder / "cycles.json").write_text(json.dumps({"pass_cycles": [300_000] * passes}))
    yolo = accelerator(folder, time_scale=20.0)
    # 300,000 cycles per pass at the design's clock, 20 times slower.
    wanted = 20 * passes * 0.3 / yolo.manifest.clock_mhz
    assert yolo.device.pace.seconds(0, passes) == pytest.approx(wanted)
    assert yolo.detect(sample_pictures()[0]).timing.seconds["accelerate"] >= wanted
    assert f"20 × slower than the design, whose frame takes {1e3 * wanted / 20:.3f} ms (traced cycles" in yolo.label
    (folder / "cycles.json").write_text("[]")
    with raises(DamagedFileError, path=str(folder / "cycles.json"), remedy="trace the design again"):
        accelerator(folder, time_scale=1.0)
