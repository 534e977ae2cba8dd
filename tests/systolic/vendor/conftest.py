"""Fixtures: a small design, its claims, and a synthesis run whose reports meet every claim."""

from __future__ import annotations

from pathlib import Path

import pytest

from systolic.vendor.claims import Claims, read_claims
from tests.support.vendor.texts import Run, as_claimed, small_folder


@pytest.fixture
def design(tmp_path: Path) -> Path:
    """Return the folder of a small design with its own sources."""
    return small_folder(tmp_path / "design")


@pytest.fixture
def claims(design: Path) -> Claims:
    return read_claims(design)


@pytest.fixture
def run(claims: Claims) -> Run:
    return as_claimed(claims)
