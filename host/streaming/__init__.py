"""A streaming design on the host: a frame is a packet into the pipeline through AXI DMA, and one out of it."""
