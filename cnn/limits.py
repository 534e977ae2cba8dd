"""Limits for the size of a network, in all file formats. Each is checked before memory of that size is allocated."""

MAX_SIDE = 1 << 16
"""The most rows or columns of a picture, or samples of a signal: one second of audio has 48,000 samples."""
MAX_RATIO = 1 << 13
"""The greatest numerator or denominator of a resize factor.

A finer fraction would only reproduce the rounding error of a float.
"""
MAX_KERNEL = 64
"""The most rows or columns of a window that is built while a file is read, for resizing and for borders."""
MAX_WINDOW, MAX_PLACES = (1 << 12) - 1, 1 << 14
"""The most rows or columns of a window in a file, including dilation, and the greatest product of the two."""
MAX_DILATED = 1 << 26
"""The most weights of a dilated convolution, counted with the zeros between its taps: 256 MiB of float32.

The limit that follows from the file's size (cnn.onnx.layers) is often lower.
"""
MAX_PADDING = (1 << 12) - 1
"""The most rows or columns of padding on one side of a map: a pass of the array has 12 bits for them."""
MAX_PADDED = 1 << 27
"""The most values of a map with its padding."""
MAX_LAYERS = 512
MAX_CHANNELS = 1 << 16
MAX_MAP = 1 << 26
"""The most values of one layer's output."""
MAX_MAPS = 1 << 31
"""The most values of all layers' outputs together. YOLOv4-P6 at 1280 × 1280 has five eighths of this."""
MAX_WEIGHTS = 1 << 28
"""The most weights of a network: 1 GiB of float32."""
