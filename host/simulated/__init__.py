"""A simulated board that pynq's own classes can drive, so that the same host code runs without hardware."""
