"""How large a network may be, whatever file it comes from: each is checked before anything of its size exists."""

MAX_SIDE = 8192
"""Of the picture."""
MAX_KERNEL = 64
MAX_LAYERS = 512
MAX_CHANNELS = 1 << 16
MAX_MAP = 1 << 26
"""Values of one layer's output."""
MAX_MAPS = 1 << 31
"""Values of all layers' outputs together: YOLOv4-P6 at 1280 × 1280 has five eighths of it."""
MAX_WEIGHTS = 1 << 28
"""1 GiB of float32."""
