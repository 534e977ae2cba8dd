"""Comparison of claims with the vendor's reports: one row per claim, with a verdict, and advice if they differ.

``rows`` has the rows, and each kind of claim has one module. ``compare`` puts them together.
"""
