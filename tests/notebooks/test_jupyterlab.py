"""Every notebook as a reader sees it: opened in JupyterLab in headless Chromium, all its cells run, the page looked at.

A kernel's outputs may be right where the page shows nothing: an image that cannot be decoded, HTML that is stripped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.host.cells import NOTEBOOKS, ROOT, all_shown, images, needs

WHY = "opens notebooks in JupyterLab: pip install -e '.[notebooks,browser]'"
nbformat = pytest.importorskip("nbformat", reason=WHY)
pytest.importorskip("jupyterlab", reason=WHY)
pytest.importorskip("ipykernel", reason=WHY)
playwright = pytest.importorskip("playwright.sync_api", reason=WHY)

PATIENCE = 900.0
"""Seconds until what has not come does not come any more: a limit for what hangs, which no right run is near."""

SETTINGS = {
    # By default JupyterLab leaves out of the page the cells that are not in view.
    "notebook-extension/tracker": {"windowingMode": "none"},
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}

OPENED = """() => {
    const panel = window.jupyterapp?.shell.currentWidget;
    return panel?.context?.isReady && panel.sessionContext?.session?.kernel?.status === "idle";
}"""
RUN = """() => {
    window.jupyterapp.commands.execute("notebook:run-all-cells").finally(() => { window.finished = true; });
}"""
# An image is decoded some time after it is in the page.
LOADED = "() => [...document.querySelectorAll('.jp-OutputArea img')].every((image) => image.complete)"
SEEN = """() => {
    const all = (what) => [...document.querySelectorAll(what)];
    const shown = (picture) => [picture.getBoundingClientRect().width, picture.getBoundingClientRect().height];
    return {
        images: [
            ...all(".jp-OutputArea img").map((image) => [image.naturalWidth, image.naturalHeight, ...shown(image)]),
            ...all(".jp-RenderedHTML svg").map(shown),
        ],
        errors: all(".jp-Dialog").map((found) => found.innerText),
        text: all(".jp-OutputArea").map((found) => found.innerText).join("\\n"),
    };
}"""
SAVE = """async () => {
    await window.jupyterapp.commands.execute("docmanager:save");
    await window.jupyterapp.serviceManager.sessions.shutdownAll();
}"""


pytestmark = pytest.mark.engine


@dataclass(frozen=True)
class Lab:
    """A server of the notebooks in ``folder``, and a browser."""

    folder: Path
    url: str
    token: str
    browser: Any


def lab_started(work: Path) -> tuple[subprocess.Popen[bytes], dict[str, Any]]:
    """Start a JupyterLab without the user's settings, and return its process and its address."""
    for name, values in SETTINGS.items():
        file = work / "settings/@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(values))
    variables = {name: value for name, value in os.environ.items() if name != "SYSTOLIC_DESIGN"} | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        "JUPYTER_CONFIG_DIR": str(work / "config"),
        "JUPYTER_RUNTIME_DIR": str(work / "runtime"),
        "IPYTHONDIR": str(work / "ipython"),
    }
    with (work / "lab.log").open("wb") as log:
        options = ["--no-browser", "--allow-root", "--LabApp.expose_app_in_browser=True"]
        folders = [f"--ServerApp.root_dir={work}", f"--LabApp.user_settings_dir={work / 'settings'}"]
        folders.append(f"--LabApp.workspaces_dir={work / 'workspaces'}")
        command = [sys.executable, "-m", "jupyterlab", *options, *folders]
        server = subprocess.Popen(command, env=variables, stdout=log, stderr=log)
    latest = time.monotonic() + PATIENCE
    while not (described := work / f"runtime/jpserver-{server.pid}.json").is_file():
        assert server.poll() is None, (work / "lab.log").read_text()
        assert time.monotonic() < latest, "JupyterLab does not start"
        time.sleep(0.1)
    place: dict[str, Any] = json.loads(described.read_text())
    return server, place


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Yield a JupyterLab with copies of the notebooks only. The first that needs the demo makes it for the others."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("chromium is not installed")
    work = tmp_path_factory.mktemp("lab")
    for notebook in NOTEBOOKS:
        copy = work / notebook.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(notebook, copy)
    server, place = lab_started(work)
    try:
        with playwright.sync_playwright() as drivers:
            browser = drivers.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            yield Lab(work, place["url"], place["token"], browser)
            browser.close()
    finally:
        server.terminate()
        server.wait()


def looked_at(lab: Lab, notebook: str) -> dict[str, Any]:
    """Return the page after a run of all cells: images (widths and heights in pixels), errors of the page, text."""
    page = lab.browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(PATIENCE * 1000)
    failures: list[str] = []
    page.on("pageerror", lambda error: failures.append(str(error)))
    try:
        page.goto(f"{lab.url}lab/tree/{notebook}?reset&token={lab.token}")
        page.wait_for_function(OPENED)
        page.evaluate(RUN)
        page.wait_for_function("() => window.finished")
        page.wait_for_function(LOADED)
        seen: dict[str, Any] = page.evaluate(SEEN)
        page.evaluate(SAVE)
    finally:
        page.close()
    return {**seen, "errors": seen["errors"] + failures}


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_in_jupyterlab_shows_every_figure_as_an_image(notebook: Path, lab: Lab) -> None:
    needs(notebook)
    name = notebook.relative_to(ROOT)
    seen = looked_at(lab, name.as_posix())
    assert seen["errors"] == []
    assert "<Figure size" not in seen["text"]
    assert "Traceback (most recent call last)" not in seen["text"]
    code = [cell for cell in nbformat.read(lab.folder / name, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.source for cell in code if cell.execution_count is None] == []
    assert [output for cell in code for output in cell.outputs if output.output_type == "error"] == []
    all_shown(code)
    assert len(seen["images"]) == sum(map(images, code))
    assert all(min(sizes) > 0 for sizes in seen["images"]), seen["images"]
