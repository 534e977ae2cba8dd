"""Access to the board through pynq: the overlay, registers of a generated IP, the interrupt, buffers in DDR."""
