"""Maps that the Saver adds: the arithmetic of a word, and the sums of whole passes in memory, with random gaps."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from cnn.requantise import NEAR_HALF
from tests.support.cases import cases
from tests.support.rtl.bench import NUMBERS, Bench, Builder, Instance, fields_of, files, packed, pass_of, unpacked
from tests.support.rtl.streams import PATIENCE, pulse

pytestmark = pytest.mark.engine

ROWS, COLUMNS, LANES, CHUNK, MAP_PORTS, DEPTH = 3, 8, 4, 4, 2, 96
BLOCK_PITCH, CHANNEL_TILES = 7, 2
CHUNK_WORD, ADDITION = 7 * 32 + 1, 2 + 5 * 32 + 48 + 2 + 6 + 2 * 16
ADD_STAGES = 5


def numbers_of(bits: int) -> dict[str, int]:
    sizes = {"ROWS": ROWS, "COLUMNS": COLUMNS, "LANES": LANES, "CHUNK": CHUNK, "VALUE_BITS": bits}
    return {**NUMBERS, **sizes, "SAVE_ROWS": 2, "MAP_PORTS": MAP_PORTS, "MAP_DEPTH": DEPTH, "ADDED_MAPS": 1}


def instances_of(bits: int) -> dict[str, Instance]:
    """Return the modules after the requantiser: the planner, arrange, and the requests of rows to read and to write."""
    word, fields = LANES * bits, 32 * len(fields_of(numbers_of(bits)))
    ports = MAP_PORTS + 1
    asks = [("pass", fields), ("base", 32), ("row_pitch", 32), ("chunk_valid", 1), ("chunk", CHUNK_WORD)]
    asked = [("chunk_ready", 1), ("command_valid", 1), ("command_address", 32), ("command_words", 32)]
    return {
        "adder": Instance("add_words", "", [("by", ADDITION), ("result", word), ("other", word)], [("sum", word)]),
        "plan": Instance(
            "plan_chunks",
            "",
            [("start", 1), ("pass", fields), ("chunk_ready", 1)],
            [("done", 1), ("chunk_valid", 1), ("chunk", CHUNK_WORD), ("added_row_offset", 32)],
        ),
        "arrange": Instance(
            "arrange",
            "",
            [
                *(("pass", fields), ("chunk_valid", 1), ("chunk", CHUNK_WORD), ("result_valid", 1)),
                *(("result", 2 * COLUMNS * 16), ("words_ready", ports), ("added_valid", 1), ("added", word)),
                ("buffer_read_words", ROWS * word),
            ],
            [
                *(("done", 1), ("chunk_ready", 1), ("result_ready", 1), ("words_valid", ports)),
                *(("words", ports * word), ("words_halves", 2 * ports), ("added_ready", 1)),
                ("buffer_read_address", ROWS * 32),
                *(("buffer_write", ROWS), ("buffer_write_halves", 2), ("buffer_write_address", ROWS * 32)),
                ("buffer_write_words", ROWS * word),
            ],
        ),
        "reader": Instance("chunk_rows", "", [*asks, ("command_ready", 1)], asked),
        "writer": Instance("chunk_rows", "", [*asks, ("command_ready", 1)], asked),
    }


def texts_of(bits: int) -> dict[str, str]:
    return files(numbers_of(bits), instances_of(bits))


def bench_of(built: Builder, bits: int, texts: Mapping[str, str] | None = None) -> Bench:
    bench = Bench(built(texts or texts_of(bits)), instances_of(bits))
    bench.reset(30)
    return bench


# --- a word ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Addition:
    """The sum saturate((result · own + added · other + offset) >> shift), with the numbers of a pass.

    Attributes:
        own: The factor of the result.
        other: The factor of the added value.
        offset: The number that is added before the shift.
        shift: The number of bits by which the sum is shifted right.
        least: The lower limit.
        greatest: The upper limit.
        odd: Whether a half is rounded to the odd integer, else to the even one. None if halves are not special.
    """

    own: int
    other: int
    offset: int
    shift: int
    least: int
    greatest: int
    odd: bool | None = None

    def of(self, result: int, other: int) -> int:
        total = result * self.own + other * self.other + self.offset
        if self.odd is None:
            return min(max(total >> self.shift, self.least), self.greatest)
        exact = Fraction(total >> NEAR_HALF << NEAR_HALF, 1 << self.shift)
        return min(max(round(exact - self.odd) + self.odd, self.least), self.greatest)  # Python rounds a half to even

    @property
    def word(self) -> int:
        """The bits of the struct addition_t."""
        parts = ((self.least, 16), (self.greatest, 16), (self.shift, 6), (int(bool(self.odd)), 1))
        word = place = 0
        for number, bits in (
            *parts,
            (int(self.odd is not None), 1),
            (self.offset, 48),
            (self.other, 32),
            (self.own, 32),
        ):
            word |= (number & ((1 << bits) - 1)) << place
            place += bits
        return word

    @property
    def fields(self) -> dict[str, int]:
        """The fields of a pass in the program."""
        return {
            "added_own": self.own,
            "added_other": self.other,
            "added_offset": self.offset,
            "added_shift": self.shift + ((self.offset >> 32 & 0xFFFF) << 16),
            "added_limits": (self.greatest << 16) + (self.least & 0xFFFF),
        }


def additions_of(bits: int) -> list[Addition]:
    """Return random additions, and additions with the largest numbers of 32 and 48 bits."""
    dice, low, high = random.Random(bits), -(1 << bits - 1), (1 << bits - 1) - 1
    most, far = (1 << 31) - 1, (1 << 47) - 1
    extremes = [
        *(Addition(most, most, far, 1, low, high), Addition(-most, -most, -far, 47, low, high)),
        *(Addition(most, -most, 0, 31, 0, high), Addition(-1, 1, -1, 1, low, high)),
    ]
    for _ in range(12):
        shift = dice.randrange(10, 40)
        scale = (1 << shift) // dice.choice((1, 2, 3))
        own, other = (dice.randrange(-scale, scale) if shift < 31 else dice.randrange(-most, most) for _ in "ab")
        extremes.append(Addition(own, other, dice.randrange(-(1 << shift), 1 << shift), shift, low, high))
    for odd in (False, True):  # every second sum is a half
        halves = [(1 << 17, 3 << 17, 5 << 17), (-(1 << 17), 1 << 18, -(1 << 17)), (1 << 16, 1 << 17, (7 << 16) + 4095)]
        extremes += [Addition(*numbers, 18, low, high, odd) for numbers in halves]
        extremes += [replace(each, odd=odd) for each in extremes[:8] if each.odd is None]
    return extremes


@pytest.mark.engine
@pytest.mark.parametrize("bits", [4, 8, 16])
def test_add_words_extremes_equal_the_contract(built: Builder, bits: int) -> None:
    """Give one word per cycle. Results and added values include both ends of the type."""
    bench, dice = bench_of(built, bits), random.Random(bits)
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    ends = [[a] * LANES for a in (low, high)]
    for by in additions_of(bits):
        words = [(a, b) for a in ends for b in ends]
        words += [tuple([dice.randint(low, high) for _ in range(LANES)] for _ in "ab") for _ in range(20)]  # type: ignore[misc]
        seen = []
        bench.put("adder", {"by": by.word})
        for result, other in [*words, *[words[0]] * ADD_STAGES]:
            bench.put("adder", {"result": packed(result, bits), "other": packed(other, bits)})
            bench.settle()
            seen.append(unpacked(bench.get("adder", "sum"), bits, LANES))
            bench.edge()
        expected = [[by.of(a, b) for a, b in zip(*pair, strict=True)] for pair in words]
        assert seen[ADD_STAGES:] == expected, by


# --- passes ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pass:
    """A pass with results of 7 rows, 6 columns and 12 channels, of which three blocks are written.

    Row 0 of a map in a map buffer is in bank 1.

    Attributes:
        bits: The bits of a value.
        from_chip: Whether the added map is in a map buffer, else in DDR.
        to_chip: Whether the sum is written to a map buffer, else to DDR.
    """

    bits: int
    from_chip: bool
    to_chip: bool

    height, width, blocks, turn, base = 7, 6, 3, 1, 2
    row_pitch, added_row_pitch, added_base = 25, 31, 300

    @property
    def added_at(self) -> tuple[int, int]:
        """Base and row pitch of the added map. If both maps are on chip, the added map has the place of the sum."""
        if self.from_chip:
            return self.base, self.row_pitch if self.to_chip else 23
        return self.added_base, self.added_row_pitch

    @property
    def by(self) -> Addition:
        top = (1 << self.bits - 1) - 1
        return Addition(700, -451, 333, 10, -top, top)

    @property
    def word(self) -> int:
        base, pitch = self.added_at
        columns = -(-self.width // CHUNK)
        return pass_of(
            fields_of(numbers_of(self.bits)),
            out_height=self.height, row_tiles=-(-self.height // ROWS), channel_tiles=CHANNEL_TILES, pool_size=1,
            pool_stride=1, upscale=1, save_width=self.width, out_base=self.base, out_row_pitch=self.row_pitch,
            out_block_pitch=BLOCK_PITCH, out_blocks=self.blocks, value_words=1, out_buffer=2 * self.to_chip,
            out_turn=self.turn, chunks=-(-self.height // ROWS) * CHANNEL_TILES * columns, added_base=base,
            added_row_pitch=pitch, added_buffer=2 * self.from_chip, added_words=self.height * self.blocks * self.width,
            **self.by.fields,
        )  # fmt: skip

    def kept_place(self, row: int, pitch: int) -> tuple[int, int]:
        """Return the bank of a row, and its address in the bank (map_buffer.h)."""
        return (row + self.turn) % ROWS, self.base + row // ROWS * pitch


class Saver:
    """The planner, arrange, the writer and the reader of a pass, with a map buffer and DDR."""

    def __init__(self, bench: Bench, one: Pass, seed: int, gaps: float) -> None:
        self.bench, self.one, self.dice, self.gaps = bench, one, random.Random(seed), gaps
        self.low, self.high = -(1 << one.bits - 1), (1 << one.bits - 1) - 1
        self.ddr = [self._drawn() for _ in range(700)]
        self.kept = [[self._drawn() for _ in range(DEPTH)] for _ in range(ROWS)]
        shape = (one.height, one.width, CHANNEL_TILES * COLUMNS)
        self.results = np.random.default_rng(seed).integers(self.low, self.high + 1, shape)
        self.chunks: dict[str, deque[int]] = {name: deque() for name in ("arrange", "reader", "writer")}
        self.groups, self.read, self.write = deque(self._groups()), deque[int](), deque[int]()
        self.sums, self.cycles, self.moved = 0, 0, [0, 0]

    def _drawn(self) -> list[int]:
        return [self.dice.randint(self.low, self.high) for _ in range(LANES)]

    def _groups(self) -> list[int]:
        """Return the groups in the order of their arrival: row tiles, channel tiles, columns, pairs of rows."""
        groups = []
        for first in range(0, self.one.height, ROWS):
            rows = range(first, min(first + ROWS, self.one.height))
            for tile in range(CHANNEL_TILES):
                for x in range(self.one.width):
                    own = [self.results[y, x, tile * COLUMNS : (tile + 1) * COLUMNS].tolist() for y in rows]
                    own += [[0] * COLUMNS] * (len(own) % 2)
                    groups += [packed(own[r] + own[r + 1], 16) for r in range(0, len(own), 2)]
        return groups

    def expected(self) -> tuple[list[list[int]], list[list[list[int]]]]:
        """Return DDR and the map buffer after the pass, computed from their definitions."""
        ddr, kept = [list(word) for word in self.ddr], [[list(word) for word in bank] for bank in self.kept]
        one, (added_base, added_pitch) = self.one, self.one.added_at
        for y, x, block in np.ndindex(one.height, one.width, one.blocks):
            within = block * BLOCK_PITCH + x
            bank, lap = one.kept_place(y, added_pitch)
            other = self.kept[bank][lap + within] if one.from_chip else self.ddr[added_base + y * added_pitch + within]
            own = self.results[y, x, block * LANES : (block + 1) * LANES].tolist()
            total = [one.by.of(a, b) for a, b in zip(own, other, strict=True)]
            if one.to_chip:
                bank, lap = one.kept_place(y, one.row_pitch)
                kept[bank][lap + within] = total
            else:
                ddr[one.base + y * one.row_pitch + within] = total
        return ddr, kept

    def run(self) -> int:
        """Run the pass, and return the cycles from the first sum to the last."""
        bench, one = self.bench, self.one
        words = one.height * one.width * one.blocks
        base, pitch = one.added_at
        for name in ("plan", "arrange", "reader", "writer"):
            bench.put(name, {"pass": one.word})
        bench.put("writer", {"base": one.base, "row_pitch": one.row_pitch})
        bench.put("reader", {"base": base, "row_pitch": pitch})
        bench.settle()
        bench.edge()  # the pass is valid a cycle before its start
        pulse(bench, "plan")
        begin = 0
        while self.sums < words or not self._done():
            assert self.cycles < PATIENCE, f"{self.sums} of {words} sums"
            begin = begin or self.cycles * int(self.sums > 0)
            self._cycle(words)
            self.cycles += 1
        return self.cycles - begin

    def _done(self) -> bool:
        return bool(self.bench.get("arrange", "done") and self.bench.get("plan", "done"))

    def _willing(self, count: int = 1) -> int:
        return sum((self.dice.random() >= self.gaps) << i for i in range(count))

    def _cycle(self, words: int) -> None:
        bench, one = self.bench, self.one
        room = all(len(queue) < 2 for queue in self.chunks.values())
        bench.put("plan", {"chunk_ready": int(room)})
        for name, queue in self.chunks.items():
            bench.put(
                name, {"chunk_valid": int(bool(queue)), "chunk": queue[0] if queue else self.dice.getrandbits(99)}
            )
        offered = bool(self.groups) and (self.moved[0] == 1 or self._willing())
        added = bool(self.read) and (self.moved[1] == 1 or self._willing())
        bench.put("arrange", {"result_valid": int(offered), "result": self.groups[0] if offered else 0})
        word = self.ddr[self.read[0]] if added else self._drawn()
        bench.put("arrange", {"added_valid": int(added), "added": packed(word, one.bits)})
        ready = self._willing(MAP_PORTS + 1) if self.write else 0
        bench.put("arrange", {"words_ready": ready})
        asked = {name: self._willing() for name in ("reader", "writer")}
        for name, willing in asked.items():
            bench.put(name, {"command_ready": willing})
        bench.settle()
        assert not (self._done() and self.cycles > 1 and self.sums < words), "sums are missing"
        self._take_chunks(room)
        self.moved = [int(offered), int(added)]
        if offered and bench.get("arrange", "result_ready"):
            self.groups.popleft()
            self.moved[0] = 0
        if bench.get("arrange", "added_ready") and added:
            self.read.popleft()
            self.moved[1] = 0
        self._take_commands(asked)
        self._take_words(ready)
        kept = self._move_kept()
        bench.edge()
        bench.put("arrange", {"buffer_read_words": packed([value for word in kept for value in word], one.bits)})
        bench.settle()

    def _take_chunks(self, room: bool) -> None:
        for name, queue in self.chunks.items():
            if queue and self.bench.get(name, "chunk_ready"):
                queue.popleft()
        if room and self.bench.get("plan", "chunk_valid"):
            chunk = self.bench.get("plan", "chunk")
            self.chunks["arrange"].append(chunk)
            if not self.one.to_chip:
                self.chunks["writer"].append(chunk)
            if not self.one.from_chip:
                place = 1 + 3 * 32  # the place of row_offset in a chunk
                cleared = chunk & ~(((1 << 32) - 1) << place)
                self.chunks["reader"].append(cleared | self.bench.get("plan", "added_row_offset") << place)

    def _take_commands(self, asked: Mapping[str, int]) -> None:
        for name, queue in (("reader", self.read), ("writer", self.write)):
            if asked[name] and self.bench.get(name, "command_valid"):
                first = self.bench.get(name, "command_address")
                queue.extend(range(first, first + self.bench.get(name, "command_words")))

    def _take_words(self, ready: int) -> None:
        valid = self.bench.get("arrange", "words_valid")
        assert valid in (0, 1 << MAP_PORTS), "sums must be written through their own port"
        if valid & ready:
            bits = LANES * self.one.bits
            word = self.bench.get("arrange", "words") >> (MAP_PORTS * bits)
            self.ddr[self.write.popleft()] = unpacked(word, self.one.bits, LANES)
            self.sums += 1

    def _move_kept(self) -> list[list[int]]:
        """Write the kept words, and return the words that the next cycle reads from each bank."""
        bench, read = self.bench, []
        keep = bench.get("arrange", "buffer_write")
        words = unpacked(bench.get("arrange", "buffer_write_words"), self.one.bits, ROWS * LANES)
        for bank, (to, of) in enumerate(zip(*self._addresses(), strict=True)):
            read.append(self.kept[bank][of] if 0 <= of < DEPTH else self._drawn())
            if keep >> bank & 1:
                assert self.one.to_chip
                self.kept[bank][to] = words[bank * LANES : (bank + 1) * LANES]
                self.sums += 1
        return read

    def _addresses(self) -> tuple[list[int], list[int]]:
        ports = (self.bench.get("arrange", name) for name in ("buffer_write_address", "buffer_read_address"))
        to, of = (unpacked(port, 32, ROWS) for port in ports)
        return to, of


WAYS = [(from_chip, to_chip) for from_chip in (False, True) for to_chip in (False, True)]


def wrong(bench: Bench, one: Pass, seed: int, gaps: float) -> Sequence[object]:
    """Return the words of DDR and of the map buffer that differ from the definition."""
    saver = Saver(bench, one, seed, gaps)
    expected = saver.expected()
    saver.run()
    return [
        *((place, word) for place, word in enumerate(saver.ddr) if word != expected[0][place]),
        *((bank, words) for bank, words in enumerate(saver.kept) if words != expected[1][bank]),
    ]


@cases("gaps", [0, 0.4])
@cases("from_chip, to_chip", WAYS)
@pytest.mark.parametrize("bits", [8, *(pytest.param(bits, marks=pytest.mark.engine) for bits in (4, 16))])
def test_saver_sums_are_stored_in_their_places(
    built: Builder, bits: int, from_chip: bool, to_chip: bool, gaps: float
) -> None:
    """Check that nothing else changes, with incomplete chunks and tiles, and channel tiles of two blocks and of one."""
    assert wrong(bench_of(built, bits), Pass(bits, from_chip, to_chip), 5, gaps) == []


def test_saver_on_chip_adds_one_word_per_cycle(built: Builder) -> None:
    """Use maps on chip, which never wait. The results of a chunk arrive faster than its sums are written."""
    one = Pass(8, from_chip=True, to_chip=True)
    words = one.height * one.width * one.blocks
    assert Saver(bench_of(built, 8), one, 1, 0).run() <= words + 2 * ROWS


PLANTED = {
    "the other's word of another cycle": ("arrange", ".CYCLES(2)) banks_read", ".CYCLES(1)) banks_read"),
    "a place that comes too early": ("arrange", ".CYCLES(SUM_LATENCY - 1)) places", ".CYCLES(SUM_LATENCY - 2)) places"),
    "results that do not wait": ("arrange", "output_ready && (added_valid || !addition.from_ddr)", "output_ready"),
    "sums for which there is no room": ("arrange", ".SLACK(SUM_LATENCY)", ".SLACK(0)"),
    "done with sums under way": ("arrange", "assign sums_done = valid == '0", "assign sums_done = 1'b1"),
    "rows of the other map by the sum's pitch": (
        "plan_chunks",
        "words <= address_product(addition.row_pitch,",
        "words <= address_product(pass.out_row_pitch,",
    ),
    "laps by the sum's pitch": (
        "plan_chunks",
        "pass.out_buffer == 0 ? addition.row_pitch : pass.out_row_pitch",
        "pass.out_buffer == 0 ? pass.out_row_pitch : pass.out_row_pitch",
    ),
    "a sign that counts positively": ("add_words", "? -upper : upper", "? upper : upper"),
}


@pytest.mark.engine
@pytest.mark.parametrize("name", PLANTED)
def test_saver_planted_defect_is_found(built: Builder, name: str) -> None:
    """Find the defect by sums that are wrong, late or missing."""
    module, right, fault = PLANTED[name]
    texts = texts_of(8)
    assert texts[f"src/{module}.sv"].count(right) == 1
    texts[f"src/{module}.sv"] = texts[f"src/{module}.sv"].replace(right, fault)
    bench, found = bench_of(built, 8, texts), 0
    for from_chip, to_chip in WAYS:
        try:
            found += bool(wrong(bench, Pass(8, from_chip, to_chip), 5, 0.4))
        except (AssertionError, IndexError):
            found += 1
        bench.reset(30)
    assert found > 0
