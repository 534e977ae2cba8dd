"""Test the formats of network files: each front-end accepts its own options and refuses the others in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from boards.errors import ConflictError, UnsupportedError
from systolic.cli.completion import NETWORK_ENDINGS
from systolic.front_ends.front_end import FLAGS, LoadOptions
from systolic.front_ends.registry import BUILT_IN, front_end_named, front_end_of
from systolic.loading import load_named
from tests.support.errors import raises

GIVEN = {
    "weights": LoadOptions(weights=Path("a")),
    "names": LoadOptions(names=Path("a")),
    "seed": LoadOptions(seed=1),
    "size": LoadOptions(size=(8, 8)),
    "cuts": LoadOptions(cuts=("a",)),
}


@pytest.mark.parametrize(
    ("name", "foreign"),
    [
        ("net.cfg", {"cuts"}),
        ("net.onnx", {"weights", "seed"}),
        ("net.json", {"names", "cuts"}),
        ("param.h", {"weights", "names", "cuts"}),
        ("shapes", {"cuts"}),
        ("ultranet", {"names", "cuts"}),
    ],
)
def test_front_end_refuses_options_of_other_formats(name: str, foreign: set[str]) -> None:
    front_end = front_end_named(name)
    for option in foreign:
        with raises(ConflictError, subjects=(f"the network {name}", FLAGS[option])) as caught:
            load_named(name, GIVEN[option])
        assert caught.value.reason.startswith(front_end.title)
    for option in GIVEN.keys() - foreign:
        front_end.check(name, GIVEN[option])


def test_load_named_reports_all_foreign_options_at_once() -> None:
    options = LoadOptions(weights=Path("a"), seed=1, size=(8, 8))
    with pytest.raises(ConflictError) as caught:
        load_named("net.onnx", options)
    assert str(caught.value) == (
        "the network net.onnx and --weights and --seed exclude each other: an .onnx file holds its own weights and "
        "takes --names, --size, --cut; leave out --weights and --seed"
    )


def test_shell_completes_files_of_every_format() -> None:
    assert tuple(f".{ending}" for ending in BUILT_IN) == NETWORK_ENDINGS


def test_front_end_of_unknown_ending_is_none() -> None:
    for name in ("cfg", "net.CFG", "folder.onnx/net", "onnx."):
        assert front_end_of(name) is None, name
    with raises(UnsupportedError, subject="net.tflite as a network"):
        load_named("net.tflite", LoadOptions())
