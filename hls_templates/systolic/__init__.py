"""The systolic engine: its C++ headers, and ``sources``, which renders the parameters and the top function.

The headers are fixed and the same for all geometries. The data flow is Loader (read, load, feed) → PE array → Saver
(pool, requantise, save); all of them use types.h and pass.h.
"""
