"""What a vendor's tools say of a design, beside what the design claims.

``reading`` turns the reports of Vitis HLS and Vivado into frozen facts, ``claims`` reads what the design's own sources
and manifest declare, ``comparison`` lays one beside the other and says what to do, ``report`` shows it. ``tool`` runs
Vitis HLS where it is there, on the whole or on one function. docs/how-to/first_hour_with_vitis.md explains every line.
"""
