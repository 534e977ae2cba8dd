"""The manifest of a streaming design is untrusted too."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from boards.errors import HostError
from host.contract.manifest import parse_manifest
from host.contract.parts import Manifest
from host.contract.streaming import StreamingManifest
from tests.host.manifests import changed, places, refusal
from tests.host.pipelines import HEIGHT, WIDTH, manifest


def test_reads_what_is_there() -> None:
    found = parse_manifest(manifest(), "manifest.json")
    assert isinstance(found, StreamingManifest)
    assert found.vlnv == "systolic:cnn:streaming_top:1.0"
    assert (found.packet_in.bytes, found.packet_in.beat_bytes) == (3 * HEIGHT * WIDTH, 3 * HEIGHT * WIDTH + 4)
    assert found.output_layers == (0,)
    assert (found.cycles, found.pass_cycles) == (1000, (1000.0,))
    paths = [image.path for image in found.files]
    assert paths == ["data/weights_centre.bin", "data/in.bin", "data/expected.bin"]


def test_the_slowest_block_sets_the_pace() -> None:
    (block,) = manifest()["blocks"]
    values = {**manifest(), "blocks": [{**block, "modelled_cycles": cycles} for cycles in (7, 1200)]}
    found = parse_manifest(values, "manifest.json")
    assert isinstance(found, StreamingManifest)
    assert (found.cycles, found.pass_cycles) == (1200, (1200.0,))


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
        (("packet_out", "bytes"), 1 << 26, "packet_out.bytes is 1…67108863, not 67108864"),
        (("packet_out", "bytes"), (1 << 26) - 1, "packet_out has at most 67108863 bytes in whole beats, not 67108864"),
        (("packet_out", "bytes"), 4031, r"centre lies within packet_out, not (0, 4032)"),
        (("outputs", 0, "offset"), 3, "centre: offset is whole values, not 3"),
        (("outputs", 0, "stream_channels"), 5, "centre: stream_channels holds its channels, not 5"),
        (("outputs", 0, "bytes"), 4031, "centre: bytes is 4032, the size of its map, not 4031"),
        (("layers", 0, "pixels"), 5, "centre: words and rows hold whole pixels, not (8, 5)"),
        (("layers", 0, "stream_channels"), 9, "centre: stream_channels holds its channels in whole words, not 9"),
        (("blocks",), [], "there is at least one block"),
        (("fifos", 0, "depth"), 0, "fifos[0].depth is 1…2147483648, not 0"),
        (("batch",), 2, "a frame is one pass and a batch, not (1, 2)"),
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


@pytest.mark.parametrize(
    ("clock", "is_read"), [(1e-3, True), (1999.5, True), (0, False), (2000, False), (2000.5, False)]
)
def test_a_clock_is_below_two_gigahertz(clock: float, is_read: bool) -> None:
    said = refusal(changed(manifest(), ("clock_mhz",), clock))
    assert ("clock_mhz is 0…2000, not" in said) == (not is_read)
    assert bool(said) == (not is_read)


@pytest.mark.parametrize("bits", [10, 999, 1000, 1001])
def test_a_whole_number_is_a_float_where_one_holds_it(bits: int) -> None:
    """Up to 1000 bits, which no quantity has; the rest is refused before it is made one."""
    said = refusal(changed(manifest(), ("input", "scale"), 1 << bits))
    assert ("scale is a finite number" in said) == (bits >= 1000)
    assert bool(said) == (bits >= 1000)


def test_a_frame_is_one_pass_where_nothing_is_said() -> None:
    values = {key: value for key, value in manifest().items() if key not in ("passes", "batch")}
    found = parse_manifest(values, "manifest.json")
    assert (found.passes, found.batch) == (1, 1)


def test_a_head_reads_maps_of_one_size_whatever_their_channels() -> None:
    """Of two outputs, of six channels and of one."""
    part = Manifest.validate
    shapes = {0: (6, 4, 5), 1: (1, 4, 5), 2: (1, 4, 4), 3: (1, 5, 5)}
    layers = [SimpleNamespace(output=SimpleNamespace(channels=shape[0], shape=shape)) for shape in shapes.values()]

    def check(*indices: int) -> None:
        head = SimpleNamespace(layers=indices, head=SimpleNamespace(channels=7))
        whole: Any = SimpleNamespace(clock_mhz=1, layers=layers, heads=[head], output_layers=(0, 1, 2, 3))
        part(whole)

    check(0, 1)
    for other in (2, 3):
        with pytest.raises(HostError, match="a head reads maps of one height and width, not"):
            check(0, other)
    with pytest.raises(HostError, match="a head of 8 channels, not 7"):
        check(0, 1, 1)
    with pytest.raises(HostError, match="a head reads one of the outputs, not 4"):
        check(0, 4)
