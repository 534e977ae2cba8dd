"""Every notebook runs in a folder that has no other file, and shows every figure and picture as an image.

A kernel shows the value of a cell's last line. A figure that it cannot draw would be printed as ``<Figure size …>``.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.host.cells import NOTEBOOKS, ROOT, all_shown, needs

nbclient = pytest.importorskip("nbclient", reason="runs notebooks in a kernel: pip install -e '.[notebooks]'")
nbformat = pytest.importorskip("nbformat", reason="runs notebooks in a kernel: pip install -e '.[notebooks]'")
pytest.importorskip("ipykernel", reason="runs notebooks in a kernel: pip install -e '.[notebooks]'")


pytestmark = pytest.mark.engine


def executed(notebook: Path, folder: Path) -> Any:
    """Return the notebook after its execution in ``folder``, which has no other file."""
    copy = Path(shutil.copy(notebook, folder))
    read = nbformat.read(copy, as_version=4)
    nbclient.NotebookClient(read, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    return read


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_shows_every_figure_as_an_image(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs(notebook)
    monkeypatch.delenv("SYSTOLIC_DESIGN", raising=False)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    all_shown([cell for cell in executed(notebook, tmp_path).cells if cell.cell_type == "code"])
