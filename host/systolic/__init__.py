"""A systolic design on the host: maps in DDR, and a start of the accelerator a batch of frames, which may be one."""
