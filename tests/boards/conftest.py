"""What the tests of boards share."""

from __future__ import annotations

import pytest

from boards.board import Board, load, names


@pytest.fixture(params=names())
def any_board(request: pytest.FixtureRequest) -> Board:
    return load(request.param)
