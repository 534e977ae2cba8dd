"""Files of UltraNet's own exporter: config.json with numbered arrays, or param.h with config.h, instead of a topology
JSON.

``config`` and ``headers`` turn these files into layers of the exported form. ``numbered`` reads the arrays, and
``writer`` writes config.json and the arrays. Open ``files`` first: ``translated`` returns files of the exported form.
"""
