"""The renderer of this room's templates, and the folder of its fixed modules."""

from __future__ import annotations

from pathlib import Path

from boards.templates import Templates

FOLDER = Path(__file__).parent
render = Templates(FOLDER / "templates").render
