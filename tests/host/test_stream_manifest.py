"""The manifest of a streaming design."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from boards.errors import ChoiceError, InvalidValueError, MismatchError, RangeError
from host.contract.manifest import of_style, parse_manifest
from host.contract.streaming import Packet, StreamingManifest
from tests.support.host.manifests import changed, check_rows, golden_values, refusal, subject_of
from tests.support.host.pipelines import HEIGHT, WIDTH, manifest


def read(values: dict[str, Any]) -> StreamingManifest:
    return of_style(StreamingManifest, parse_manifest(values, "manifest.json"))


def test_manifest_is_read() -> None:
    found = read(manifest())
    assert found.vlnv == "systolic:cnn:streaming_top:1.0"
    assert (found.packet_in.bytes, found.packet_in.beat_bytes) == (3 * HEIGHT * WIDTH, 3 * HEIGHT * WIDTH + 4)
    assert found.output_layers == (0,)
    assert (found.cycles, found.pass_cycles) == (1000, (1000.0,))
    paths = [image.path for image in found.files]
    assert paths == ["data/weights_centre.bin", "data/in.bin", "data/expected.bin"]
    assert [image.path for image in replace(found, check=None).files] == paths[:1]
    bare = read({key: value for key, value in manifest().items() if key not in ("passes", "batch")})
    assert (bare.passes, bare.batch) == (1, 1)


def test_slowest_block_sets_the_pace() -> None:
    (block,) = manifest()["blocks"]

    def with_cycles(*counts: int) -> dict[str, Any]:
        return {**manifest(), "blocks": [{**block, "modelled_cycles": cycles} for cycles in counts]}

    found = read(with_cycles(7, 1200))
    assert (found.cycles, found.pass_cycles) == (1200, (1200.0,))
    for cycles, is_read in ((0, False), (1, True), ((1 << 48) - 1, True), (1 << 48, False)):
        error = refusal(with_cycles(cycles))
        subject = subject_of(error) if error else ""
        assert subject == ("" if is_read else "the cycles of the slowest block"), cycles


def test_packet_beat_bytes_are_rounded_up_to_whole_beats() -> None:
    for size, beat, beats in ((1, 8, 8), (8, 8, 8), (9, 8, 16), (9, 1, 9), (1000, 128, 1024)):
        assert Packet(bytes=size, beat=beat).beat_bytes == beats


def test_values_that_disagree_are_refused() -> None:
    check_rows(
        golden_values("streaming"),
        [
            ("passes", [1], [2], MismatchError, "passes"),
            ("batch", [1], [2], MismatchError, "batch"),
            ("blocks", [], [[]], RangeError, "the number of blocks"),
            ("outputs", [], [[]], RangeError, "the number of outputs"),
            ("outputs.0.layer", [2], [3], RangeError, "the layer of an output"),
            ("packet_in.bytes", [1536], [1535, 1537], MismatchError, "packet_in: bytes"),
            ("input.datatype", ["UINT8"], ["INT8", "UINT7"], MismatchError, "input: datatype"),
            ("layers.0.pixels", [1], [2], InvalidValueError, "first: pixels"),
            ("layers.0.lanes", [1, 2, 8], [3, 16], InvalidValueError, "first: stream_channels"),
            (
                "layers.0.output.datatype",
                ["INT32", "UINT1", "BIPOLAR", "TERNARY"],
                ["INT33", "INT0", "TERNARY2"],
                InvalidValueError,
                "first: datatype",
            ),
        ],
    )
    packet = "packet_out: the number of bytes in whole beats"
    check_rows(
        manifest(),
        [
            ("clock_mhz", [1e-3, 1999.5], [0, 2000, 2000.5], InvalidValueError, "clock_mhz"),
            ("packet_in.bytes", [], [755], MismatchError, "packet_in: bytes"),
            ("packet_out.bytes", [4032, 4033], [(1 << 26) - 1], RangeError, packet),
            ("packet_out.bytes", [], [4031], RangeError, "centre: the end of the output in packet_out"),
            ("outputs.0.offset", [0], [-2], RangeError, "centre: offset"),
            ("outputs.0.offset", [], [1, 3], InvalidValueError, "centre: offset"),
            ("outputs.0.stream_channels", [], [5, (1 << 17) + 1], RangeError, "centre: stream_channels"),
            ("outputs.0.bytes", [4032], [4031, 4033], MismatchError, "centre: bytes"),
            ("layers.0.pixels", [1], [5], InvalidValueError, "centre: pixels"),
            ("layers.0.stream_channels", [8, 16], [9], InvalidValueError, "centre: stream_channels"),
            ("heads.0.layer", [0], [1], ChoiceError, "the index of a layer that a head reads"),
            ("heads.0.classes", [1], [2], MismatchError, "the channels of a head"),
        ],
    )


def test_outputs_follow_each_other_in_the_packet() -> None:
    (output,) = manifest()["outputs"]
    for offset, subject in (
        (4032, ""),
        (4030, "centre: offset"),
        (4034, "centre: the end of the output in packet_out"),
    ):
        values = changed(manifest(), "packet_out.bytes", 8064)
        error = refusal({**values, "outputs": [output, {**output, "offset": offset}]})
        assert (subject_of(error) if error else "") == subject
