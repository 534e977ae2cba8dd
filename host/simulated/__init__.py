"""A board without a board: what answers to pynq's own classes; the same host code runs on it."""
