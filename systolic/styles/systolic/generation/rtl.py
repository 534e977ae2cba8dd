"""The values that fill the templates of the array in SystemVerilog."""

from __future__ import annotations

from hls_templates.systolic.sources import SystolicValues
from hls_templates.vendor.ports import SystolicPorts
from hls_templates.vendor.registers import address_bits, registers
from rtl_templates.sources import STYLES, Argument, Constant, Memory, RtlValues
from scheduler.systolic.area.memories import MAP_BUFFERS
from scheduler.systolic.area.resources import PRODUCTS
from scheduler.systolic.array import COUNT_BITS
from systolic.styles.systolic.mapping import SystolicMapping


def rtl_values(mapping: SystolicMapping, values: SystolicValues, ports: SystolicPorts) -> RtlValues:
    """Return the values that fill the templates of the array in SystemVerilog.

    Args:
        mapping: The schedule on its board.
        values: The values of the engine in C++, which has the same parameters.
        ports: The ports of the engine.
    """
    array, ddr = mapping.schedule.array, mapping.cost.ddr
    register_map = registers(ports.arguments)
    offsets = {register.name: register.offset for register in register_map}
    arguments = tuple(
        Argument(argument.name, argument.kind, offsets[argument.name + "_1" * (argument.kind == "pointer")])
        for argument in ports.arguments
        if argument.kind != "stream"
    )
    products = next(memory for memory in values.memories if memory.name == PRODUCTS.macro)
    primitives = {memory.name: Constant(memory.name, memory.impl, memory.reason) for memory in values.memories}
    primitives.setdefault(MAP_BUFFERS.macro, Constant(MAP_BUFFERS.macro, "bram", "no map stays on chip"))
    return RtlValues(
        title=values.title,
        reasons=values.reasons,
        numbers=(
            *(Constant(p.name, p.value, p.reason) for p in values.parameters),
            Constant("REQUANTISE_DSPS", int(products.impl == "dsp"), products.reason),
            Constant("COUNT_BITS", COUNT_BITS, "bits of the row, block and padding counts in address products"),
            Constant("SUM_BITS", array.sum_bits, "bits of a sum, enough for any weights of the layers"),
            Constant("DSP_CLOCK", array.dsp_clock, "cycles of the DSP clock per cycle of the fabric's clock"),
        ),
        primitives=tuple(memory for memory in primitives.values() if memory.value in STYLES),
        arguments=arguments,
        address_bits=address_bits(register_map),
        memory=Memory(ddr.milli_bytes, ddr.read_latency, ddr.write_latency),
        instantiated=array.dsp == "DSP48E2",
        dsp_clock=array.dsp_clock,
    )
