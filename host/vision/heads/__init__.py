"""Decoding of the outputs of networks, one module per family of heads. Start reading with head.py."""
