"""A cocotb bench of control_slave: the AXI4-Lite master of cocotbext-axi, and an engine that ends at random times."""

from __future__ import annotations

import random
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge, SimTimeoutError, with_timeout
from cocotbext.axi import AxiLiteBus, AxiLiteMaster

from tests.support.rtl.axi.modules import ARGUMENTS, NARROW, WIDE
from tests.support.rtl.axi.rules import Answers
from tests.support.rtl.axi.simulated import (
    PATIENCE,
    PAUSED,
    PERIOD_NS,
    VARIANTS,
    Ports,
    begun,
    each_cycle,
    settled,
)

CTRL, GIER, IER, ISR = 0x0, 0x4, 0x8, 0xC
START, DONE, IDLE, READY, RESTART, INTERRUPT = 0x01, 0x02, 0x04, 0x08, 0x80, 0x200
OFFSETS = {argument.name: argument.offset for argument in ARGUMENTS}
GIVEN = {("program_address" if name == "program" else name): offset for name, offset in OFFSETS.items()}
"""The offset of each register, by the port of the slave."""
EACH = cocotb.parametrize(variant=VARIANTS, paused=PAUSED)
WIRES = (
    *("awvalid", "awready", "wvalid", "wready", "bvalid", "bready", "bresp"),
    *("arvalid", "arready", "rvalid", "rready", "rdata", "rresp"),
)


class Driver:
    """The host's side of the bus."""

    def __init__(self, ports: Ports) -> None:
        self.ports = ports
        bus = AxiLiteBus.from_prefix(ports.dut, f"{ports.variant}_s_axil")
        self.master = AxiLiteMaster(bus, ports.dut.clk, ports.dut.reset)
        writes, reads = self.master.write_if, self.master.read_if
        ports.pause({"aw": writes.aw_channel, "w": writes.w_channel, "b": writes.b_channel}, 11)
        ports.pause({"ar": reads.ar_channel, "r": reads.r_channel}, 14)

    async def write(self, address: int, data: bytes) -> None:
        """Write some bytes of a word, as selected by the strobes."""
        await self._answered(self.master.write(address, data))

    async def put(self, address: int, word: int) -> None:
        """Write a whole word."""
        await self.write(address, word.to_bytes(4, "little"))

    async def get(self, address: int) -> int:
        """Read a whole word."""
        return int.from_bytes((await self._answered(self.master.read(address, 4))).data, "little")

    async def all(self, address: int, words: int) -> bytes:
        """Read consecutive words without waiting for the answers in between."""
        answer: bytes = (await self._answered(self.master.read(address, 4 * words))).data
        return answer

    async def _answered(self, access: Any) -> Any:
        try:
            return await with_timeout(cocotb.start_soon(access), PATIENCE * PERIOD_NS, "ns")
        except SimTimeoutError:
            raise AssertionError(f"every access is answered, in {PATIENCE} cycles") from None


async def opened(dut: Any, variant: str, paused: str) -> tuple[Ports, Driver, Answers]:
    """Return the ports, the driver and the rules of a bench after its reset."""
    ports = Ports(dut, variant, paused)
    await begun(dut, ports, ("done", "current", "current_written"))
    driver, rules = Driver(ports), Answers()
    dut.reset.value = 0
    await RisingEdge(dut.clk)
    each_cycle(dut, lambda: rules.see(ports.wires("s_axil_", WIRES)))
    return ports, driver, rules


async def pulse(ports: Ports, name: str) -> None:
    """Set an input to 1 for one cycle."""
    getattr(ports, name).value = 1
    await RisingEdge(ports.dut.clk)
    getattr(ports, name).value = 0


@cocotb.test()
@EACH
async def registers_hold_what_was_written(dut: Any, variant: str, paused: str) -> None:
    """Random bytes of random words are written while another register is read.

    An address without a register reads as 0, and a write to it changes nothing.
    """
    ports, driver, rules = await opened(dut, variant, paused)
    dice = random.Random(5)
    places = [*(GIVEN[name] + 4 * part for name in WIDE for part in range(2)), *(GIVEN[name] for name in NARROW)]
    held = {place: bytearray(4) for place in places}
    holes = [address for address in range(0x10, 0x80, 4) if address not in held and address != OFFSETS["current"]]
    for _ in range(20):
        target, other = dice.sample(sorted(held), 2)
        first = dice.randrange(4)
        part = dice.randbytes(dice.randrange(1, 5 - first))
        reading = cocotb.start_soon(driver.get(other))
        await driver.write(target + first, part)
        held[target][first : first + len(part)] = part
        assert await reading == int.from_bytes(held[other], "little"), "a register keeps its word"
        assert await driver.get(target) == int.from_bytes(held[target], "little"), "a register takes the strobed bytes"
        hole, pointer = dice.choice(holes), GIVEN[dice.choice(WIDE)]
        await driver.put(hole, dice.getrandbits(32))
        assert await driver.get(hole) == 0, "there is no register"
        address = dice.randbytes(8)
        await driver.write(pointer, address)
        held[pointer][:], held[pointer + 4][:] = address[:4], address[4:]
    words = [held.get(place, bytearray(4)) for place in range(0x10, OFFSETS["current"], 4)]
    assert await driver.all(0x10, len(words)) == b"".join(words), "words are read in their order"
    for name in (*WIDE, *NARROW):
        bytes_held = b"".join(held[GIVEN[name] + 4 * part] for part in range(2 if name in WIDE else 1))
        assert int(getattr(ports, name).value) == int.from_bytes(bytes_held, "little"), f"the engine sees {name}"
    rules.end()


@cocotb.test()
@EACH
async def a_start_runs_once_and_each_end_is_told_once(dut: Any, variant: str, paused: str) -> None:
    """Poll ap_start, ap_done, ap_idle and ap_ready at random times."""
    ports, driver, rules = await opened(dut, variant, paused)
    dice, starts = random.Random(6), [0]

    def count() -> None:
        starts[0] += int(ports.start.value)

    each_cycle(dut, count)
    assert await driver.get(CTRL) == IDLE
    for turn in range(1, 16):
        await driver.put(CTRL, START)
        for _ in range(4):
            await RisingEdge(dut.clk)
        assert starts[0] == turn, "a start is one cycle long"
        assert await driver.get(CTRL) == START, "it runs"
        # The host polls while the engine ends, in any cycle of a read.
        polling = cocotb.start_soon(driver.get(CTRL))
        for _ in range(dice.randrange(6)):
            await RisingEdge(dut.clk)
        await pulse(ports, "done")
        told = [await polling, await driver.get(CTRL), await driver.get(CTRL)]
        assert [bool(word & DONE) for word in told].count(True) == 1, "an end is reported once"
        assert [bool(word & READY) for word in told].count(True) == 1, "an end is reported once"
        assert told[-1] == IDLE, "it is idle"
    await driver.put(CTRL, START | RESTART)
    for _ in range(3):
        await pulse(ports, "done")
        for _ in range(6):
            await RisingEdge(dut.clk)
    assert starts[0] == 19, "it starts again by itself"
    await driver.put(CTRL, 0)
    await pulse(ports, "done")
    await driver.get(CTRL)
    assert (await driver.get(CTRL), starts[0]) == (IDLE, 19), "until auto-restart is switched off"
    rules.end()


@cocotb.test()
@EACH
async def interrupts_are_enabled_shown_and_taken_back(dut: Any, variant: str, paused: str) -> None:
    """Try the global enable, both enables, the status that a 1 toggles, and the interrupt line."""
    ports, driver, rules = await opened(dut, variant, paused)
    for line in (0, 1):
        for enables in range(4):
            await driver.put(GIER, line)
            await driver.put(IER, enables)
            assert (await driver.get(GIER), await driver.get(IER)) == (line, enables), "enables are kept"
            await driver.put(CTRL, START)
            await pulse(ports, "done")
            await settled(dut)
            rings = int(line and enables > 0)
            assert int(ports.interrupt.value) == rings, "the line rings where both enables are on"
            assert await driver.get(ISR) == enables, "the status has what is enabled"
            assert bool(await driver.get(CTRL) & INTERRUPT) == rings, "the control register shows the line"
            for bit in range(2):
                await driver.put(ISR, 1 << bit)
                assert await driver.get(ISR) >> bit & 1 != enables >> bit & 1, "a 1 turns the bit of the status"
                await driver.put(ISR, ~enables >> bit << bit & 1 << bit)
            assert await driver.get(ISR) == 0, "a 0 leaves it"
            assert not ports.interrupt.value, "the line is quiet"
    rules.end()


@cocotb.test()
@EACH
async def a_number_of_the_engine_is_new_until_it_is_read(dut: Any, variant: str, paused: str) -> None:
    """Read the register ``current``, and its bit that the engine's write sets and a read clears."""
    ports, driver, rules = await opened(dut, variant, paused)
    dice, offset = random.Random(8), OFFSETS["current"]
    for _ in range(10):
        number = dice.getrandbits(32)
        ports.current.value = number
        assert await driver.get(offset + 4) == 0, "nothing is new"
        await pulse(ports, "current_written")
        assert await driver.get(offset) == number, "the number is the engine's"
        assert await driver.get(offset + 4) == 1, "it is new once"
    rules.end()
