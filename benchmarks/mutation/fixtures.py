"""What all tests share, made once: designs that are generated and compiled, for instance."""

from __future__ import annotations

import pytest
from _pytest.fixtures import FixtureDef


def make_fixtures(session: pytest.Session) -> None:
    """Every fixture of the whole session that a test asks for; one that cannot be made is left to the tests.

    Each mutant's process has them then, and nothing of the mutant is in them.
    """
    made: set[str] = set()
    for item in session.items:
        names = _of_session(item) - made
        if names:
            made |= names
            try:
                session._setupstate.setup(item)
            except (Exception, pytest.skip.Exception):  # whatever a fixture raises
                continue
            finally:
                session._setupstate.teardown_exact(session)  # type: ignore[arg-type]


def _of_session(item: pytest.Item) -> set[str]:
    info = getattr(item, "_fixtureinfo", None)
    definitions: dict[str, tuple[FixtureDef[object], ...]] = getattr(info, "name2fixturedefs", {})
    return {name for name, found in definitions.items() if found[-1].scope == "session"}
