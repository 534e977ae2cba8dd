"""Cases of compute blocks: C++ with template arguments, inputs, the outputs that numpy computes, and cycles.

All cases of a test file are compiled together, with one C function per case.
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hls_templates.headers import SIMULATION, include_folders
from systolic.trace.solver import Trace
from systolic.trace.timing import ProcessTiming
from tests.support.shared_builds import traced_objects
from tests.support.vendor_types import vendor_types

Ints = npt.NDArray[np.int64]

HERE = Path(__file__).resolve().parents[2] / "hls_templates" / "streaming"
INCLUDES = [*include_folders("streaming"), HERE / "kernels"]
FRAMES = 3


@dataclass(frozen=True)
class Values:
    """A datatype of the blocks.

    Attributes:
        cpp: The name of the type in C++.
        low: The least value.
        high: The greatest value.
        step: The distance between values: 2 for −1 and +1, else 1.
    """

    cpp: str
    low: int
    high: int
    step: int = 1

    def draw(self, rng: np.random.Generator, *shape: int) -> Ints:
        """Return random values of the whole range, in which the extremes are frequent."""
        drawn = rng.integers(0, (self.high - self.low) // self.step + 1, shape) * self.step + self.low
        extreme = rng.choice([self.low, self.high], shape)
        return np.where(rng.random(shape) < 0.3, extreme, drawn).astype(np.int64)

    def carrier(self, values: Ints) -> Ints:
        return (values - self.low) // 2 if self.step == 2 else values

    @property
    def carried(self) -> str:
        return f"{self.cpp}::carrier"


def signed(bits: int) -> Values:
    return Values(f"int_t<{bits}>", -(1 << bits - 1), (1 << bits - 1) - 1)


def unsigned(bits: int) -> Values:
    return Values(f"uint_t<{bits}>", 0, (1 << bits) - 1)


def narrow(bits: int) -> Values:
    return Values(f"narrow_t<{bits}>", 1 - (1 << bits - 1), (1 << bits - 1) - 1)


BIPOLAR = Values("bipolar_t", -1, 1, 2)


@dataclass(frozen=True, eq=False)
class Case:
    """One call of a block.

    Attributes:
        name: The name of the case.
        code: The C++ code of the call. It uses ``frames``, ``in`` (flat values per input) and ``out``.
        inputs: The flat inputs.
        expected: The flat expected output.
        cycles: The cycles of the block's process.
        headers: The headers that the code needs.
        frames: The number of frames.
    """

    name: str
    code: str
    inputs: tuple[Ints, ...]
    expected: Ints
    cycles: int
    headers: tuple[str, ...] = field(default=())
    frames: int = FRAMES


@dataclass(frozen=True)
class Library:
    path: Path
    cases: tuple[Case, ...]

    def run(self, case: Case, frames: int | None = None) -> Ints:
        """Return the block's flat output.

        Raises:
            RuntimeError: The block threw an error, whose text is the message.
        """
        function = getattr(ctypes.CDLL(str(self.path)), f"case_{self.cases.index(case)}")
        function.restype = ctypes.c_char_p
        inputs = [np.ascontiguousarray(array, np.int64) for array in case.inputs]
        pointers = (ctypes.c_void_p * max(len(inputs), 1))(*(array.ctypes.data for array in inputs))
        out = np.full(case.expected.size, -(1 << 40), np.int64)
        sentence = function(case.frames if frames is None else frames, pointers, ctypes.c_void_p(out.ctypes.data))
        if sentence is not None:
            raise RuntimeError(sentence.decode())
        return out

    def time(self, case: Case) -> ProcessTiming:
        """Return the timing of the block's process, between a source and a sink that take no time."""
        trace = Trace(ctypes.CDLL(str(self.path)))
        trace.begin()
        self.run(case)
        trace.end()
        (region,) = trace.solve().regions
        (block,) = (process for process in region.processes if process.name == "block")
        return block


BUILDS = {
    "native": ["-O1", "-DSYSTOLIC_TRACE"],
    "quick": ["-O0", "-DSYSTOLIC_TRACE"],  # for a few cases with short run times
    # the vendor's default constructor shifts an uninitialised value
    "ap_int": ["-O0", "-DSYSTOLIC_AP_INT", "-Wno-uninitialized", "-Wno-maybe-uninitialized"],
    "sanitized": ["-O0", "-g", "-fsanitize=undefined,bounds", "-fno-sanitize-recover=all"],
}


def source(cases: Sequence[Case]) -> str:
    headers = dict.fromkeys(header for case in cases for header in case.headers)
    text = "".join(f'#include "{header}"\n' for header in ("compute.h", "activations.h", *headers))
    for index, case in enumerate(cases):
        text += f'\n// {case.name}\nextern "C" const char *case_{index}(int frames, values_t const *in, int64_t *out)'
        text += f" {{\n    (void)in;\n    return guarded([&] {{\n{case.code}\n    }});\n}}\n"
    return text


def compile_cases(cases: Sequence[Case], folder: Path, build: str, *extra: str) -> Library:
    """Return a library of all cases. A compiler error fails the test with the compiler's output."""
    path = folder / f"{build}.cpp"
    path.write_text(source(cases))
    command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-shared", "-fPIC"]
    command += [*BUILDS[build], *extra, *(f"-I{include}" for include in [*INCLUDES, SIMULATION])]
    if build == "ap_int":
        command += ["-isystem", str(vendor_types())]
    sources = [str(path)]
    if "-DSYSTOLIC_TRACE" in BUILDS[build]:
        sources += traced_objects(folder / f"{build}-trace")
    library = path.with_suffix(".so")
    done = subprocess.run([*command, "-o", str(library), *sources], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:6000]
    return Library(library, tuple(cases))


class Builds(dict[str, Library]):
    """The cases' libraries by build. Each one is compiled at its first use."""

    def __init__(self, cases: Sequence[Case], folder: Path) -> None:
        self._cases, self._folder = cases, folder

    def __missing__(self, build: str) -> Library:
        self[build] = compile_cases(self._cases, self._folder, build)
        return self[build]


# ------------------------------------------------------------------------------------------ activations


@dataclass(frozen=True, eq=False)
class Activation:
    """An activation of a block.

    Attributes:
        cpp: The type in C++, with PE and NF as placeholders.
        constants: The constants, [C, …] per array.
        apply: A function that returns the activation of sums, [..., C].
    """

    cpp: str
    constants: tuple[Ints, ...]
    apply: Callable[[Ints], Ints]
    by_channel: bool = True
    """True if the constants are per channel. Others are passed in their own order."""

    def type(self, pe: int, folds: int) -> str:
        return self.cpp.replace("PE", str(pe)).replace("NF", str(folds))

    def flat(self, pe: int) -> Ints:
        """Return the constants in the order of the blocks, [PE][NF], where PE pe has channel nf · PE + pe."""
        folded = (np.swapaxes(a.reshape(-1, pe, *a.shape[1:]), 0, 1) if self.by_channel else a for a in self.constants)
        parts = [a.ravel() for a in folded]
        return np.concatenate([*parts, np.zeros(1, np.int64)])


def identity(bits: int) -> Activation:
    return Activation(f"identity_t<{bits}>", (), lambda sums: sums)


def requantise(rng: np.random.Generator, channels: int, bits: int, is_signed: bool, largest: int) -> Activation:
    """Return a requantiser with constants that map sums of up to ``largest`` to the output's range and beyond."""
    bias = rng.integers(-largest // 4, largest // 4 + 1, channels)
    multiplier, negative = rng.integers(1, 65536, channels), rng.integers(0, 65536, channels)
    shift = np.full(channels, max(1, int(np.log2(largest)) + 15 - bits)) + rng.integers(0, 3, channels)
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)

    def apply(sums: Ints) -> Ints:
        biased = sums + bias
        product = biased * np.where(biased < 0, negative, multiplier)
        return np.asarray(np.clip((product + (1 << (shift - 1))) >> shift, low, high))

    name = f"requantise_t<{bits}, {str(is_signed).lower()}, PE, NF>"
    return Activation(name, (bias, multiplier, negative, shift), apply)


def multiply_shift(rng: np.random.Generator, channels: int, bits: int, is_signed: bool, largest: int) -> Activation:
    """Return an activation whose multipliers have both signs and up to 17 bits."""
    multiplier = rng.choice([-65535, 65535, *range(-60000, 60000, 1001)], channels)
    bias = rng.integers(-largest << 13, (largest << 13) + 1, channels)
    shift = np.full(channels, max(1, int(np.log2(largest)) + 15 - bits)) + rng.integers(0, 3, channels)
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)

    def apply(sums: Ints) -> Ints:
        return np.asarray(np.clip((sums * multiplier + bias + (1 << (shift - 1))) >> shift, low, high))

    return Activation(f"multiply_shift_t<{bits}, {str(is_signed).lower()}, PE, NF>", (multiplier, bias, shift), apply)


def thresholds(rng: np.random.Generator, channels: int, out: Values, largest: int) -> Activation:
    """Return thresholds for all levels of ``out``. Half of the channels are falling. One threshold is not reached."""
    levels = (out.high - out.low) // out.step
    table = np.sort(rng.integers(-largest // 2, largest // 2 + 1, (channels, levels)), axis=1)
    table[0, -1] = largest + 1
    flip = rng.random(channels) < 0.5

    def apply(sums: Ints) -> Ints:
        compared = np.where(flip, -sums, sums)
        return np.asarray((compared[..., None] >= table).sum(axis=-1) + (0 if out.step == 2 else out.low))

    is_signed = out.low < 0 and out.step == 1
    bits = levels.bit_length()
    width = int(np.abs(table).max()).bit_length() + 1
    low = 0 if out.step == 2 else out.low
    name = f"thresholds_t<{bits}, {str(is_signed).lower()}, {low}, {levels}, {width}, PE, NF>"
    return Activation(name, (table, flip.astype(np.int64)), apply)


def table(rng: np.random.Generator, channels: int, largest: int) -> Activation:
    """Return two different copies of a table, so that the result shows which copy a PE reads."""
    copies = rng.integers(-128, 128, (2, 2 * largest))

    def apply(values: Ints) -> Ints:
        return np.asarray(copies[np.arange(channels) % 2, values + largest])

    return Activation(f"table_t<8, true, -{largest}, {2 * largest}, 2>", (copies,), apply, by_channel=False)


def pieces(rng: np.random.Generator, channels: int, value: Values, out: Values) -> Activation:
    """Return two copies of a piecewise-linear table with 256 random lines.

    Each line goes from one value of ``out`` to another. The lines cover all values of ``value``.
    """
    places = (value.high - value.low).bit_length() - 8
    inputs = 1 << places
    first, last = out.draw(rng, 2, 256), out.draw(rng, 2, 256)
    slopes = np.floor((last - first) * inputs / (inputs - 1) + 0.5).astype(np.int64)
    slopes_bits = int(np.abs(slopes).max()).bit_length() + 1

    def apply(values: Ints) -> Ints:
        piece, inside = np.divmod(values - value.low, inputs)
        copy = np.arange(channels) % 2
        return np.floor(first[copy, piece] + slopes[copy, piece] * inside / inputs + 0.5).astype(np.int64)

    shape = f"{out.high.bit_length() + (out.low < 0)}, {str(out.low < 0).lower()}, {value.low}, {places}, {slopes_bits}"
    return Activation(f"pieces_t<{shape}, 2>", (first, slopes), apply, by_channel=False)


def make_activation(rng: np.random.Generator, kind: str, channels: int, largest: int) -> Activation:
    bits = largest.bit_length() + 1
    return {
        "identity": lambda: identity(bits),
        "requantise": lambda: requantise(rng, channels, 8, True, largest),
        "multiply": lambda: multiply_shift(rng, channels, 4, False, largest),
        "thresholds": lambda: thresholds(rng, channels, unsigned(4), largest),
        "ternary": lambda: thresholds(rng, channels, narrow(2), largest),
        "bipolar": lambda: thresholds(rng, channels, BIPOLAR, largest),
        "table": lambda: table(rng, channels, largest),
    }[kind]()


def in_pixels(values: Ints, pixels: int, lanes: int) -> Ints:
    """Return values [positions, values] as words of ``pixels`` positions × ``lanes`` values, pixel by pixel."""
    positions, count = values.shape
    groups = values.reshape(positions // pixels, pixels, count // lanes, lanes)
    return np.asarray(groups.transpose(0, 2, 1, 3).ravel())
