"""The host's driver of systolic designs: maps in DDR, and one start of the accelerator per batch of frames."""
