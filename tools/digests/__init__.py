"""Digests of small designs: their generated files, computed integers and cycles.

``python -m tools.digests check`` reports whether a change of the code changes a design.
"""
