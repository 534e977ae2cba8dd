"""Long paths that are planted in modules of the engine: the timing model reports each of them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from rtl_templates.sources import TOP
from rtl_timing.covering import covered
from rtl_timing.delays import delay_table
from rtl_timing.elaboration import Unit, elaborated, units
from rtl_timing.netlist import flattened
from rtl_timing.paths import TimingGraph, TimingPath
from rtl_timing.synthesis import Module, synthesised
from systolic.execution.verilate import modules
from systolic.files import write
from tests.support.rtl.engines import FIRST, SMALL, design_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

pytestmark = pytest.mark.engine


@dataclass(frozen=True)
class Plant:
    """A pipeline register that is removed from a module.

    Attributes:
        file: The file of the module.
        register: The names of the register's parts.
        find: The text that occurs once in the file.
        replace: The text that replaces it.
        ends: A part of the statement that assigns the register at which the longer path ends.
        block: A part of the first line of the block with this statement.
    """

    file: str
    register: str
    find: str
    replace: str
    ends: str
    block: str = "always_ff"

    def applied(self, text: str) -> str:
        """Return the file's text without the register."""
        assert text.count(self.find) == 1, f"the plant in {self.file} does not apply"
        return text.replace(self.find, self.replace)

    def end(self, planted: str) -> str:
        """Return the file and line, as in ``pool.sv:91``, of the block with the statement ``ends``."""
        lines = planted.splitlines()
        statement = max(number for number, line in enumerate(lines) if self.ends in line)
        return f"{self.file}:{max(number for number in range(statement + 1) if self.block in lines[number]) + 1}"


PLANTS = [Plant(**row) for row in tomllib.loads(Path(__file__).with_name("planted_paths.toml").read_text())["plants"]]


@dataclass(frozen=True)
class Engine:
    """An engine without a plant.

    Attributes:
        folder: The folder of its design.
        mapped: Its synthesised modules by the name of their unit.
        slowest: The slowest path that ends in each file.
    """

    folder: Path
    mapped: Mapping[str, Module]
    slowest: Mapping[str, TimingPath]


DELAYS = delay_table("-2 0.85")


def units_of(folder: Path) -> tuple[Unit, ...]:
    return units(elaborated((folder / path for path in modules(folder)), TOP), TOP)


def slowest_of_files(mapped: Mapping[str, Module], top: str) -> dict[str, TimingPath]:
    paths = TimingGraph(flattened(mapped, top), DELAYS).slowest_of_files()
    return {path.steps[-1].source.partition(":")[0]: path for path in paths}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    pytest.importorskip("pyosys", reason="timing needs Yosys: pip install 'systolic-cnn[check]'")
    folder = tmp_path_factory.mktemp("planted") / "design"
    write(design_of(FIRST, SMALL), folder)
    all_units = units_of(folder)
    mapped = {name: covered(module, DELAYS) for name, module in synthesised(all_units, "xcup").items()}
    return Engine(folder, mapped, slowest_of_files(mapped, all_units[-1].name))


@pytest.mark.parametrize("plant", PLANTS, ids=[plant.file for plant in PLANTS])
def test_removed_register_is_reported_as_the_slowest_path_of_its_module(
    plant: Plant, engine: Engine, tmp_path: Path
) -> None:
    shutil.copytree(engine.folder, tmp_path / "design")
    (module,) = (tmp_path / "design").rglob(plant.file)
    module.write_text(plant.applied(module.read_text()))
    all_units = units_of(tmp_path / "design")
    changed = [unit for unit in all_units if f"{unit.module}.sv" == plant.file]
    mapped = {name: covered(one, DELAYS) for name, one in synthesised(all_units, "xcup", asked_for=changed).items()}
    assert mapped.keys() == {unit.name for unit in changed} != set()
    path = slowest_of_files({**engine.mapped, **mapped}, all_units[-1].name)[plant.file]
    assert path.steps[-1].source == plant.end(module.read_text())
    assert path.ns > engine.slowest[plant.file].ns


def test_plants_of_the_table_are_of_ten_modules() -> None:
    assert len({plant.file for plant in PLANTS}) == len(PLANTS) == 10
