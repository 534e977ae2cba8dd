"""Limits of the frame rate of any engine on a board, derived from networks alone: ``python -m tools.bounds --help``.

``layers`` reads what each layer of a network must compute and move. ``limits`` has the formulas, and ``engines`` runs
the schedule search of the present engine to compare with. ``report`` puts them into one object.
"""
