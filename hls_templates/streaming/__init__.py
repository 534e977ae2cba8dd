"""The streaming engine: C++ headers of its blocks, and ``sources``, which writes the sources of one pipeline.

The blocks are in ``compute``, ``moving`` and ``ends``. ``arithmetic`` has the datatypes, products and activations that
they use, and ``stream`` has the words of streams and the loops and memories that blocks share.
"""
