"""Hardware facts that both styles use. Nothing in this package depends on a network or on a style.

- ``ddr``: the bandwidth and the latency of the board's DDR, and the parameters of the ports that read and write it.
- ``primitives``: the BRAMs, URAMs, LUTs and DSPs that memories, FIFOs and multipliers take.
- ``fifos``: the kind and the latency of the FIFO that Vitis HLS builds for a stream.
- ``energy``: the estimated energy per frame.
- ``budget``: the share of a board that a design may take.
- ``arithmetic``: integer division, rounded up.
"""
