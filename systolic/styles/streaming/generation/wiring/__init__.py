"""The top function of a design: each block of the folding calls functions of hls_templates/streaming."""
