"""Claim beside fact, with a verdict and what to do where they differ: rows of values, and one module a kind of
claim."""
