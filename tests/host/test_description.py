"""A .hwh that is damaged is told before pynq reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from boards.errors import HostError
from host.board.description import check_description

GOOD = (Path(__file__).parents[1] / "golden/systolic/design/systolic.hwh").read_bytes()


def test_what_is_generated_is_taken(tmp_path: Path) -> None:
    (tmp_path / "a.hwh").write_bytes(GOOD)
    check_description(tmp_path / "a.hwh")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (GOOD[:1000], "is no hardware description, it is no XML"),
        (b"", "is no hardware description, it is no XML"),
        (GOOD.replace(b"UTF-8", b"klingon"), "is no hardware description, it is no XML"),
        (b"\xff\xfe" + GOOD, "is no hardware description, it is no XML"),
        (GOOD.replace(b"MODULES", b"modules"), "is no hardware description, it has no modules"),
    ],
)
def test_what_is_damaged_is_refused(data: bytes, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "a.hwh").write_bytes(data)
    with pytest.raises(HostError) as caught:
        check_description(tmp_path / "a.hwh")
    assert sentence in str(caught.value)
    assert "copy the .hwh of the .bit's own folder again" in str(caught.value)
