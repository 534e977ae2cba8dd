"""The streaming dataflow mapping: every layer its own hardware, folded to a frame rate."""
