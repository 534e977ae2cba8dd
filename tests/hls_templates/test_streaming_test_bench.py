"""The test bench of a streaming design under g++, around a generated pipeline of one small layer."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from boards.board import load
from hls_templates.streaming.sources import (
    Connection,
    Element,
    Instance,
    Packet,
    StreamingValues,
    Tap,
    WeightPort,
    Wire,
    streaming_simulation,
    streaming_sources,
)
from hls_templates.vendor.files import vendor_files
from hls_templates.vendor.ports import StreamingPorts
from hls_templates.vendor.values import VendorValues
from tests.support.vendor_types import vendor_types

KERNELS = Path(__file__).parent / "kernels"
VALUES = 900
"""Values of a frame: 112.5 input beats of 8 bytes, and 225 output beats of 4 bytes."""

WORDS = str(VALUES // 4)
BIASES = WeightPort("weights_relu", "word<integer<8, true>, 4>", VALUES // 4)
PORTS = StreamingPorts(Packet(VALUES, 8), Packet(VALUES, 4), (BIASES,))


def pipeline() -> StreamingValues:
    """DMA → words → relu → DMA, with a look at what relu gives."""
    word = Element(8, True, 4)
    take = Instance(
        "take", "unpack_beats", "dma.h", ("8", "4", WORDS), (Connection("in", "in"), Connection("out", "x")), ()
    )
    layer = Instance(
        "layer",
        "relu",
        "relu.h",
        (WORDS,),
        (Connection("in", "x"), Connection("out", "y")),
        (),
        weight_ports=(BIASES,),
        taps=(Tap(0, "y"),),
    )
    give = ("4", "1", "4", WORDS, "true")
    leave = Instance("leave", "pack_beats", "dma.h", give, (Connection("in", "y"), Connection("out", "out")), ())
    wires = (Wire("x", word, 2), Wire("y", word, 2))
    return StreamingValues("relu", (), (take, layer, leave), wires, (), PORTS.packet_in, PORTS.packet_out, 16, 16)


def compiled(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def design(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a generated folder with its test bench, compiled as its README describes."""
    gxx = shutil.which("g++")
    if gxx is None:
        pytest.skip("no g++ on this machine: apt install g++")
    folder = tmp_path_factory.mktemp("design")
    sources = {**streaming_sources(pipeline()), "relu.h": (KERNELS / "relu.h").read_text("utf-8")}
    board = load("zcu104")
    of = VendorValues("relu", board, board.nearest_clock(300), PORTS, tuple(f"src/{name}" for name in sources))
    files = {f"src/{name}": text for name, text in sources.items()} | vendor_files(of)
    files |= {f"simulation/{name}": text for name, text in streaming_simulation(pipeline()).items()}
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    write_data(folder / "data")
    command = re.search(r"`(g\+\+ [^`]*-o test_bench) && \./test_bench data`", files["README.md"])
    assert command
    words = [gxx if word == "g++" else word for word in command[1].split()]
    compiled([*words, "-Wall", "-Wno-unknown-pragmas", "-Werror"], folder)
    return folder


def write_data(folder: Path) -> None:
    folder.mkdir()
    random = np.random.default_rng(3)
    x, bias = (random.integers(-60, 61, VALUES).astype(np.int8) for _ in range(2))
    (folder / "in.bin").write_bytes(x.tobytes())
    (folder / "weights_relu.bin").write_bytes(bias.tobytes())
    (folder / "expected.bin").write_bytes(np.maximum(x + bias, 0).tobytes())


def bench(program: Path, data: Path) -> tuple[int, str]:
    done = subprocess.run([str(program), str(data)], capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout + done.stderr


def test_streaming_bench_passes_on_the_expected_output(design: Path) -> None:
    assert bench(design / "test_bench", design / "data") == (0, "PASS: 900 bytes in, 900 bytes out\n")


def test_streaming_bench_names_the_first_differing_byte(design: Path, tmp_path: Path) -> None:
    shutil.copytree(design / "data", tmp_path, dirs_exist_ok=True)
    expected = bytearray((design / "data/expected.bin").read_bytes())
    was = expected[402]
    expected[402], expected[899] = was ^ 1, expected[899] ^ 128
    (tmp_path / "expected.bin").write_bytes(bytes(expected))
    rc, out = bench(design / "test_bench", tmp_path)
    assert (rc, out) == (1, f"FAIL beat 100, byte 2 is {was} and must be {was ^ 1}\nFAIL 2 of 900 bytes differ\n")


@pytest.mark.parametrize("name", ["in.bin", "weights_relu.bin"])
def test_streaming_bench_fails_on_a_wrong_frame_or_weight(name: str, design: Path, tmp_path: Path) -> None:
    shutil.copytree(design / "data", tmp_path, dirs_exist_ok=True)
    values = np.fromfile(tmp_path / name, np.int8)
    values[40] = 127 - values[40] // 2
    values.tofile(tmp_path / name)
    rc, out = bench(design / "test_bench", tmp_path)
    assert rc == 1
    assert out.startswith("FAIL beat 10, byte 0 is ")


@pytest.mark.parametrize("name", ["in.bin", "expected.bin", "weights_relu.bin"])
def test_streaming_bench_refuses_files_of_another_design(name: str, design: Path, tmp_path: Path) -> None:
    shutil.copytree(design / "data", tmp_path, dirs_exist_ok=True)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes() + b"\0")
    rc, out = bench(design / "test_bench", tmp_path)
    sentence = "does not have the size that this design needs; is it from another design?"
    assert (rc, out) == (2, f"{tmp_path}/{name} {sentence}\n")
    (tmp_path / name).unlink()
    rc, out = bench(design / "test_bench", tmp_path)
    assert (rc, out) == (2, f"{tmp_path}/{name} cannot be opened\n")


SICK = {
    0: "PASS: 900 bytes in, 900 bytes out\n",
    1: "FAIL beat 224 lacks TLAST\n",
    2: "FAIL beat 4 has TLAST\n",
    3: "FAIL the packet ends after 223 of 225 beats\n",
    4: "FAIL 3 beats come after the packet\n",
    5: "FAIL the frame was not taken whole\n",
}


def test_streaming_bench_reports_a_wrong_packet(design: Path, tmp_path: Path) -> None:
    """Check that the bench reports a wrong packet although its bytes are right."""
    program = tmp_path / "test_bench"
    words = ["g++", "-std=c++17", "-O1", "-w", "-Isrc", "-Isimulation", "test_bench.cpp", "-o", str(program)]
    compiled([*words, str(KERNELS / "sick_stream.cpp")], design)
    shutil.copytree(design / "data", tmp_path / "data")
    (tmp_path / "data/expected.bin").write_bytes(bytes(VALUES))
    for how, sentence in SICK.items():
        (tmp_path / "data/in.bin").write_bytes(bytes([how, *bytes(VALUES - 1)]))
        assert bench(program, tmp_path / "data") == (int(how > 0), sentence)


@pytest.mark.engine
def test_streaming_bench_passes_with_vendor_flags_and_types(design: Path, tmp_path: Path) -> None:
    """Compile with the vendor's ap_int, the C++ standard of run_hls.tcl, and the stream functions of UG1399."""
    flags = re.search(r'set flags "([^"]*)"', (design / "run_hls.tcl").read_text("utf-8"))
    assert flags
    words = flags[1].replace("$here", str(design)).split()
    assert {"-std=c++14", "-DSYSTOLIC_AP_INT"} <= set(words)
    includes = ["-isystem", str(KERNELS / "documented"), "-isystem", str(vendor_types())]
    units = ["test_bench.cpp", "src/top.cpp", "-o", str(tmp_path / "test_bench")]
    compiled(["g++", "-O1", "-w", *words, *includes, *units], design)
    assert bench(tmp_path / "test_bench", design / "data") == (0, "PASS: 900 bytes in, 900 bytes out\n")


def test_streaming_bench_without_external_weights_reads_input_and_output_alone() -> None:
    board = load("zcu104")
    of = VendorValues("relu", board, board.nearest_clock(300), replace(PORTS, external=()), ("src/top.cpp",))
    text = vendor_files(of)["test_bench.cpp"]
    assert "streaming_top(in, out, 1);" in text
    assert re.findall(r'"/(\w+\.bin)"', text) == ["in.bin", "expected.bin"]
