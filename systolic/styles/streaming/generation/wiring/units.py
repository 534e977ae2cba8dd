"""The functions of blocks that compute: units with weights, activations, pools, sums, products, top-k, softmax."""

from __future__ import annotations

from dataclasses import replace

from cnn.datatype import DataType, magnitude
from hls_templates.streaming.sources import Constant, WeightPort
from scheduler.hardware.ddr import WEIGHT_BEAT_BYTES
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from scheduler.streaming.model.cycles import resident
from scheduler.streaming.weights import weight_image, weight_matrix, weight_tiles
from systolic.styles.streaming.generation.wiring import constants as c
from systolic.styles.streaming.generation.wiring.moving import PixelWords, convert_pixels
from systolic.styles.streaming.generation.wiring.netlist import RAM, Call, Ends, Netlist, Site, Store, carrier

# --- units with weights ----------------------------------------------------------------------------------------


def matrix_vector(net: Netlist, site: Site, op: g.MatrixVector) -> None:
    """Add to the pipeline a matrix-vector unit (convolution or dense layer) with its weights.

    If the unit computes more pixels per weight than a word has, two converters are added: one gathers pixels into
    longer words before the unit, and one scatters them into shorter words after it.
    """
    block, fold = site.block, site.fold
    height, width = lanes.matrix(net.graph, site.index, fold)
    positions = lanes.positions(block)
    sizes = (positions, width, height, fold.simd, fold.pe, fold.pixels)
    if fold.pixels == fold.m:
        _unit(net, site, op, Call("matrix_vector", "matrix_vector.h", sizes), site.ends)
        return
    gathered = net.wire(f"gathered_{block.name}", carrier(net.datatype_in(site), fold.pixels * fold.simd))
    scattered = net.wire(f"scattered_{block.name}", carrier(block.outputs[0].datatype, fold.pixels * fold.pe))
    words = PixelWords(fold.simd, width, fold.m, fold.pixels, positions)
    convert_pixels(net, f"gather_{block.name}", words, site.reads[0], gathered)
    _unit(net, site, op, Call("matrix_vector", "matrix_vector.h", sizes), [("in", gathered), ("out", scattered)])
    words = PixelWords(fold.pe, height, fold.pixels, fold.m, positions)
    convert_pixels(net, f"scatter_{block.name}", words, scattered, site.writes[0])


def vector_vector(net: Netlist, site: Site, op: g.VectorVector) -> None:
    """Add to the pipeline a vector-vector unit (depthwise convolution) with its weights."""
    channels, taps = lanes.matrix(net.graph, site.index, site.fold)
    sizes = (lanes.positions(site.block), channels, taps, site.fold.simd, site.fold.pe, site.fold.pixels)
    _unit(net, site, op, Call("vector_vector", "vector_vector.h", sizes), site.ends)


def _unit(net: Netlist, site: Site, op: g.Unit, call: Call, ends: Ends) -> None:
    """Add to the pipeline a matrix-vector or vector-vector unit, with its weights and activation.

    Args:
        net: The netlist.
        site: The block.
        op: The operation with its weights.
        call: The function. Its template arguments are only the sizes; the types are appended here.
        ends: The connections of its input and output.
    """
    block, fold = site.block, site.fold
    values = net.datatype_in(site)
    tiles = weight_tiles(weight_matrix(net.graph, net.folding.folds, site.index), fold.pe, fold.simd)
    stored = c.carried(tiles, op.weight_type)
    activation = net.activation(site, op.activation, op.weights.shape[0] + fold.pad_out)
    multiplier = net.dsp if fold.multiplier == "dsp" else "LUT"
    types = (c.weight_type(op.weight_type), c.value_type(values), c.sum_bits(op.weights, values), multiplier)
    call = replace(call, arguments=(*call.arguments, *types))
    if fold.memory == "embedded":
        weights = _weights(net, block, stored, op.weight_type)
        primitives = ((weights, fold.ram),) if fold.ram != "auto" else ()
        store = Store((weights, activation), primitives)
    else:
        call, groups = _streamed(call, block, fold)
        stream = _streamer(net, site, stored, op.weight_type, groups)
        ends, store = [ends[0], ("weights", stream), ends[1]], Store((activation,))
    reason = (
        f"{block.name}: {stored.size:,} weights, PE {fold.pe}, SIMD {fold.simd}, {fold.pixels} pixel(s) per weight, "
        f"multipliers: {fold.multiplier}, weights {fold.memory}"
    )
    net.add(block.name, call, ends, reason, store)


def _streamed(call: Call, block: g.Block, fold: g.Fold) -> tuple[Call, int]:
    """Return the function of a unit whose weights arrive by stream, and how often per frame it reads them all.

    A resident unit stores all vectors of a frame, so that it reads the weights only once.
    """
    if resident(block, fold):
        function = "matrix_vector_resident"
        return Call(function, f"{function}.h", (*call.arguments, RAM[fold.ram])), 1
    return replace(call, function=f"{call.function}_streamed"), lanes.positions(block) // fold.pixels


def _weights(net: Netlist, block: g.Block, stored: c.Integers, weight_type: DataType) -> str:
    """Add the C++ constant with a unit's weights to the pipeline, and return the constant's name."""
    name = f"{block.name}_weights"
    text = f"{block.name}: weights by PE, tile and SIMD lane"
    element = carrier(weight_type, 1)
    net.constants.append(Constant(name, element.constant, (stored,), stored.shape, text))
    return name


def _streamer(net: Netlist, site: Site, stored: c.Integers, weight_type: DataType, groups: int) -> str:
    """Add to the pipeline the function that streams a unit's weights from a memory on the chip or from DDR.

    Args:
        net: The netlist.
        site: The unit.
        stored: The weights as stored, of shape (PE, tiles, SIMD).
        weight_type: The type of a weight.
        groups: The number of times per frame that the unit reads all weights.

    Returns:
        The name of the stream of weights.
    """
    block, fold = site.block, site.fold
    stream = net.wire(f"weights_of_{block.name}", carrier(weight_type, stored.shape[0] * stored.shape[2]))
    sizes = (groups, stored.shape[1], stored.shape[0], stored.shape[2], c.weight_type(weight_type))
    name, ends = f"stream_{block.name}", [("out", stream)]
    if fold.memory == "decoupled" and fold.ram != "uram":
        call = Call("stream_weights", "weights.h", (*sizes, RAM[fold.ram]))
        store = Store((_weights(net, block, stored, weight_type),))
        net.add(name, call, ends, f"weights of {block.name} from {fold.ram} memory", store)
        return stream
    image = weight_image(stored, weight_type.bits, WEIGHT_BEAT_BYTES)
    net.images.append(image)
    beats = image.size // WEIGHT_BEAT_BYTES
    port = WeightPort(f"weights_{block.name}", f"memory_beat_t<{WEIGHT_BEAT_BYTES}>", beats)
    once = fold.memory == "decoupled"
    call = Call("load_weights" if once else "fetch_weights", "weights.h", (*sizes, WEIGHT_BEAT_BYTES))
    reason = f"weights of {block.name} from DDR, once per {'start' if once else 'frame'}"
    net.add(name, call, ends, reason, Store(weight_ports=(port,), per_frame=not once))
    return stream


# --- units without weights -------------------------------------------------------------------------------------


def activate(net: Netlist, site: Site, op: g.Activate) -> None:
    """Add to the pipeline the function of an activation that is not part of a unit."""
    channels, height, width = net.map_in(site)
    store = Store((net.activation(site, op.activation, channels),))
    sizes = (height * width, channels, site.fold.pe, site.fold.m, c.value_type(net.datatype_in(site)))
    net.add(site.block.name, Call("activate", "activate.h", sizes), site.ends, "an activation", store)


def global_pool(net: Netlist, site: Site, op: g.GlobalPool) -> None:
    """Add to the pipeline a global pool: the sum of each channel over the map, then an activation."""
    channels, height, width = net.map_in(site)
    datatype, fold = net.datatype_in(site), site.fold
    bits = max(2, (height * width * magnitude(datatype)).bit_length() + 1)
    store = Store((net.activation(site, op.activation, channels),))
    sizes = (height * width, channels, fold.pe, fold.m, c.value_type(datatype), bits, RAM[fold.ram])
    net.add(site.block.name, Call("global_pool", "global_pool.h", sizes), site.ends, "the sum over the map", store)


def label_select(net: Netlist, site: Site, op: g.LabelSelect) -> None:
    """Add to the pipeline a top-k over channels, which writes channel indices, and values if it has a second output."""
    channels, height, width = net.map_in(site)
    sizes = (height * width, channels, site.fold.pe, op.k, c.value_type(net.datatype_in(site)))
    outs = zip(("labels", "values"), site.writes, strict=False)
    reason = f"the {op.k} greatest of {channels} channels, {site.fold.pe} channels per cycle"
    net.add(site.block.name, Call("label_select", "label_select.h", sizes), [("in", site.reads[0]), *outs], reason)


def softmax(net: Netlist, site: Site, op: g.Softmax) -> None:
    """Add to the pipeline a softmax over the channels of each position."""
    channels, height, width = net.map_in(site)
    sizes = (height * width, channels, site.fold.pe, c.value_type(net.datatype_in(site)))
    reason = f"softmax over {channels} channels, {site.fold.pe} channels per cycle, method {op.method}"
    if op.powers is None:
        net.add(site.block.name, Call("softmax_argmax", "softmax.h", sizes), site.ends, reason)
        return
    name = f"{site.block.name}_powers"
    powers = c.powers(op.powers, net.datatype_in(site).low if op.method == "latency" else 0, site.fold.pe)
    net.constants.append(powers.constant(name, f"{site.block.name}: powers of e"))
    call = Call("softmax", "softmax.h", (f"SOFTMAX_{op.method.upper()}", *sizes, RAM[site.fold.ram]))
    net.add(site.block.name, call, site.ends, reason, Store((name,)))


def join(net: Netlist, site: Site, op: g.Add) -> None:
    """Add to the pipeline the value-by-value sum of maps, each multiplied by its factor (residual add)."""
    fold = site.fold
    channels, height, width = net.map_in(site)
    datatypes = [kind.datatype for kind in net.graph.inputs_of(site.block)]
    terms = list(zip(datatypes, op.multipliers, strict=True))
    greatest = sum(magnitude(datatype) * factor for datatype, factor in terms)
    store = Store((net.activation(site, op.activation, channels),))
    texts = (f"term_t<{c.value_type(datatype)}, {factor}>" for datatype, factor in terms)
    sizes = (height * width, channels, fold.pe, fold.m, max(2, greatest.bit_length() + 1), *texts)
    ends = [*((f"in{i}", name) for i, name in enumerate(site.reads)), ("out", site.writes[0])]
    net.add(site.block.name, Call("add", "elementwise.h", sizes), ends, "adds maps value by value", store)


def product(net: Netlist, site: Site, op: g.Multiply) -> None:
    """Add to the pipeline the value-by-value product of two maps."""
    fold = site.fold
    channels, height, width = net.map_in(site)
    first, second = (kind.datatype for kind in net.graph.inputs_of(site.block))
    bits = (magnitude(first) * magnitude(second)).bit_length() + 1
    values = (c.value_type(first), c.value_type(second))
    sizes = (height * width, channels, fold.pe, fold.m, *values, bits, "multiply_op")
    ends = [*((f"in{i}", name) for i, name in enumerate(site.reads)), ("out", site.writes[0])]
    store = Store((net.activation(site, op.activation, channels),))
    call = Call("element_wise", "elementwise.h", sizes)
    net.add(site.block.name, call, ends, "multiplies two maps value by value", store)
