"""Fuzzing of generated folders: their manifests, images and networks are opened and executed as the commands do.

A case is an archive of the data files of a folder. The libraries are compiled once, from the sources as generated.
Sources are not mutated, because they are code: a user who compiles them runs them (SECURITY.md).
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
import zlib
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from boards.board import load
from host.contract.manifest import read_manifest
from host.opened import open_executed
from host.options import Options
from host.simulated.pace import CYCLES, pace
from systolic.designs import Design, make
from systolic.designs import Target as Wish
from systolic.execution.build import build
from systolic.execution.result import simulate
from systolic.loading import load_model
from systolic.model import Calibration, sample_pictures
from systolic.styles.registry import open_design, style_named
from tests.fuzz.files import corpus
from tests.fuzz.files.hunt import hunt
from tests.fuzz.files.mutators import BYTES
from tests.fuzz.files.networks import member
from tests.fuzz.files.structured import JSON, archive, json_value, read_members, word_of, write_members
from tests.fuzz.files.target import MEGABYTE, Mutate, Target

MANIFEST, NETWORK = "manifest.json", "network.npz"
OPTIONS: dict[str, dict[str, Any]] = {
    "systolic": {"array": "4x8x8"},
    "streaming": {"search": "greedy", "fps": 20000, "estimated_fifos": True},
}
"""The options of each style's design, which make it small."""

FILES: dict[str, tuple[str, str, float | None]] = {
    "systolic": ("cfg/small.cfg", "pynq-z2", 100.0),
    "streaming": ("exported/small.json", "ultra96-v2", None),
}
"""The network in the corpus, the board and the clock in MHz of each style's design."""


@cache
def base(style: str) -> Path:
    """Return the folder of a small design, generated and compiled. It is removed at the end of the process."""
    room = Path(tempfile.mkdtemp(prefix="systolic-fuzz-"))
    atexit.register(shutil.rmtree, room, ignore_errors=True)
    file, board, clock = FILES[style]
    model = load_model(corpus.FOLDER / file, None, None, 1)
    calibration = Calibration(sample_pictures()[:1], method="max")
    options = style_named(style).options(**OPTIONS[style])
    design = make(model, Wish(load(board), clock, style), calibration, options).write(room / style)
    build(design.folder)
    return design.folder


def data_files(style: str) -> dict[str, bytes]:
    """Return the files of the folder that are read, except its sources, by their paths in the folder."""
    folder = base(style)
    paths = [path for path in folder.rglob("*") if path.is_file()]
    names = [path.relative_to(folder).as_posix() for path in paths]
    kept = [name for name in names if name.startswith(("data/", "model/")) or name in (MANIFEST, NETWORK)]
    return {name: (folder / name).read_bytes() for name in sorted(kept)}


def seeds(style: str) -> tuple[bytes, ...]:
    """Return the folder as generated, and the archives that once showed a defect."""
    return (write_members(sorted(data_files(style).items())), *corpus.files(f"design-{style}"))


def laid(style: str, path: Path) -> Path:
    """Make the folder of a case next to its file: the generated files, overwritten by the files of the archive."""
    folder = path.with_name("design")
    shutil.rmtree(folder, ignore_errors=True)
    source = base(style)
    for name in ("src", "simulation", "build", "golden", "systolic.hwh"):
        if (source / name).exists():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).symlink_to(source / name)
    for name, data in read_members(path.read_bytes()):
        target = folder / name
        if len(name) < 100 and ".." not in target.parts and name.startswith(("data/", "model/", "manifest", "network")):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
    return folder


def simulated(style: str) -> Callable[[Path], None]:
    """Return a function that opens and executes a design as ``systolic simulate`` and ``systolic run`` do.

    ``systolic simulate`` compares every layer with the golden model; ``systolic run`` compares nothing.
    """

    def read(path: Path) -> None:
        folder = laid(style, path)
        opened = open_design(folder)
        shape = opened.manifest.input
        picture = np.random.default_rng(1).integers(0, 256, shape.shape, np.uint8)
        simulate(opened, [picture])
        Design(opened)._repr_html_()
        with open_executed(folder, Options()) as detector:
            detector.detect(np.zeros((9, 13, 3), np.uint8))
        pace(folder, opened.manifest, 1.0)

    return read


def read_manifest_alone(path: Path) -> None:
    """Read the manifest of a folder that contains nothing else."""
    folder = path.parent
    manifest = read_manifest(folder)
    if (folder / CYCLES).exists():
        pace(folder, manifest, 1.0)


def manifest_seeds() -> tuple[bytes, ...]:
    """Return a manifest of each style, and the manifests that once showed a defect."""
    return (*((base(style) / MANIFEST).read_bytes() for style in FILES), *corpus.files("manifest"))


# --- mutators


def _inner(name: str) -> Sequence[Mutate]:
    if name == MANIFEST:
        return JSON
    if name.endswith(".npz"):
        return (archive(member),)
    if name.endswith((".cfg", ".json")):
        return (json_value, *BYTES)
    return (*BYTES, *(word_of(form) for form in ("<i", "<i", "<i", "<i", "<h", "<b", "<q")))


def signed(change: Mutate) -> Mutate:
    """Return a mutator that applies ``change``, and then corrects the checksums of the images in the manifest.

    An attacker would do this too. Without it, a changed image is refused because of its checksum.
    """

    def both(data: bytes, random: Random, pool: Sequence[bytes]) -> bytes:
        members = dict(read_members(change(data, random, pool)))
        try:
            text = _with_checksums(members)
        except (ValueError, KeyError, TypeError, RecursionError):
            return write_members(list(members.items()))
        return write_members(list((members | {MANIFEST: text}).items()))

    return both


def _with_checksums(members: dict[str, bytes]) -> bytes:
    values = json.loads(members[MANIFEST])

    def visit(value: object) -> None:
        if isinstance(value, dict):
            if isinstance(value.get("path"), str) and value["path"] in members:
                value["crc32"] = zlib.crc32(members[value["path"]])
            for inner in value.values():
                visit(inner)
        elif isinstance(value, list):
            for inner in value:
                visit(inner)

    visit(values)
    return json.dumps(values).encode()


def program_word(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    """Change one to three words of the program: to a number near the old one, or to an extreme number."""
    members = dict(read_members(data))
    program = bytearray(members.get("data/program.bin", b""))
    if len(program) < 4:
        return data
    for _i in range(random.choice((1, 1, 1, 2, 3))):
        start = random.randrange(len(program) // 4) * 4
        before = int.from_bytes(program[start : start + 4], "little")
        near = (before + random.choice((-2, -1, 1, 2, 7, 64)), before * 2, before // 2, random.randrange(300), 0, 1)
        far = (1 << random.randrange(32), (1 << 31) - 1, 1 << 31, (1 << 32) - 1, random.randrange(1 << 32))
        program[start : start + 4] = (random.choice(near + far) & 0xFFFFFFFF).to_bytes(4, "little")
    return write_members(list((members | {"data/program.bin": bytes(program)}).items()))


_FOLDER = (archive(_inner), signed(archive(_inner)), signed(archive(_inner)))
SYSTOLIC = Target("design-systolic", partial(seeds, "systolic"), _FOLDER, simulated("systolic"), "case", 64 * MEGABYTE)
STREAMING = Target(
    "design-streaming", partial(seeds, "streaming"), _FOLDER, simulated("streaming"), "case", 64 * MEGABYTE
)
PROGRAM = Target(
    "program", partial(seeds, "systolic"), (signed(program_word),), simulated("systolic"), "case", 64 * MEGABYTE
)
MANIFESTS = Target("manifest", manifest_seeds, JSON, read_manifest_alone, MANIFEST)

systolic, streaming = partial(hunt, SYSTOLIC), partial(hunt, STREAMING)
program, manifest = partial(hunt, PROGRAM), partial(hunt, MANIFESTS)
