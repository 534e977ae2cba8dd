"""A board driven from another computer, with pynq's own remote device and gRPC stubs."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

CLIENT = """
import json, sys
import numpy as np
from host import Accelerator
from host.check import check_frame, golden_maps

with Accelerator(sys.argv[1]) as yolo:
    pixels, _ = check_frame(yolo.manifest, yolo.folder)
    *_, expected = golden_maps(yolo.manifest, yolo.folder)
    outputs = yolo.run(pixels)
    picture = pixels.transpose(1, 2, 0).copy()
    alone = yolo.detect(picture).detections
    results = list(yolo.stream([picture] * 5))
    yolo.verify()
    said = {
        "device": type(yolo.device).__name__,
        "board": yolo.device.name,
        "simulated": yolo.simulated,
        "has_interrupt": yolo.has_interrupt,
        "equal": bool(np.array_equal(outputs[-1], expected)),
        "streamed": [result.detections == alone for result in results],
        "passed": yolo.check().passed,
        "label": yolo.label,
    }
print(json.dumps(said))
"""


def bitstream(data: bytes) -> bytes:
    """Return a bitstream file as Vivado writes it: texts in the fields a to d, and ``data`` in field e."""
    fields = (b"a", b"system;Version=2022.1\0"), (b"b", b"xczu7ev\0"), (b"c", b"2022/01/01\0"), (b"d", b"00:00:00\0")
    text = b"".join(key + len(value).to_bytes(2, "big") + value for key, value in fields)
    return b"\x00\x09" + bytes(9) + b"\x00\x01" + text + b"e" + len(data).to_bytes(4, "big") + data


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


@pytest.mark.pynq
@pytest.mark.parametrize("style", ["tiny", "centre"])
def test_accelerator_on_a_remote_board_detects_streams_and_checks(
    style: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Run a server with the simulated board, and a client that reaches it over the network, in two processes."""
    pytest.importorskip("pynq.remote", reason="pynq drives boards elsewhere from version 4 on")
    folder = tmp_path / "design"
    shutil.copytree(request.getfixturevalue(style), folder)
    (description,) = folder.glob("**/*.hwh")
    # pynq stores the description of a bitstream by the bitstream's checksum, so each test needs another bitstream.
    description.with_suffix(".bit").write_bytes(bitstream(os.urandom(64)))
    # pynq's client uses one fixed port, so each test needs another address of this machine.
    address = "127.{}.{}.{}".format(*(random.SystemRandom().randrange(1, 255) for _ in range(3)))
    command = [sys.executable, "-m", "tests.support.host.remote_board", str(folder), address]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT, env=environment()) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "listens\n"
        client = subprocess.run(
            [sys.executable, "-c", CLIENT, str(folder)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment(PYNQ_REMOTE_DEVICES=address),
            check=False,
        )
        last, _ = server.communicate()
    assert client.returncode == 0, client.stderr
    said = json.loads(client.stdout.splitlines()[-1])
    assert said["device"] == "RemoteDevice"
    assert (said["board"], said["simulated"], said["has_interrupt"]) == ("ZCU104", False, False)
    assert said["equal"]
    assert said["streamed"] == [True] * 5
    assert said["passed"]
    assert said["label"] == "measured on ZCU104, driven over the network"
    assert (server.returncode, last) == (0, "0 buffers left, freed at work: []\n")
