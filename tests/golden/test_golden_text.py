"""Generated text, compared with its record: the tree of one small design per style, and what the commands print of it.

``pytest tests/golden --update-golden`` writes the record again; its difference is reviewed like a change of the code.
``tree.txt`` holds headers that are copied unchanged, and binary images, as digests.

A calibration's matrix products differ in their last bits with the processor. So floats are compared to six digits, and
the design's digest is not compared, and of ``network.npz`` the integers and the header.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.command_line import call
from tests.support.golden_designs import DESIGNS, systolic_design
from tests.support.small_network import write_small

GOLDEN = Path(__file__).parent
TEXT = {".cpp", ".h", ".md", ".tcl", ".json", ".hwh", ".txt"}


def fixed_headers() -> set[bytes]:
    root = GOLDEN.parents[1] / "hls_templates"
    return {path.read_bytes() for path in root.rglob("*") if path.suffix in {".h", ".cpp"}}


def expect(name: str, text: str, update: bool) -> None:
    path = GOLDEN / name
    if update and not (path.is_file() and rounded(text) == rounded(path.read_text("utf-8"))):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    assert path.is_file(), f"{name} is generated, and not agreed on: pytest tests/golden --update-golden"
    assert rounded(text) == rounded(path.read_text("utf-8")), (
        f"{name} is generated otherwise: pytest tests/golden --update-golden"
    )


def rounded(text: str) -> str:
    return re.sub(r"\b\d+\.\d{6,}\b", lambda number: f"{float(number[0]):.6g}", text)


def integers_of(path: Path) -> bytes:
    """Return the name, type and shape of each array of a network's file, its integers, and its rounded header."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in sorted(file.namelist())}
    arrays = {name: np.load(io.BytesIO(data)) for name, data in members.items() if name.endswith(".npy")}
    texts = {name: rounded(data.decode("utf-8")).encode() for name, data in members.items() if name not in arrays}
    numbers = {
        f"{name} {array.dtype} {array.shape}": array.tobytes() if array.dtype.kind in "iub" else b""
        for name, array in arrays.items()
    }
    return b"".join(name.encode() + data for name, data in {**texts, **numbers}.items())


def steady(values: Any, folder: Path) -> str:
    """JSON without seconds, paths and digests, which differ from run to run or with the processor."""
    text = json.dumps(values, indent=1, ensure_ascii=False, sort_keys=True)
    lines = text.replace(str(folder), "DIR").splitlines()
    return "\n".join(line for line in lines if not line.strip().startswith(('"seconds"', '"digest"'))) + "\n"


@pytest.mark.parametrize("style", DESIGNS)
def test_generated_design_equals_the_golden_text(style: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    update = bool(pytestconfig.getoption("--update-golden"))
    out = tmp_path / "design"
    done = call("generate", *DESIGNS[style](tmp_path), "-o", out, "--json", "-")
    assert done.code == 0, done.error
    expect(f"{style}/generate.json", steady(done.json, tmp_path), update)
    fixed = fixed_headers()
    tree = []
    for path in sorted(path for path in out.rglob("*") if path.is_file()):
        name, data = path.relative_to(out).as_posix(), path.read_bytes()
        if path.suffix == ".npz":
            data = integers_of(path)
        if data in fixed or path.suffix not in TEXT:
            tree.append(f"{hashlib.sha256(data).hexdigest()[:16]} {name}")
        else:
            tree.append(f"as agreed        {name}")
            expect(f"{style}/design/{name}", data.decode("utf-8"), update)
    expect(f"{style}/tree.txt", "\n".join(tree) + "\n", update)


def test_schedule_compare_and_fold_output_equals_the_golden_text(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    update = bool(pytestconfig.getoption("--update-golden"))
    cfg, *_ = systolic_design(tmp_path)
    small = write_small(tmp_path)
    board = ("--board", "pynq-z2", "--clock", 100)
    array = ("--array", "4x8x8")
    commands: dict[str, tuple[object, ...]] = {
        "schedule": ("schedule", cfg, *board, *array),
        "compare": ("compare", cfg, *board, *array, "--array", "8x8x8", "--bits", 4, "--bits", 8),
        "fold": ("fold", small, "--fps", 20000, "--deadline", 3600),  # no busy machine ends it earlier
    }
    for name, command in commands.items():
        done = call(*command, "--json", "-")
        assert done.code == 0, done.error
        expect(f"commands/{name}.json", steady(done.json, tmp_path), update)
    for name, command in {key: commands[key] for key in ("schedule", "compare")}.items():
        expect(f"commands/{name}.txt", call(*command).out, update)
