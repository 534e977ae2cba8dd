"""A damaged .hwh is reported before pynq reads it."""

from __future__ import annotations

from pathlib import Path

from boards.errors import DamagedFileError, FileAccessError, RangeError
from host.board.overlay import MAX_DESCRIPTION_BYTES, check_description
from tests.support.errors import raises

GOOD = (Path(__file__).parents[1] / "golden/systolic/design/systolic.hwh").read_bytes()


def test_check_description_accepts_a_generated_description(tmp_path: Path) -> None:
    (tmp_path / "a.hwh").write_bytes(GOOD)
    check_description(tmp_path / "a.hwh")


def test_damaged_description_is_refused(tmp_path: Path) -> None:
    path, again = tmp_path / "a.hwh", "copy the .hwh of the .bit's own folder again"
    with raises(FileAccessError, path=str(path), what="hardware description", remedy=again):
        check_description(path)
    for data, reason in (
        (GOOD[:1000], "it is not XML"),
        (b"", "it is not XML"),
        (GOOD.replace(b"UTF-8", b"klingon"), "it is not XML"),
        (b"\xff\xfe" + GOOD, "it is not XML"),
        (GOOD.replace(b"MODULES", b"modules"), "it has no modules"),
        (GOOD.replace(b"EDKSYSTEM", b"SYSTEM"), "it has no modules"),
    ):
        path.write_bytes(data)
        with raises(DamagedFileError, path=str(path), remedy=again) as caught:
            check_description(path)
        assert caught.value.reason.startswith(f"is not a hardware description: {reason}"), data[:40]
    with path.open("wb") as file:
        file.truncate(MAX_DESCRIPTION_BYTES + 1)
    with raises(RangeError, where=str(path), got=MAX_DESCRIPTION_BYTES + 1, high=MAX_DESCRIPTION_BYTES):
        check_description(path)
