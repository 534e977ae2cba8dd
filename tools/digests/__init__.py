"""Digests of small designs: what is generated, what it computes, how long it takes.

``python -m tools.digests check`` tells whether a change of the code changes a design.
"""
