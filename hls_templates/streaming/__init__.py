"""The streaming engine: C++ headers of blocks, and ``sources``, which writes the constants and wires of one pipeline.

``arithmetic``, ``compute``, ``moving`` and ``ends`` have the blocks; ``stream`` what a stream carries and how a block
walks through a frame.
"""
