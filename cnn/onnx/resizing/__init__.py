"""Resize and Upsample: where their outputs lie, and the layers that give these."""
