"""The figures and pictures of README and docs, made by running the project: ``python -m tools.figures --help``.

``examples`` runs the commands shown on the pages, and reads figures and pictures from the results. ``sentences`` lists
the sentences that contain figures. ``rooms`` draws the picture of the architecture. ``figures.json`` is the record of
the last run; a test compares the pages with it.
"""
