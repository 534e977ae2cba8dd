"""Conversion of a frame's channels to the channels of the network's input."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from boards.errors import DamagedFileError, FileAccessError, MismatchError, RangeError, ShapeError
from host.vision.channels import checked_frame, load_frame, network_input, to_draw_on
from host.vision.frame import StageSpan, StageTiming, measure
from host.vision.picture import MAX_PICTURE_PIXELS
from tests.support.errors import raises


def test_grey_is_the_rounded_luminance_of_itu_r_601() -> None:
    """Check Pillow's formula: 0.299 red, 0.587 green, 0.114 blue, rounded half up."""
    frame = np.random.default_rng(1).integers(0, 256, (6, 8, 3), np.uint8)
    frame[0, 0], frame[0, 1] = 255, (1, 1, 1)
    pixels, _ = network_input(frame, (1, 6, 8), "plain")
    exact = frame.astype(np.float64) @ [19595 / 65536, 38470 / 65536, 7471 / 65536]
    np.testing.assert_array_equal(pixels[0], np.floor(exact + 0.5))
    assert pixels.shape == (1, 6, 8)


def test_grey_becomes_three_equal_channels() -> None:
    frame = np.arange(48, dtype=np.uint8).reshape(6, 8, 1)
    pixels, _ = network_input(frame, (3, 6, 8), "plain")
    assert all(np.array_equal(channel, frame[:, :, 0]) for channel in pixels)
    five = np.stack([np.full((6, 8), value, np.uint8) for value in range(5)], axis=2)
    assert np.array_equal(to_draw_on(five), np.zeros((6, 8, 3)))
    with raises(MismatchError, what="the number of channels of a picture", got=5, expected=3):
        network_input(five, (3, 6, 8), "plain")


def test_network_input_above_the_pixel_limit_is_refused_before_reading() -> None:
    """Use an array of numpy that has 3 TiB of pixels and takes one byte of memory."""
    for shape in ((1 << 20, 1 << 20, 3), (1 << 40, 1, 3), (1, MAX_PICTURE_PIXELS + 1), (1 << 31, 1 << 31, 1)):
        view = np.broadcast_to(np.uint8(7), shape)
        with raises(RangeError, got=shape[0] * shape[1], high=MAX_PICTURE_PIXELS):
            network_input(view, (3, 8, 8), "plain")
    checked_frame(np.broadcast_to(np.uint8(7), (MAX_PICTURE_PIXELS, 1, 3)))


def test_array_file_is_a_frame_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "five.npy"
    with raises(FileAccessError, path=str(path), what="array file"):
        load_frame(path)
    five = np.arange(60, dtype=np.uint8).reshape(3, 4, 5)
    np.save(path, five)
    np.testing.assert_array_equal(load_frame(path), five)
    whole = path.read_bytes()
    archive = io.BytesIO()
    np.savez(archive, five=five)
    headers = [
        whole.replace(was, by)
        for was, by in (
            (
                b"False",
                b"(((((",
            ),
            (b"'|u1'", b"'|O' "),
            (b"(3,", b"(1.,"),
        )
    ]
    assert whole not in headers
    for damaged in (b"", b"of something else", whole[:-1], archive.getvalue(), *headers):
        path.write_bytes(damaged)
        with raises(DamagedFileError, path=str(path), remedy="write it with numpy.save"):
            load_frame(path)
    np.save(path, five.astype(np.float32))
    with raises(ShapeError, where=str(path), what="the picture", got="float32 [3, 4, 5]"):
        load_frame(path)
    path.write_bytes(whole)
    monkeypatch.setattr("host.vision.channels.MAX_PICTURE_BYTES", 59)
    with raises(RangeError, where=str(path), got=60, high=59):
        load_frame(path)


def test_measure_of_overlapping_frames_has_busy_latency_and_throughput() -> None:
    """Measure two frames that overlap, with two workers in the stage ``load``."""
    spans = [
        (StageSpan("load", 0.0, 0.5), StageSpan("accelerate", 0.5, 0.625)),
        (StageSpan("load", 0.25, 1.25), StageSpan("accelerate", 1.25, 1.625)),
    ]
    assert str(StageTiming(spans[0])) == "625.00 ms: load 500.00 ms, accelerate 125.00 ms"
    measured = measure(spans, {"load": 2})
    assert measured.busy == {"load": 0.375, "accelerate": 0.25}
    assert (measured.frames, measured.first, measured.seconds) == (2, 1, 1.0)
    assert measured.latency == (0.625 + 1.375) / 2
    assert measured.throughput == 1.0
    assert measured.bound_by == "load"
    assert measured.overlap == 0.375
