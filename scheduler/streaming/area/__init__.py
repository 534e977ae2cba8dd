"""Estimates the board resources of a folding before any vendor tool runs."""
