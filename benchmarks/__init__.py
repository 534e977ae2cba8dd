"""Measured now and then, not in every gate: searches, models against traces, and how readable the code is."""
