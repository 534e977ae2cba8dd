"""The text of this room's templates with the numbers of a design."""

from __future__ import annotations

from pathlib import Path

from boards.templates import Templates

render = Templates(Path(__file__).parent / "templates").render
