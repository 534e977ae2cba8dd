"""Executing a design: its sources compiled, run, compared with the golden model, and pictures through it to boxes."""
