"""The search for the best schedule of a network on a board, with a proof: every geometry is priced or ruled out.

``space`` states the arrays that are searched, and the goal. ``problem`` is a network, a board and a space together.
``task`` is one geometry of a problem. ``bounds`` computes the cycles and bytes that no candidate of a geometry can go
below. ``costs``, ``depths`` and ``solve`` find the best candidate of one geometry. ``search`` visits all geometries,
and ``workers`` distributes them over processes. ``pareto`` finds the Pareto front of frames/s and DSPs. ``runner_up``
and ``infeasible`` write the sentences that explain a tiling, or why nothing fits.
"""
