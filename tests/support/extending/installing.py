"""A third-party package, installed into its own folder."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path


def installed(folder: Path, name: str, files: Mapping[str, str], entry_points: str) -> Path:
    """Return the folder for Python's path into which pip installs the package.

    ``entry_points`` has the format of a wheel's metadata.
    """
    wheel, target, about = folder / f"{name}-1-py3-none-any.whl", folder / "target", f"{name}-1.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/entry_points.txt", entry_points)
        archive.writestr(f"{about}/RECORD", "")
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target"]
    subprocess.run([*install, str(target), str(wheel)], check=True, capture_output=True)
    return target
