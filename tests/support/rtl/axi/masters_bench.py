"""A cocotb bench of axi_read and axi_write, with random commands and the memory of cocotbext-axi."""

from __future__ import annotations

import random
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiBus, AxiRam

from tests.support.rtl.axi.modules import MASTERS
from tests.support.rtl.axi.rules import Bursts
from tests.support.rtl.axi.simulated import (
    PATIENCE,
    PAUSED,
    VARIANTS,
    Ports,
    begun,
    closed,
    each_cycle,
    settled,
    until,
)

COMMANDS = 12
SIZE = 1 << 18
"""The bytes of the memory. The first half is read, and the second half is written."""
WIRES = (
    *("arvalid", "arready", "araddr", "arlen", "rvalid", "rready", "rlast", "awvalid", "awready", "awaddr", "awlen"),
    *("wvalid", "wready", "wdata", "wstrb", "wlast", "bvalid", "bready"),
)
INPUTS = ("base", "read_valid", "read_address", "read_words", "out_ready", "in_valid", "in_data", "in_halves")
WRITE_INPUTS = ("write_valid", "write_address", "write_words")


async def send(ports: Ports, name: str, words: list[dict[str, int]]) -> None:
    """Send words to an input with valid and ready, with gaps if channels pause."""
    valid, ready = getattr(ports, f"{name}_valid"), getattr(ports, f"{name}_ready")
    gaps = closed(len(name))
    for word in words:
        while ports.paused != "none" and next(gaps):
            await RisingEdge(ports.dut.clk)
        for port, number in word.items():
            getattr(ports, port).value = number
        valid.value = 1
        await until(ports.dut, lambda: bool(ready.value), f"{name} is taken")
        await RisingEdge(ports.dut.clk)
        valid.value = 0


async def received(ports: Ports, words: int, size: int) -> bytes:
    """Return ``words`` words of ``size`` bytes from the reader, which are taken with gaps if channels pause."""
    gaps, got, waited = closed(7), bytearray(), 0
    while len(got) < words * size:
        ports.out_ready.value = int(ports.paused == "none" or not next(gaps))
        await settled(ports.dut)
        waited += 1
        if ports.out_valid.value and ports.out_ready.value:
            got += int(ports.out_data.value).to_bytes(size, "little")
            waited = 0
        assert waited < PATIENCE, f"{len(got) // size} of {words} words were read in {PATIENCE} cycles"
        await RisingEdge(ports.dut.clk)
    ports.out_ready.value = 0
    return bytes(got)


def asked(ports: Ports, ram: AxiRam) -> None:
    """Give READY of requests and data only after VALID. A master must not wait for READY."""
    channels = {"aw": ram.write_if.aw_channel, "w": ram.write_if.w_channel, "ar": ram.read_if.ar_channel}

    def look() -> None:
        for name, channel in channels.items():
            channel.pause = not getattr(ports, f"m_axi_{name}valid").value

    each_cycle(ports.dut, look)


def memory(ports: Ports) -> AxiRam:
    """Return the memory at the ports, with the pauses of this run."""
    ram = AxiRam(AxiBus.from_prefix(ports.dut, f"{ports.variant}_m_axi"), ports.dut.clk, ports.dut.reset, size=SIZE)
    reads, writes = ram.read_if, ram.write_if
    ports.pause({"aw": writes.aw_channel, "w": writes.w_channel, "b": writes.b_channel}, 1)
    ports.pause({"ar": reads.ar_channel, "r": reads.r_channel}, 4)
    if ports.paused == "asked":
        asked(ports, ram)
    return ram


async def write(ports: Ports, ram: AxiRam, dice: random.Random, base: int) -> None:
    """Send commands to the writer, and compare the memory at the end.

    The words have both halves, either half or neither. All other bytes of the memory must be unchanged.
    """
    size = MASTERS[ports.variant].word
    before, expected = ram.read(SIZE // 2, SIZE // 2), bytearray(ram.read(SIZE // 2, SIZE // 2))
    commands, sent, place = [], [], (SIZE // 2 - base) // size
    for _ in range(COMMANDS):
        words = dice.choice([1, 2, 15, 64, 65, 130])
        commands.append({"write_address": place, "write_words": words})
        for address in range(base + place * size - SIZE // 2, base + (place + words) * size - SIZE // 2, size):
            word, halves = dice.randbytes(size), dice.choice([3, 3, 1, 2, 0])
            sent.append({"in_data": int.from_bytes(word, "little"), "in_halves": halves})
            for half in (half for half in range(2) if halves >> half & 1):
                part = slice(half * size // 2, (half + 1) * size // 2)
                expected[address + part.start : address + part.stop] = word[part]
        place += words + dice.randrange(40)
    cocotb.start_soon(send(ports, "in", sent))
    await send(ports, "write", commands)
    await until(ports.dut, lambda: bool(ports.idle.value), "the writer comes to its end")
    assert before != expected
    assert ram.read(SIZE // 2, SIZE // 2) == bytes(expected), "every word is where it belongs, and only there"


@cocotb.test()
@cocotb.parametrize(variant=VARIANTS, paused=PAUSED)
async def words_arrive_and_leave(dut: Any, variant: str, paused: str) -> None:
    """Read and write at the same time, and compare every word."""
    masters, ports, dice = MASTERS[variant], Ports(dut, variant, paused), random.Random(3)
    await begun(dut, ports, (*INPUTS, *WRITE_INPUTS))
    ram = memory(ports)
    base = 17 * masters.word
    ports.base.value = base
    dut.reset.value = 0
    await RisingEdge(dut.clk)
    rules = Bursts(masters.word, masters.length, masters.outstanding)
    each_cycle(dut, lambda: rules.see({"idle": int(ports.idle.value), **ports.wires("m_axi_", WIRES)}))
    image = dice.randbytes(SIZE)
    ram.write(0, image)
    most = SIZE // 2 // masters.word - 400
    reads = [(dice.randrange(most), dice.choice([1, 2, 63, 64, 65, 300])) for _ in range(COMMANDS)]
    cocotb.start_soon(send(ports, "read", [{"read_address": place, "read_words": words} for place, words in reads]))
    writing = cocotb.start_soon(write(ports, ram, dice, base))
    got = await received(ports, sum(words for _, words in reads), masters.word)
    parts = [image[base + place * masters.word :][: words * masters.word] for place, words in reads]
    assert got == b"".join(parts), "every word is read unchanged and in order"
    await writing
    await settled(dut)
    rules.end()
