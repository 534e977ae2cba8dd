"""The wiring of the top function: the functions of hls_templates/streaming for each block, and the streams between."""
