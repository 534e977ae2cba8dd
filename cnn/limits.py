"""How large a network may be, whatever file it comes from: each is checked before anything of its size exists."""

MAX_SIDE = 1 << 16
"""Rows or columns of a picture, or samples of a signal: a second of sound has 48,000."""
MAX_RATIO = 1 << 13
"""Numerator or denominator of the factor that a map is resized by. Finer fractions would only be a float's rounding."""
MAX_KERNEL = 64
"""Rows or columns that windows are made of when a file is read: of pixels between others, of factors at the border."""
MAX_WINDOW, MAX_PLACES = (1 << 12) - 1, 1 << 14
"""Rows or columns of a window that a file has, those between its places too where it is dilated; and their product."""
MAX_DILATED = 1 << 26
"""Weights of a dilated convolution with the zeros between its places: 256 MiB of float32. What a file's size allows
(cnn.onnx.layers) is often less."""
MAX_PADDING = (1 << 12) - 1
"""Rows or columns on one side of a map: a pass of the array has 12 bits for them."""
MAX_PADDED = 1 << 27
"""Values of a map with the padding around it."""
MAX_LAYERS = 512
MAX_CHANNELS = 1 << 16
MAX_MAP = 1 << 26
"""Values of one layer's output."""
MAX_MAPS = 1 << 31
"""Values of all layers' outputs together: YOLOv4-P6 at 1280 × 1280 has five eighths of it."""
MAX_WEIGHTS = 1 << 28
"""1 GiB of float32."""
