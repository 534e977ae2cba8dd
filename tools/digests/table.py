"""The designs whose digests are kept, one row each, chosen so that every two properties occur together in some design.

For systolic rows the properties are engine, bits, DSPs, place of the maps, batch, board and network. Not every network
is combined with every board, nor with every use of the DSPs, because that would need too many designs. Streaming rows
cover every network, every board and every number of bits. Their foldings were drawn at random, or found by a search.
``tests/tools/test_digest_table.py`` checks these properties.

Schedules and foldings are files in ``mappings/``, so that a change of a search changes no digest.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One design.

    Attributes:
        network: Name of a file in ``networks/``, or of a network in ``onnx_networks.py``.
        style: "systolic" or "streaming".
        engine: "hls" for C++, "rtl" for SystemVerilog.
        bits: Bits of weights and activations for the calibration. 0 if the file has its own integers.
        board: Name of the board.
        dsps: "plain", "double" for DSPs at twice the clock, or "six" for six products per DSP.
        maps: "chip" if maps may stay on chip, "ddr" if all maps are stored in DDR, "stream" in a pipeline.
        batch: Frames per start.
        choice: How the mapping was found: an array with its loop order, or the search for a folding.
    """

    network: str
    style: str
    engine: str
    bits: int
    board: str
    dsps: str = "plain"
    maps: str = "stream"
    batch: int = 1
    choice: str = ""

    @property
    def name(self) -> str:
        """The design's unique name, made of its properties."""
        parts = [self.style if self.style == "streaming" else self.engine, self.network.replace("_", "-")]
        parts += [f"int{self.bits}"] if self.bits else []
        parts += [self.dsps] if self.dsps != "plain" else []
        parts += [f"batch{self.batch}"] if self.batch > 1 else []
        parts += [self.maps] if self.maps != "stream" else []
        return "-".join([*parts, self.board])


def _systolic(row: str) -> Row:
    engine, bits, dsps, maps, batch, board, network, choice = row.split()
    return Row(network, "systolic", engine, int(bits), board, dsps, maps, int(batch), choice)


def _streaming(row: str) -> Row:
    bits, board, network, choice = row.split()
    return Row(network, "streaming", "hls", int(bits), board, choice=choice)


# engine, bits, DSPs, maps, batch, board, network, array and loop order
_SYSTOLIC = """
hls  4  plain  ddr  2 pynq-z2    chain       4x8x8
hls  16 plain  chip 2 aup-zu3    chain       4x8x4
hls  4  six    chip 1 zcu102     functions   4x12x8
hls  8  plain  chip 2 aup-zu3    functions   3x8x8
hls  16 plain  chip 1 kv260      functions   4x8x4:weights-resident
hls  16 plain  chip 2 ultra96-v2 gates       2x8x8
hls  4  six    ddr  2 zcu104     groups      4x12x8
hls  16 plain  chip 1 kr260      groups      4x4x4
hls  8  plain  ddr  1 kv260      residual    4x16x8
hls  16 plain  ddr  1 pynq-z2    residual    2x4x4
hls  0  plain  chip 1 zcu104     seven_bits  8x8x4
hls  4  six    ddr  1 aup-zu3    spread      2x24x8:inputs-resident
hls  0  plain  ddr  1 zcu102     zero_points 4x8x4
hls  8  plain  ddr  1 ultra96-v2 gates       4x8x8:streamed
hls  16 plain  ddr  1 pynq-z2    padded      2x4x4
hls  4  plain  ddr  1 ultra96-v2 padded      4x8x8
rtl  8  double chip 1 pynq-z2    chain       4x8x8
rtl  4  six    ddr  1 ultra96-v2 functions   4x12x8
rtl  4  six    ddr  1 kr260      gates       3x24x8
rtl  8  double ddr  1 ultra96-v2 gates       4x8x8
rtl  8  plain  ddr  2 zcu102     groups      5x8x8:weights-resident
rtl  4  six    chip 2 kv260      residual    2x24x8
rtl  0  double ddr  2 kr260      seven_bits  4x8x4
rtl  4  double chip 2 kv260      spread      4x8x8
rtl  8  double chip 2 zcu102     spread      4x16x8
rtl  16 double ddr  2 zcu104     spread      2x8x4:inputs-resident
rtl  0  double chip 2 aup-zu3    zero_points 4x8x4
rtl  16 plain  chip 1 zcu104     functions   4x8x4:streamed
rtl  16 plain  ddr  1 zcu102     chain       2x4x4
rtl  8  double chip 2 kv260      padded      4x8x8
"""

# bits, board, network, folding
_STREAMING = """
4  pynq-z2    chain           drawn
16 kv260      chain           greedy:20000
8  zcu104     residual        drawn
4  ultra96-v2 residual        greedy:50000
16 zcu102     functions       drawn
8  kr260      functions       greedy:40000
4  aup-zu3    gates           drawn
8  pynq-z2    gates           greedy:10000
16 ultra96-v2 groups          drawn
8  kv260      groups          drawn
4  zcu104     spread          greedy:30000
8  zcu102     spread          drawn
0  aup-zu3    zero_points     drawn
0  kr260      seven_bits      drawn
0  ultra96-v2 four_bits       exact:100000
0  pynq-z2    four_bits       drawn
0  zcu104     one_bit         drawn
0  pynq-z2    one_bit         exact:100000
0  kv260      ternary         drawn
0  zcu102     ternary         greedy:60000
0  kr260      shares          drawn
0  zcu102     pointwise       greedy:50000
0  aup-zu3    shares_fast     greedy:50000
0  ultra96-v2 shares_greatest drawn
8  zcu104     added           greedy:60000
4  kr260      added           drawn
"""

DESIGNS = (*map(_systolic, _SYSTOLIC.split("\n")[1:-1]), *map(_streaming, _STREAMING.split("\n")[1:-1]))
"""Every design, in the order in which digests are made."""
