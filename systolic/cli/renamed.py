"""Old names of options and commands. They still work, but help hides them, and a note gives the new name."""

from __future__ import annotations

REMOVED_IN = "0.3"
"""The version that will no longer accept the old names."""

OPTIONS = {"--threshold": "--conf", "--overlap": "--iou", "--rate": "--lr"}
"""Old option → new option, with the same values and meaning."""

COMMANDS = {"generate list": "networks"}
"""Old command → new command."""


def note(old: str, new: str) -> str:
    """Return the sentence that gives a user the new name of an old option or command."""
    return f"{old} is called {new} now; version {REMOVED_IN} will not accept the old name"
