"""The arguments of a simulation library, recorded by two small libraries."""

from __future__ import annotations

import ctypes
import signal
import subprocess
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from boards.errors import DamagedFileError, MismatchError, RangeError
from contract.geometry import Geometry
from contract.program import ADDED_FIELDS, PASS_FIELDS, names_of
from host.contract.libraries import (
    MESSAGE_ROOM,
    StoppedError,
    StreamingLibrary,
    SystolicLibrary,
    SystolicMemory,
    array_numbers,
)
from tests.support.errors import raises

SOURCE = r"""
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const int64_t numbers[] = {NUMBERS};
extern "C" {
int64_t seen[8];

int systolic_geometry(int64_t* values, int count) {
    const int length = sizeof(numbers) / sizeof(numbers[0]);
    for (int i = 0; i < length && i < count; i++)
        values[i] = numbers[i];
    return length;
}

#ifdef SYSTOLIC
// Writes the first byte of weight port p modulo 2 into byte p of the maps. Stops at a pass whose requantiser is 99, and
// sends SIGTERM to this process in a pass whose requantiser is 98.
int systolic_simulate(uint8_t* maps, size_t map_words, uint8_t** weights, size_t weight_words, uint8_t* requantisers,
                      size_t requantiser_count, uint32_t* program, size_t program_words, uint32_t first,
                      uint32_t count, uint32_t* current, int (*after)(uint32_t), char* message, size_t room) {
    const int64_t words[] = {(int64_t)map_words, (int64_t)weight_words, (int64_t)requantiser_count,
                             (int64_t)program_words, first, count, (int64_t)room};
    memcpy(seen, words, sizeof(words));
    for (*current = first; *current < first + count; (*current)++) {
        maps[*current] = weights[*current % 2][0];
        if (requantisers[*current] == 98)
            raise(SIGTERM);
        if (after(*current))
            return 0;
        if (requantisers[*current] == 99) {
            memset(message, 'x', room - 1);
            message[room - 1] = 0;
            return 1;
        }
        if (program[*current] == 7) {
            snprintf(message, room, "word %u is \xff", *current);
            return 1;
        }
    }
    return 0;
}

#ifdef PASS_CYCLES
int systolic_pass_cycles(int64_t* values, int count) {
    const int64_t cycles[] = {PASS_CYCLES};
    const int length = sizeof(cycles) / sizeof(cycles[0]);
    for (int i = 0; i < length && i < count; i++)
        values[i] = cycles[i];
    return length;
}
#endif

char path[64];
int systolic_waves(const char* file, uint32_t first, uint32_t last) {
    snprintf(path, sizeof(path), "%s %u %u", file, first, last);
    return 0;
}

// Bank b of buffer 2 holds 100 + 10 b + r in all bytes of its row r, of two words each.
int systolic_map_bank(int buffer, int bank, int8_t* bytes, size_t words) {
    for (size_t word = 0; word < words; word++)
        memset(bytes + 8 * word, buffer * 50 + 10 * bank + (int)(word / 2), 8);
    return 0;
}
#else
int systolic_stream(const uint8_t* in, uint8_t* out, uint8_t** images, size_t* words, int frames,
                    int (*take)(int, int32_t*, size_t), char* message, size_t room) {
    seen[0] = (int64_t)words[0], seen[1] = (int64_t)words[1], seen[2] = frames, seen[3] = (int64_t)room;
    int32_t values[] = {-1, 5, 70000};
    for (int frame = 0; frame < frames; frame++) {
        for (int byte = 0; byte < 2; byte++)
            out[2 * frame + byte] = in[3 * frame + byte] + images[byte][0];
        if (in[3 * frame] == 250) {
            snprintf(message, room, "frame %d came", frame);
            return 1;
        }
        if (take(in[3 * frame + 2], values, 3))
            return 0;
    }
    return 0;
}
#endif
}
"""

ARRAY = Geometry(
    rows=3, columns=8, lanes=8, save_rows=1, map_ports=2, weight_ports=2, row_depth=16, weight_depth=32,
    kept_depth=7, chunk=5, channel_tiles=9, dsp="DSP48E2", bits=8, weight_words=2, map_depth=64,
)  # fmt: skip
MANIFEST: Any = SimpleNamespace(array=ARRAY, word_bytes=8, weight_word_bytes=16, pass_words=64, passes=3)
STREAM: Any = SimpleNamespace(
    packet_in=SimpleNamespace(bytes=3),
    packet_out=SimpleNamespace(bytes=2),
    images=(SimpleNamespace(port="w0", word_bytes=4), SimpleNamespace(port="w1", word_bytes=6)),
    layers=("first", "second"),
)


def library(folder: Path, numbers: list[int], cycles: str = "", systolic: bool = True) -> Path:
    target = folder / "library.so"
    options = [f"-DNUMBERS={','.join(map(str, numbers))}", *["-DSYSTOLIC"][: int(systolic)]]
    options += [f"-DPASS_CYCLES={cycles}"] if cycles else []
    command = ["g++", "-xc++", "-shared", "-fPIC", "-O0", *options, "-", "-o", str(target)]
    subprocess.run(command, input=SOURCE.encode(), check=True)
    return target


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library(tmp_path_factory.mktemp("by_hand"), [number for _, number in array_numbers(MANIFEST)])


@pytest.fixture(scope="module")
def streaming(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library(tmp_path_factory.mktemp("streaming"), [3, 2, 4, 6], systolic=False)


def seen(of: Any) -> list[int]:
    return list((ctypes.c_int64 * 8).in_dll(of.handle, "seen"))


def memory() -> SystolicMemory:
    """Return 10 words of maps, 4 requantisers and 192 words of program.

    The two weight ports have 3 and 4 words; the library is given 3.
    """
    weights = (np.full(3 * 16, 21, np.uint8), np.full(4 * 16, 42, np.uint8))
    return SystolicMemory(np.zeros(80, np.uint8), weights, np.zeros(4 * 16, np.uint8), np.zeros(192, np.uint32))


def test_run_passes_words_and_range_and_calls_back_after_each_pass(built: Path) -> None:
    of, whole, passes = SystolicLibrary(built, MANIFEST), memory(), list[int]()
    assert of.run(whole, 1, 2, passes.append) == 3
    assert seen(of)[:7] == [10, 3, 4, 192, 1, 2, MESSAGE_ROOM]
    assert passes == [1, 2]
    assert whole.maps[:4].tolist() == [0, 42, 21, 0]
    assert of.run(whole, 0, 1) == 1


def test_run_stopped_by_the_library_raises_its_sentence_and_pass(built: Path) -> None:
    of, whole = SystolicLibrary(built, MANIFEST), memory()
    whole.program[2] = 7
    with raises(
        StoppedError, sentence="word 2 is \ufffd", code="the generated code stopped in pass 2", current=2
    ) as stopped:
        of.run(whole, 0, 3)
    assert str(stopped.value) == "the generated code stopped in pass 2: word 2 is \ufffd"
    whole.requantisers[1] = 99
    with raises(StoppedError, sentence="x" * (MESSAGE_ROOM - 1), current=1):
        of.run(whole, 0, 3)


def test_run_with_a_failing_callback_raises_its_error(built: Path) -> None:
    for kind in (ValueError, KeyboardInterrupt):
        passes: list[int] = []

        def after(index: int, kind: type[BaseException] = kind, passes: list[int] = passes) -> None:
            passes.append(index)
            if index == 1:
                raise kind("enough")

        with pytest.raises(kind, match="enough"):
            SystolicLibrary(built, MANIFEST).run(memory(), 0, 3, after)
        assert passes == [0, 1]


def test_run_signal_during_generated_code_is_handled_after_its_return(built: Path) -> None:
    def stop(number: int, _: object) -> None:
        raise ValueError(number)

    before, whole, passes = signal.signal(signal.SIGTERM, stop), memory(), list[int]()
    whole.requantisers[1] = 98
    try:
        with pytest.raises(ValueError, match=str(int(signal.SIGTERM))):
            SystolicLibrary(built, MANIFEST).run(whole, 0, 3, passes.append)
        assert signal.getsignal(signal.SIGTERM) is stop
    finally:
        signal.signal(signal.SIGTERM, before)
    assert passes == [0]


def test_pass_cycles_are_limited_to_the_passes_of_the_manifest(built: Path, tmp_path: Path) -> None:
    assert SystolicLibrary(built, MANIFEST).pass_cycles() == ()
    numbers = [number for _, number in array_numbers(MANIFEST)]
    made = library(tmp_path, numbers, "1, 2, 3, 4")
    assert SystolicLibrary(made, MANIFEST).pass_cycles() == (1, 2, 3)
    more: Any = SimpleNamespace(**{**vars(MANIFEST), "passes": 9})
    assert SystolicLibrary(made, more).pass_cycles() == (1, 2, 3, 4)


def test_record_passes_path_and_range_to_the_library(built: Path) -> None:
    of = SystolicLibrary(built, MANIFEST)
    for path, first, last, told in ((Path("a.fst"), 2, 5, b"a.fst 2 5"), (None, 0, 1, b" 0 1")):
        of.record(path, first, last)
        assert (ctypes.c_char * 64).in_dll(of.handle, "path").value == told


def test_map_on_chip_reads_row_r_from_bank_r_plus_turn(built: Path) -> None:
    """Check seven rows of two words. Row r is in bank (r + turn) % 3, after the earlier rows of the bank."""
    for turn in (None, 0, 1, 2):
        region: Any = SimpleNamespace(map_buffer=2, height=7, bytes=7 * 16, turn=turn, place=None)
        rows = SystolicLibrary(built, MANIFEST).map_on_chip(region)
        assert rows.shape == (7, 16)
        for row, values in enumerate(rows):
            assert set(values.tolist()) == {np.int8(100 + 10 * ((row + (turn or 0)) % 3) + row // 3)}


def test_map_on_chip_words_beyond_the_buffer_are_zero(built: Path) -> None:
    """Check seven rows of three words from word 57 of 64. Words after the end of the buffer are 0."""
    region: Any = SimpleNamespace(map_buffer=1, height=7, bytes=7 * 24, turn=1, place=57)
    rows = SystolicLibrary(built, MANIFEST).map_on_chip(region)
    for row, values in enumerate(rows.reshape(7, 3, 8)):
        first = 57 + 3 * (row // 3)
        words = [50 + 10 * ((row + 1) % 3) + (first + word) // 2 if first + word < 64 else 0 for word in range(3)]
        assert values[:, 0].tolist() == [np.int8(word) for word in words]


def test_array_numbers_are_the_fields_of_the_array_without_dsp_and_engine() -> None:
    """Check that the numbers have the order of the array's fields, and the names of parameters.h."""
    names = [key.name for key in fields(ARRAY) if not key.name.startswith(("dsp", "engine", "sum_bits"))]
    told = array_numbers(MANIFEST)
    assert [name for name, _ in told[:-3]] == [{"bits": "VALUE_BITS"}.get(name, name.upper()) for name in names]
    assert [number for _, number in told[:-3]] == [getattr(ARRAY, name) for name in names]
    assert told[-3:] == [("a word of maps", 8), ("a word of weights", 16), ("PASS_WORDS", 64)]


def test_systolic_library_of_other_numbers_is_refused(tmp_path: Path) -> None:
    numbers = [number for _, number in array_numbers(MANIFEST)]
    path = library(tmp_path, [*numbers[:-1], 65])
    with raises(MismatchError, what="PASS_WORDS", got=65, expected=64, where=str(path)):
        SystolicLibrary(path, MANIFEST)
    (tmp_path / "fewer").mkdir()
    path = library(tmp_path / "fewer", numbers[:-1])
    with raises(MismatchError, got=len(numbers) - 1, expected=len(numbers), where=str(path)):
        SystolicLibrary(path, MANIFEST)


def test_systolic_library_that_is_damaged_is_refused(tmp_path: Path) -> None:
    (tmp_path / "it.so").write_bytes(b"of something else")
    with raises(DamagedFileError, path=str(tmp_path / "it.so")):
        SystolicLibrary(tmp_path / "it.so", MANIFEST)


def test_streaming_run_returns_packets_and_layers_per_frame(streaming: Path) -> None:
    of, layers = StreamingLibrary(streaming, STREAM), list[tuple[int, list[int]]]()
    images = [np.full(8, 10, np.uint8), np.full(18, 20, np.uint8)]
    packets = np.array([[1, 2, 0], [3, 4, 1]], np.uint8)
    out = of.run(images, packets, lambda tap, values: layers.append((tap, values.tolist())))
    assert out.tolist() == [[11, 22], [13, 24]]
    assert layers == [(0, [-1, 5, 70000]), (1, [-1, 5, 70000])]
    assert seen(of)[:4] == [2, 3, 2, MESSAGE_ROOM]
    for tap in (2, 255):
        with raises(RangeError, what="the index of a layer", got=tap, low=0, high=1):
            of.run(images, np.array([[1, 2, tap]], np.uint8))
    with raises(StoppedError, code="the generated pipeline stopped", sentence="frame 1 came"):
        of.run(images, np.array([[1, 2, 0], [250, 0, 0]], np.uint8))


def test_streaming_library_of_other_packets_is_refused(streaming: Path) -> None:
    other: Any = SimpleNamespace(**{**vars(STREAM), "packet_out": SimpleNamespace(bytes=4)})
    with raises(MismatchError, what="OUT_BYTES", got=2, expected=4, where=str(streaming)):
        StreamingLibrary(streaming, other)


def test_names_of_an_array_with_added_maps_end_with_the_added_fields() -> None:
    for added in (0, 1):
        array = Geometry(**{**vars(ARRAY), "added_maps": added})
        assert names_of(array) == PASS_FIELDS + ADDED_FIELDS * added
        assert array.maps_ports == 2 + added
