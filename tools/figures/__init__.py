"""The figures and pictures of README and docs, made by the program itself: ``python -m tools.figures --help``.

``examples`` runs the commands that the pages show, and takes figures and pictures from them. ``sentences`` lists where
the pages say a figure. ``rooms`` draws the picture of the architecture. ``figures.json`` is the record of the last run;
a test compares the pages with it.
"""
