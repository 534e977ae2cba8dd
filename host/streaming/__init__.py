"""The host's driver of streaming designs: AXI DMA sends one packet per frame, and receives one."""
