"""Build the wheel with all packages in one folder, which a .pth file adds to Python's path.

The packages have common names, such as ``host``. A wheel that held them at its top would overwrite packages of other
projects. pyproject.toml has all other settings; an editable install does not use the folder.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

FOLDER = "systolic_cnn"


class BuildInOneFolder(build_py):
    """Copy the packages into the folder, and write the .pth file next to it."""

    def finalize_options(self) -> None:
        super().finalize_options()
        if not self.editable_mode:
            self.build_lib = f"{self.build_lib}/{FOLDER}"

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            Path(self.build_lib).with_suffix(".pth").write_text(f"{FOLDER}\n", "ascii")


setup(cmdclass={"build_py": BuildInOneFolder})
