"""Folding → functions and streams: each block becomes a function of hls_templates/streaming, or a few."""
