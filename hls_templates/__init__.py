"""hls_templates."""
