"""Join the synthesised modules of a design to one netlist of primitives."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from rtl_timing.synthesis import Bit, Cell, Module

PORT = "PORT"
"""The kind of the primitive that stands for a register of the module at the other side of a port."""


@dataclass(frozen=True)
class Primitive:
    """One FPGA primitive of the flattened design, with its nets.

    Attributes:
        path: Where its module is in the hierarchy, such as ``engine.pooler``.
        cell: The primitive in its module.
        nets: The design's net of each pin bit. None stands for a constant or an unconnected pin.
    """

    path: str
    cell: Cell
    nets: Mapping[str, tuple[int | None, ...]]


@dataclass(frozen=True)
class Netlist:
    """The flattened netlist of a design: all its primitives, and the names of its nets.

    Attributes:
        primitives: The primitives.
        names: The name of a net in the sources, with its path, and the line that declares it.
        inputs: The name of the input port of the top module that drives a net, for each such net.
        outputs: The names of the output ports of the top module, with each net that drives a bit of the port.
    """

    primitives: tuple[Primitive, ...]
    names: Mapping[int, tuple[str, str]]
    inputs: Mapping[int, str]
    outputs: tuple[tuple[str, int], ...] = ()


class _Builder:
    """Flattens the modules of a design into one list of primitives."""

    def __init__(self, modules: Mapping[str, Module]) -> None:
        self.modules = modules
        self.primitives: list[Primitive] = []
        self.names: dict[int, tuple[str, str]] = {}
        self._same: list[int] = []  # net → a net that is the same, or itself

    def net(self) -> int:
        """Return the number of a new net of the flattened design."""
        self._same.append(len(self._same))
        return len(self._same) - 1

    def merge_nets(self, one: int | None, other: int | None) -> None:
        """Record that two nets are the same net."""
        if one is not None and other is not None:
            self._same[self.final(one)] = self.final(other)

    def final(self, net: int) -> int:
        """Return the number that represents all nets that are the same as this one."""
        while self._same[net] != net:
            self._same[net] = self._same[self._same[net]]
            net = self._same[net]
        return net

    def instantiate(self, module: Module, path: str, known: dict[int, int | None]) -> None:
        """Add the primitives of a module instance, and of the modules below it, to the flattened design.

        Args:
            module: The module to instantiate.
            path: Where it is in the hierarchy; "" for the top module.
            known: The design's net for each net of the module's ports. Inner nets are added.
        """

        def design_net(bit: Bit) -> int | None:
            if not isinstance(bit, int):
                return None
            if bit not in known:
                known[bit] = self.net()
            return known[bit]

        for cell in module.cells:
            nets = {pin: tuple(map(design_net, bits)) for pin, bits in cell.pins.items()}
            below = self.modules.get(cell.kind)
            if below is None:
                self.primitives.append(Primitive(path, cell, nets))
                continue
            ports: dict[int, int | None] = {}
            for pin, outers in nets.items():
                for inner, outer in zip(below.ports[pin], outers, strict=True):
                    if isinstance(inner, int):
                        self.merge_nets(ports.get(inner), outer)  # an output that passes on an input is the same net
                        ports[inner] = outer if outer is not None else ports.get(inner)
            self.instantiate(below, f"{path}.{cell.name}" if path else cell.name, ports)
        for bit, (name, source) in module.names.items():
            net = known.get(bit)
            if net is not None:
                self.names.setdefault(net, (f"{path}.{name}" if path else name, source))


def flattened(modules: Mapping[str, Module], top: str) -> Netlist:
    """Return the flattened netlist of the design below a top module.

    Args:
        modules: The synthesised modules by their names.
        top: The name of the top module in ``modules``.
    """
    builder = _Builder(modules)
    module = modules[top]
    bits = {bit for port in module.ports.values() for bit in port if isinstance(bit, int)}
    known: dict[int, int | None] = {bit: builder.net() for bit in sorted(bits)}
    builder.instantiate(module, "", known)
    inputs = {
        builder.final(net): port
        for port in sorted(module.inputs)
        for bit in module.ports[port]
        if isinstance(bit, int) and (net := known[bit]) is not None
    }
    outputs = tuple(
        (port, builder.final(net))
        for port in sorted(module.ports.keys() - module.inputs)
        for bit in module.ports[port]
        if isinstance(bit, int) and (net := known[bit]) is not None
    )
    primitives = tuple(
        replace(
            primitive,
            nets={
                pin: tuple(None if net is None else builder.final(net) for net in nets)
                for pin, nets in primitive.nets.items()
            },
        )
        for primitive in builder.primitives
    )
    names: dict[int, tuple[str, str]] = {}
    for net, name in builder.names.items():
        names.setdefault(builder.final(net), name)
    return Netlist(primitives, names, inputs, outputs)


def with_port_registers(netlist: Netlist, clock: str, others: Collection[str]) -> Netlist:
    """Return a netlist with a register of the neighbouring module at each port of the top module.

    A register is a primitive of the kind PORT, and its source is ``port:NAME``. So a path that starts or ends at a port
    is a path between registers.

    Args:
        netlist: The flattened design.
        clock: The name of the input that clocks the registers.
        others: The names of the ports that get no register, such as further clocks.
    """
    (clock_net,) = (net for net, port in netlist.inputs.items() if port == clock)
    left_out = {clock, *others}
    launching = [(port, net, "Q") for net, port in netlist.inputs.items() if port not in left_out]
    capturing = [(port, net, "D") for port, net in netlist.outputs if port not in left_out]
    registers = tuple(
        Primitive(
            "port",
            Cell(port, PORT, f"port:{port}", {}, {"C": (clock_net,), pin: (net,)}, frozenset({pin} & {"Q"})),
            {"C": (clock_net,), pin: (net,)},
        )
        for port, net, pin in (*launching, *capturing)
    )
    return replace(netlist, primitives=(*netlist.primitives, *registers))
