"""The systolic engine: its C++ headers, and ``sources``, which writes the parameters and top function of one geometry.

Loader (read, load, feed) → PE array → Saver (pool, requantise, save); types.h and pass.h are what all of them share.
"""
