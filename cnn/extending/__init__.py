"""Layers that packages of others add."""
