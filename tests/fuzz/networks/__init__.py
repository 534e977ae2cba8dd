"""Random networks that are read, quantised, mapped, generated, executed, traced and run by the host.

A case is a network with its target and its checks. ``case`` defines a case, and ``draw`` draws one from a seed and a
number. ``prepare`` writes the design of a case, and ``checks`` checks this design. ``trial`` tries one case in a
process of its own, ``shrink`` makes a failing case small, and ``run`` tries many cases and reports them.
"""
