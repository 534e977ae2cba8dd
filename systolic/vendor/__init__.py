"""Comparison of the figures that a design declares or estimates (its claims) with reports of Vitis HLS and Vivado.

``claims`` reads the claims from the design's sources and manifest. ``reading`` turns the reports into frozen facts.
``comparison`` compares each claim with its fact and gives advice if they differ. ``report`` shows the result.

``tool`` runs Vitis HLS on the whole design, or on one function for which ``kernel`` writes a top. ``compare_design`` is
the entry point. docs/how-to/first_hour_with_vitis.md explains every line of the report.
"""
