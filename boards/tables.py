"""One function per table of a board file → its facts; an error if a key is missing, unknown or out of range.

The ranges catch misspelt numbers; they are no statement about boards.
"""

from __future__ import annotations

from boards.facts import Control, Ddr, Dsp, Fmax, Pll, Port, Ps, Resources
from boards.reader import Table


def read_resources(table: Table) -> Resources:
    """[resources]: what the programmable logic holds."""
    resources = Resources(
        lut=table.integer("lut", 1, 10_000_000),
        lutram=table.integer("lutram", 0, 10_000_000),
        ff=table.integer("ff", 1, 20_000_000),
        bram36=table.integer("bram36", 1, 10_000),
        uram=table.integer("uram", 0, 10_000),
        dsp=table.integer("dsp", 1, 50_000),
    )
    table.finish()
    return resources


def read_dsp(table: Table) -> Dsp:
    """[dsp]."""
    dsp = Dsp(
        kind=table.choice("kind", ("DSP48E1", "DSP48E2")),
        a_bits=table.integer("a_bits", 8, 64),
        b_bits=table.integer("b_bits", 8, 64),
    )
    table.finish()
    return dsp


def read_ddr(table: Table) -> Ddr:
    """[ddr]."""
    ddr = Ddr(
        kind=table.choice("kind", ("DDR3", "DDR4", "LPDDR4")),
        bits=table.integer("bits", 8, 128),
        rated_mts=table.integer("rated_mts", 100, 10_000),
        preset_mts=table.integer("preset_mts", 100, 10_000),
        mib=table.integer("mib", 64, 1_048_576),
    )
    table.finish()
    return ddr


def read_port(table: Table) -> Port:
    """One [[port]]."""
    port = Port(
        name=table.text("name"),
        clock=table.text("clock"),
        enable=table.text("enable"),
        width=table.text("width"),
        bits=table.integer("bits", 32, 1024),
        coherent=table.boolean("coherent"),
        controller_port=table.integer("controller_port", 0, 15),
    )
    table.finish()
    return port


def read_control(table: Table) -> Control:
    """[control]."""
    control = Control(
        name=table.text("name"),
        clock=table.text("clock"),
        enable=table.text("enable"),
        base=table.integer("base", 0, 1 << 40),
        bytes=table.integer("bytes", 4096, 1 << 40),
    )
    table.finish()
    return control


def read_ps(table: Table) -> Ps:
    """[ps]."""
    ps = Ps(
        ip=table.choice("ip", ("zynq_ultra_ps_e", "processing_system7")),
        vlnv=table.text("vlnv"),
        clock=table.text("clock"),
        clock_mhz_key=table.text("clock_mhz_key"),
        clock_source_key=table.text("clock_source_key"),
        reset=table.text("reset"),
        interrupt=table.text("interrupt"),
        interrupt_key=table.text("interrupt_key"),
    )
    table.finish()
    return ps


def read_pll(table: Table) -> Pll:
    """One [[pll]]."""
    pll = Pll(
        name=table.text("name"),
        reference_mhz=table.number("reference_mhz", 1, 200),
        multiplier=table.integer("multiplier", 1, 200),
        post_divider=table.integer("post_divider", 1, 63),
    )
    table.finish()
    return pll


def read_fmax(table: Table) -> Fmax:
    """[fmax], in MHz."""
    fmax = Fmax(
        dsp=table.number("dsp", 1, 2000),
        bram=table.number("bram", 1, 2000),
        uram=table.number("uram", 0, 2000),
        global_clock=table.number("global_clock", 1, 2000),
        axi=table.number("axi", 1, 2000),
    )
    table.finish()
    return fmax
