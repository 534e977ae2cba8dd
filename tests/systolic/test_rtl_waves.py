"""Test the recorded signals of one layer: an engine in SystemVerilog writes them, and an independent reader reads
them."""

from __future__ import annotations

import ctypes
import random
import zlib
from bisect import bisect_right
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from PIL import Image

from boards.errors import (
    ChoiceError,
    ConflictError,
    FileAccessError,
    InvalidValueError,
    MissingValueError,
    SystolicError,
    UnsupportedError,
)
from contract.program import PASS_FIELDS
from systolic.designs import design as design_of
from systolic.execution.compiler import compile_to, compiler
from systolic.execution.verilate import WAVES
from systolic.loading import load_model
from systolic.model import Calibration, sample_pictures
from systolic.styles.streaming.simulate import StreamingDesign
from systolic.styles.streaming.style import StreamingStyle
from systolic.styles.systolic.simulate import open_design
from tests.support.cases import cases
from tests.support.command_line import call, refused
from tests.support.detectors import tiny_files
from tests.support.errors import raises

CYCLE = 1000
"""The drawn time of a cycle, in picoseconds."""
SIZE = (18, 14)


@pytest.fixture(scope="module")
def engine(verilated: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a design of two layers with few PEs, as in tests/host/test_rtl.py, and return its folder."""
    work = tmp_path_factory.mktemp("waves")
    cfg, names = tiny_files(work, SIZE, ("circle", "square", "star"))
    model = load_model(str(cfg), None, names, 1)
    pictures = Calibration(sample_pictures()[:2])
    made = design_of(model, "zcu104", clock_mhz=300.0, calibrate=pictures, engine="rtl", array="2x8x8")
    made.write(work / "design")
    return work / "design"


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a picture file of random pixels."""
    path = tmp_path_factory.mktemp("picture") / "random.png"
    Image.fromarray(np.random.default_rng(1).integers(0, 256, (SIZE[1], SIZE[0], 3), np.uint8)).save(path)
    return path


class Read:
    """The signals in a file of waves."""

    def __init__(self, path: Path) -> None:
        reader = pytest.importorskip("pywellen", reason="waves are read by pywellen: pip install 'systolic-cnn[proof]'")
        self.signals: dict[str, Any] = {each.full_name: each for each in reader.Waveform(str(path)).all_vars()}

    def changes(self, name: str) -> list[tuple[int, int]]:
        """Return the changes of a signal of the top module, as pairs of picosecond and value.

        The first pair is the initial value.
        """
        return [(int(time), int(number)) for time, number in self.signals[f"systolic_top.{name}"].tv]

    def each_cycle(self, name: str, cycles: range) -> list[int]:
        """Return the signal's value just before the end of each cycle."""
        changes = self.changes(name)
        times = [time for time, _ in changes]
        return [changes[bisect_right(times, (cycle + 1) * CYCLE - 1) - 1][1] for cycle in cycles]


@pytest.mark.engine
@pytest.mark.parametrize("layer", ["1", "conv2"])
def test_waves_record_a_layer_from_first_to_last_cycle(engine: Path, picture: Path, tmp_path: Path, layer: str) -> None:
    file = tmp_path / "layer.fst"
    told = call("simulate", engine, "--picture", picture, "--waves", layer, "-o", file, "--json", "-").json
    design, number = open_design(engine), ["1", "conv2"].index(layer)
    counted = [each["cycles"] for each in told["layers"]]
    cycles = range(sum(counted[:number]), sum(counted[: number + 1]))
    assert told["mismatches"] == 0
    assert told["waves"] == {
        **{"layer": ["conv1", "conv2"][number], "path": str(file), "bytes": file.stat().st_size},
        **{"first_cycle": cycles.start, "end_cycle": cycles.stop},
    }
    read = Read(file)
    clock = read.changes("ap_clk")
    assert (clock[0][0], clock[-1]) == (cycles.start * CYCLE, (cycles.stop * CYCLE, 1))
    assert [time for time, level in clock[1:] if level] == [(cycle + 1) * CYCLE for cycle in cycles]
    ends = [time for time, level in read.changes("pass_ended") if level]
    passes = range(design.manifest.layers[number].first_pass, design.manifest.layers[number].last_pass + 1)
    assert len(ends) == len(passes) + number, "one end per pass of the layer, and the end of the pass before"
    assert ends[-1] == cycles.stop * CYCLE
    last = {name: read.each_cycle(f"pass.{name}", cycles)[-1] for name in PASS_FIELDS}
    assert list(last.values()) == design.program[passes.stop - 1, : len(PASS_FIELDS)].tolist()
    region = design.manifest.layers[number].output
    words = region.bytes // design.manifest.word_bytes if region.map_buffer is None else 0
    ports = range(design.manifest.array.map_ports)
    beats = [[read.each_cycle(f"m_axi_maps_{port}_W{end}", cycles) for end in ("VALID", "READY")] for port in ports]
    assert sum(valid & ready for pair in beats for valid, ready in zip(*pair, strict=True)) == words
    assert words or number == 0


@pytest.mark.engine
def test_waves_change_neither_result_nor_cycles_nor_the_library(engine: Path, picture: Path, tmp_path: Path) -> None:
    usual = call("simulate", engine, "--picture", picture, "--json", "-").json
    file = tmp_path / "layer.fst"
    done = call("simulate", engine, "--picture", picture, "--waves", "conv2", "-o", file)
    first, last = (sum(each["cycles"] for each in usual["layers"][:count]) for count in (1, 2))
    assert f"{file}: " in done.out
    assert f"the signals of conv2 in cycles {first:,} to {last:,} ({last - first:,} cycles, drawn as 1 ns" in done.out
    assert f"open it: gtkwave {file}, or surfer {file}" in done.out
    assert sorted({path.name.split("-")[1][:5] for path in (engine / "build").glob("native*.so")})[1:] == ["waves"]
    assert call("simulate", engine, "--picture", picture, "--json", "-").json == usual


@pytest.mark.engine
def test_waves_file_is_named_after_its_layer(
    engine: Path, picture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "conv1.fst: " in call("simulate", engine, "--picture", picture, "--waves", "conv1").out
    assert [path.name for path in tmp_path.iterdir()] == ["conv1.fst"]


@pytest.mark.engine
@pytest.mark.parametrize(
    ("options", "expected", "fields"),
    [
        (("--waves", "conv9"), ChoiceError, {"got": "conv9", "choices": ["conv1", "conv2"]}),
        (("--waves", "0"), ChoiceError, {"got": "0"}),
        (("--waves", "3"), ChoiceError, {"got": "3"}),
        (("--waves", "1", "-o", "x.vcd"), InvalidValueError, {"what": "the file of waves", "got": "x.vcd"}),
        (("--waves", "1", "-o", "no/where.fst"), FileAccessError, {"path": "no/where.fst"}),
        (("-o", "x.fst"), MissingValueError, {"what": "--waves LAYER"}),
        (("--cycles", "--waves", "1"), ConflictError, {}),
    ],
)
def test_waves_with_bad_options_are_refused(
    engine: Path, picture: Path, options: tuple[str, ...], expected: type[SystolicError], fields: dict[str, object]
) -> None:
    refused(call("simulate", engine, "--picture", picture, *options), expected, **fields)


@pytest.mark.engine
def test_waves_of_cpp_engine_are_refused(tiny_design: Path, picture: Path, tmp_path: Path) -> None:
    done = call("simulate", tiny_design, "--picture", picture, "--waves", "1", "-o", tmp_path / "x.fst")
    refused(done, UnsupportedError, subject=f"recording waves of {tiny_design}")
    assert not list(tmp_path.iterdir())


def test_waves_of_pipeline_are_refused() -> None:
    pipeline = cast(StreamingDesign, SimpleNamespace(path=Path("pipe")))
    with raises(UnsupportedError, subject="recording waves of pipe"):
        StreamingStyle().recording(pipeline, "1", None)


# --- the compression used by Verilator's writer --------------------------------------------------------------------


def unpacked(block: bytes) -> bytes:
    """Return the bytes of an LZ4 block, unpacked as its format is described."""
    text, bytes_left = bytearray(), iter(block)

    def length(nibble: int) -> int:
        """Return a length. A nibble of 15 continues in the next bytes, up to the first that is not 255."""
        total, more = nibble, nibble == 15
        while more:
            byte = next(bytes_left)
            total, more = total + byte, byte == 255
        return total

    for token in bytes_left:
        text += bytes(next(bytes_left) for _ in range(length(token >> 4)))
        low = next(bytes_left, None)
        if low is None:  # the last literals have no match
            break
        distance = low + 256 * next(bytes_left)
        for _ in range(4 + length(token & 15)):
            text.append(text[-distance])
    return bytes(text)


@pytest.fixture(scope="module")
def packer(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Compile a library with both compression headers."""
    folder = tmp_path_factory.mktemp("packer")
    (folder / "pack.cpp").write_text(
        '#include "lz4.h"\n#include "zlib.h"\n'
        'extern "C" int lz4_block(const char *from, char *to, int size) '
        "{ return LZ4_compress_default(from, to, size, LZ4_compressBound(size)); }\n"
        'extern "C" unsigned long zlib_stream(const Bytef *from, Bytef *to, unsigned long size) '
        "{ uLongf written = compressBound(size); compress2(to, &written, from, size, 9); return written; }\n"
    )
    flags = ["-O1", "-std=c++17", "-shared", "-fPIC", "-fsanitize=undefined", "-fno-sanitize-recover=all", "-Wall"]
    compile_to([compiler(), *flags, "-Werror", f"-I{WAVES}", str(folder / "pack.cpp")], folder / "pack.so")
    return ctypes.CDLL(str(folder / "pack.so"))


@cases("size", [0, 1, 12, 13, 14, 100, 65534, 65535, 65536, 200_000])
def test_packed_bytes_unpack_to_the_same(packer: ctypes.CDLL, size: int) -> None:
    dice = random.Random(size)
    texts = [bytes(size), dice.randbytes(size), bytes(dice.choice(b"ab") for _ in range(size))]
    texts.append((dice.randbytes(70) * (size // 70 + 1))[:size])
    for text in texts:
        room = ctypes.create_string_buffer(size + size // 255 + 6 * (size // 65535 + 1) + 16)
        packed = packer.lz4_block(text, room, size)
        assert unpacked(room.raw[:packed]) == text
        assert packed < max(120, size // 20) or text in texts[1:3], "repeated bytes must be packed well"
        packed = packer.zlib_stream(text, room, size)
        assert zlib.decompress(room.raw[:packed]) == text
