"""Units that compute: matrix-vector and vector-vector with their weights, activations, global pools and additions."""

from __future__ import annotations

from cnn.accumulator import magnitude
from cnn.datatype import DataType
from hls_templates.streaming.sources import Constant, WeightPort
from scheduler.hardware.ddr import WEIGHT_BEAT_BYTES
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from scheduler.streaming.model.cycles import resident
from scheduler.streaming.weights import weight_image, weight_matrix, weight_tiles
from systolic.styles.streaming import constants as c
from systolic.styles.streaming.moving import convert_pixels
from systolic.styles.streaming.netlist import RAM, Netlist, Site, carrier

# --- units with weights ----------------------------------------------------------------------------------------


def matrix_vector(net: Netlist, at: Site) -> None:
    block, fold = at.block, at.fold
    height, width = lanes.matrix(net.graph, at.index, fold)
    spots = lanes.positions(block)
    sizes = (spots, width, height, fold.simd, fold.pe, fold.pixels)
    (source,), (result,) = at.taken, at.given
    gathers = fold.pixels > fold.m
    if gathers:
        source = net.wire(f"gathered_{block.name}", carrier(net.datatype_in(at), fold.pixels * fold.simd))
        result = net.wire(f"scattered_{block.name}", carrier(block.outputs[0].datatype, fold.pixels * fold.pe))
        pixels = (fold.simd, width, fold.m, fold.pixels, spots)
        convert_pixels(net, f"gather_{block.name}", pixels, at.taken[0], source)
    _unit(net, at, "matrix_vector", sizes, source, result)
    if gathers:
        pixels = (fold.pe, height, fold.pixels, fold.m, spots)
        convert_pixels(net, f"scatter_{block.name}", pixels, result, at.given[0])


def vector_vector(net: Netlist, at: Site) -> None:
    channels, taps = lanes.matrix(net.graph, at.index, at.fold)
    sizes = (lanes.positions(at.block), channels, taps, at.fold.simd, at.fold.pe, at.fold.pixels)
    _unit(net, at, "vector_vector", sizes, at.taken[0], at.given[0])


def _unit(net: Netlist, at: Site, function: str, sizes: tuple[int, ...], source: str, result: str) -> None:
    block, fold, op = at.block, at.fold, at.block.op
    assert isinstance(op, (g.MatrixVector, g.VectorVector))
    values = net.datatype_in(at)
    tiles = weight_tiles(weight_matrix(net.graph, net.folding.folds, at.index), fold.pe, fold.simd)
    stored = c.carried(tiles, op.weight_type)
    known = net.activation(at, op.activation, op.weights.shape[0] + fold.pad_out)
    multiplier = net.dsp if fold.multiplier == "dsp" else "LUT"
    kinds: tuple[object, ...] = (
        c.weight_type(op.weight_type),
        c.value_type(values),
        c.sum_bits(op.weights, values),
        multiplier,
    )
    text = (
        f"{block.name}: {stored.size:,} weights, PE {fold.pe}, SIMD {fold.simd}, {fold.pixels} pixel(s) a weight, "
        f"multipliers: {fold.multiplier}, weights {fold.memory}"
    )
    ports = [("in", source), ("out", result)]
    beside: tuple[str, ...] = (known,)
    storage: tuple[tuple[str, str], ...] = ()
    if fold.memory == "embedded":
        weights = _weights(net, block, stored, op.weight_type)
        beside = (weights, known)
        storage = ((weights, fold.ram),) if fold.ram != "auto" else ()
    else:
        groups = lanes.positions(block) // fold.pixels
        if resident(block, fold):
            function, groups, kinds = "matrix_vector_resident", 1, (*kinds, RAM[fold.ram])
        else:
            function = f"{function}_streamed"
        ports.insert(1, ("weights", _streamer(net, at, stored, op.weight_type, groups)))
    header = f"{function.removesuffix('_streamed')}.h"
    net.add(block.name, function, header, (*sizes, *kinds), ports, text, constants=beside, storage=storage)


def _weights(net: Netlist, block: g.Block, stored: c.Integers, weight_type: DataType) -> str:
    """The constant's name."""
    name = f"{block.name}_weights"
    text = f"{block.name}: weights by PE, tile and SIMD lane"
    element = carrier(weight_type, 1)
    net.constants.append(Constant(name, element.constant, (stored,), stored.shape, text))
    return name


def _streamer(net: Netlist, at: Site, stored: c.Integers, weight_type: DataType, groups: int) -> str:
    """Weights beside the unit: on chip in a memory of their own, or fetched from DDR."""
    block, fold = at.block, at.fold
    stream = net.wire(f"weights_of_{block.name}", carrier(weight_type, stored.shape[0] * stored.shape[2]))
    sizes = (groups, stored.shape[1], stored.shape[0], stored.shape[2], c.weight_type(weight_type))
    name, ends = f"stream_{block.name}", [("out", stream)]
    if fold.memory == "decoupled" and fold.ram != "uram":
        constant = _weights(net, block, stored, weight_type)
        text = f"weights of {block.name} from {fold.ram} memory"
        net.add(name, "stream_weights", "weights.h", (*sizes, RAM[fold.ram]), ends, text, constants=(constant,))
        return stream
    image = weight_image(stored, weight_type.bits, WEIGHT_BEAT_BYTES)
    net.images.append(image)
    memory = WeightPort(f"weights_{block.name}", f"memory_beat_t<{WEIGHT_BEAT_BYTES}>", image.size // WEIGHT_BEAT_BYTES)
    loads = fold.memory == "decoupled"
    function, when = ("load_weights", "once a start") if loads else ("fetch_weights", "once a frame")
    text = f"weights of {block.name} from DDR, {when}"
    image_sizes = (*sizes, WEIGHT_BEAT_BYTES)
    net.add(name, function, "weights.h", image_sizes, ends, text, weight_ports=(memory,), per_frame=not loads)
    return stream


# --- units without weights -------------------------------------------------------------------------------------


def activate(net: Netlist, at: Site) -> None:
    assert isinstance(at.block.op, g.Activate)
    channels, height, width = net.map_in(at)
    known = net.activation(at, at.block.op.activation, channels)
    sizes = (height * width, channels, at.fold.pe, at.fold.m, c.value_type(net.datatype_in(at)))
    net.add(at.block.name, "activate", "activate.h", sizes, at.ends, "an activation alone", constants=(known,))


def global_pool(net: Netlist, at: Site) -> None:
    assert isinstance(at.block.op, g.GlobalPool)
    channels, height, width = net.map_in(at)
    datatype = net.datatype_in(at)
    bits = max(2, (height * width * magnitude(datatype)).bit_length() + 1)
    known = net.activation(at, at.block.op.activation, channels)
    sizes = (height * width, channels, at.fold.pe, at.fold.m, c.value_type(datatype), bits, RAM[at.fold.ram])
    net.add(at.block.name, "global_pool", "global_pool.h", sizes, at.ends, "the sum over the map", constants=(known,))


def join(net: Netlist, at: Site) -> None:
    op = at.block.op
    assert isinstance(op, g.Add)
    channels, height, width = net.map_in(at)
    terms = [
        (kind.datatype, factor) for kind, factor in zip(net.graph.inputs_of(at.block), op.multipliers, strict=True)
    ]
    most = sum(magnitude(datatype) * factor for datatype, factor in terms)
    known = net.activation(at, op.activation, channels)
    texts = (f"term_t<{c.value_type(datatype)}, {factor}>" for datatype, factor in terms)
    sizes = (height * width, channels, at.fold.pe, at.fold.m, max(2, most.bit_length() + 1), *texts)
    ends = [*((f"in{i}", name) for i, name in enumerate(at.taken)), ("out", at.given[0])]
    net.add(at.block.name, "add", "elementwise.h", sizes, ends, "maps added value by value", constants=(known,))
