"""The integers of a network's input and outputs on the host."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from boards.errors import ShapeError
from host.contract.tensors import check_input, fill_pixels, planes_of, to_floats
from tests.support.errors import raises


def test_pixels_are_stored_plane_after_plane() -> None:
    """Check that channel c is byte c % pixel_bytes of plane c // pixel_bytes. Bytes in between stay unchanged."""
    for channels, pixel_bytes in ((1, 4), (3, 4), (4, 4), (5, 4), (9, 4), (2, 1)):
        picture = np.random.default_rng(channels).integers(1, 256, (channels, 2, 3), np.uint8)
        planes = -(-channels // pixel_bytes)
        plane = 3 * pixel_bytes + 5
        rows = np.zeros((2, planes * plane), np.uint8)
        fill_pixels(picture, rows, pixel_bytes)
        wanted = np.zeros_like(rows)
        for c, y, x in np.ndindex(picture.shape):
            wanted[y, c // pixel_bytes * plane + x * pixel_bytes + c % pixel_bytes] = picture[c, y, x]
        np.testing.assert_array_equal(rows, wanted)
        assert planes_of(rows, picture.shape, pixel_bytes).shape == (2, planes, 3, pixel_bytes)


def test_integers_become_floats_relative_to_their_zero_point() -> None:
    tensor: Any = SimpleNamespace(scale=0.1, zero_point=-3)
    wanted = [np.float32((value + 3) * 0.1) for value in (-128, -3, 0, 127)]
    floats = to_floats(tensor, np.array([-128, -3, 0, 127], np.int8))
    assert floats.tolist() == wanted
    assert floats.dtype == np.float32
    far = to_floats(SimpleNamespace(scale=1.0, zero_point=1), np.array([(1 << 31) - 1], np.int64))  # type: ignore[arg-type]
    assert far.tolist() == [float(np.float32((1 << 31) - 2))]


def test_input_of_another_shape_or_type_is_refused() -> None:
    tensor: Any = SimpleNamespace(shape=(3, 2, 2))
    check_input(np.zeros((3, 2, 2), np.uint8), tensor)
    wrong: list[tuple[Any, str]] = [
        (np.zeros((3, 2, 3), np.uint8), "type uint8 and shape (3, 2, 3)"),
        (np.zeros((3, 2, 2), np.int8), "type int8 and shape (3, 2, 2)"),
        (np.zeros((12,), np.uint8), "type uint8 and shape (12,)"),
        ([], "[]"),
    ]
    for picture, got in wrong:
        with raises(ShapeError, what="the input", got=got, required="type uint8 and shape (3, 2, 2)"):
            check_input(picture, tensor)
