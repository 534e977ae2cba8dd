"""The suite keeps its rules: one cost per test, helpers outside test modules, no connection to other machines."""

from __future__ import annotations

import ast
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.suite import costs_of, is_own_machine, parts_of, share_of, workers

ROOT = Path(__file__).resolve().parents[1]

MAY_IMPORT = re.compile(r"^\s*(from|import) tests\b.*(test_|conftest|\($)", re.MULTILINE)
"""Text that a module with such an import has; most modules need not be parsed."""


def imported_tests(path: Path) -> Iterator[str]:
    """Yield the test modules and conftests that a module imports."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            is_test = parts[-1].startswith("test_") or parts[-1] == "conftest"
            if parts[0] == "tests" and is_test and ROOT.joinpath(*parts).with_suffix(".py").is_file():
                yield name


def test_modules_of_tests_import_no_test_module() -> None:
    wrong = {
        path.relative_to(ROOT).as_posix(): names
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if MAY_IMPORT.search(path.read_text("utf-8"))
        if (names := sorted(imported_tests(path)))
    }
    assert not wrong, "shared builders belong in tests/support, fixtures in a conftest.py"


def test_imported_tests_finds_imports_of_test_modules(tmp_path: Path) -> None:
    path = tmp_path / "test_m.py"
    path.write_text("from tests.support.suite import costs_of\nfrom tests import test_suite\nimport tests.conftest\n")
    assert list(imported_tests(path)) == ["tests.test_suite", "tests.conftest"]
    assert MAY_IMPORT.search(path.read_text())


def test_costs_of_names_finds_the_cost_markers() -> None:
    assert costs_of(["pynq", "proof", "parametrize", "engine"]) == ["engine", "proof"]
    assert costs_of(["pynq"]) == []


@pytest.mark.parametrize("text", ["3", "10/10", "-1/10", "a/b", "1/0"])
def test_share_of_another_form_raises(text: str) -> None:
    with pytest.raises(ValueError, match=r"--share takes|invalid literal"):
        share_of(text)


def test_share_of_reads_part_and_parts() -> None:
    assert share_of("3/10") == (3, 10)


def test_parts_take_about_the_same_time() -> None:
    seconds = {f"tests/test_{number}.py": float(number) for number in range(1, 41)}
    chosen = parts_of([*seconds, "tests/test_new.py"], seconds, 10)
    loads = [sum(seconds[unit] for unit in seconds if chosen[unit] == part) for part in range(10)]
    assert max(loads) - min(loads) < 5
    assert chosen["tests/test_new.py"] == parts_of(["tests/test_new.py"], {}, 10)["tests/test_new.py"]


def test_parts_of_many_units_are_all_used() -> None:
    chosen = parts_of([f"unit{number}" for number in range(200)], {"unit3": 5.0}, 10)
    assert set(chosen.values()) == set(range(10))


def test_single_files_run_without_workers() -> None:
    assert workers(["tests/test_suite.py", "tests/boards/test_board.py::test_a"], 4) == 0
    assert workers([], 4) == workers(["tests/boards"], 4) == workers(["tests", "tests/test_suite.py"], 4) == 4
    assert workers([], 1) == 0
    assert workers([], 64) == 8


@pytest.mark.parametrize(
    ("address", "own"),
    [
        (("127.0.0.1", 80), True),
        (("::1", 80, 0, 0), True),
        (("localhost", 80), True),
        ("/run/socket", True),
        (("192.0.2.1", 80), False),
        (("pypi.org", 443), False),
    ],
)
def test_is_own_machine_recognises_addresses_of_this_machine(address: object, own: bool) -> None:
    assert is_own_machine(address) == own


def test_connection_of_a_default_test_to_another_machine_fails() -> None:
    with socket.socket() as client, pytest.raises(AssertionError, match="campaign"):
        client.connect(("192.0.2.1", 80))
    with socket.socket() as server, socket.socket() as client:
        server.bind(("127.0.0.1", 0))
        server.listen()
        client.connect(server.getsockname())
