"""The files of UltraNet's own exporter: config.json and numbered arrays, or param.h and config.h, instead of our JSON.

config and headers read what is in them as layers of the exported form, numbered reads the arrays, writer writes both.
Open files first: ``translated`` gives what the rest of the project reads.
"""
