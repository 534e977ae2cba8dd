"""The manifest of a streaming design is untrusted too."""

from __future__ import annotations

from typing import Any

import pytest

from host.contract.manifest import parse_manifest
from host.contract.streaming import StreamManifest
from tests.host.manifests import changed, places, refusal
from tests.host.pipelines import HEIGHT, WIDTH, manifest


def test_reads_what_is_there() -> None:
    found = parse_manifest(manifest(), "manifest.json")
    assert isinstance(found, StreamManifest)
    assert found.vlnv == "systolic:cnn:streaming_top:1.0"
    assert (found.packet_in.bytes, found.packet_in.whole) == (3 * HEIGHT * WIDTH, 3 * HEIGHT * WIDTH + 4)
    assert found.kept_layers() == (0,)
    assert (found.cycles, found.pass_cycles) == (1000, (1000.0,))
    paths = [image.path for image in found.images]
    assert paths == ["data/weights_centre.bin", "data/in.bin", "data/expected.bin"]


def test_the_slowest_block_sets_the_pace() -> None:
    values = {**manifest(), "blocks": [{"modelled_cycles": 7}, {"modelled_cycles": 1200}]}
    found = parse_manifest(values, "manifest.json")
    assert isinstance(found, StreamManifest)
    assert (found.cycles, found.pass_cycles) == (1200, (1200.0,))


def test_outputs_begin_at_whole_beats_where_nothing_else_is_said() -> None:
    values = changed(manifest(), ("outputs", 0, "offset"), ...)
    small = {**values["outputs"][0], "height": 1, "width": 1, "stream_channels": 7}
    values["outputs"] = [small, small, small]
    found = parse_manifest(values, "manifest.json")
    assert isinstance(found, StreamManifest)
    assert [(one.offset, one.size) for one in found.outputs] == [(0, 14), (16, 14), (32, 14)]


@pytest.mark.parametrize("new", [..., None, -1, 1 << 70, 1e400, float("nan"), "x", "../../etc/passwd", [], {}, True])
def test_whatever_is_changed_it_is_a_manifest_or_refused(new: Any) -> None:
    said = [refusal(changed(manifest(), path, new)) for path in places(manifest())]
    refused = [sentence for sentence in said if sentence]
    assert len(refused) > 20
    assert all(sentence.startswith("manifest.json ") for sentence in refused)


@pytest.mark.parametrize(
    ("path", "new", "sentence"),
    [
        (("packet_in", "bytes"), 755, "packet_in.bytes is 756, a byte a value, not 755"),
        (("packet_in", "beat"), 24, "packet_in.beat is one of 1, 2, 4, 8, 16, 32, 64, 128, not 24"),
        (("packet_out", "bytes"), 1 << 26, "packet_out has at most 67108863 bytes, not 67108864"),
        (("packet_out", "bytes"), 4031, r"centre lies within packet_out, not (0, 4032)"),
        (("outputs", 0, "offset"), 3, "centre: offset is whole values, not 3"),
        (("outputs", 0, "stream_channels"), 5, "centre: stream_channels holds its channels, not 5"),
        (("outputs", 0, "layer"), 1, "an output is that of one of the layers, not 1"),
        (("heads", 0, "layer"), 1, "a head reads one of the outputs, not 1"),
        (("heads", 0, "classes"), 2, "a head of 6 channels, not 7"),
        (("images", 0, "path"), "../x", "an image stays inside the folder, '../x' does not"),
        (("frames_per_start",), 0, "frames_per_start is 1…2147483647, not 0"),
        (("packet_out",), ..., "lacks 'packet_out'; generate the design again"),
    ],
)
def test_says_what_is_wrong(path: tuple[Any, ...], new: Any, sentence: str) -> None:
    assert sentence in refusal(changed(manifest(), path, new))
