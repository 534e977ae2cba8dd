"""The board as pynq shows it: the overlay, registers of a generated IP, the interrupt, buffers in DDR."""
