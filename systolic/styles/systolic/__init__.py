"""The systolic style under the roof: one array for all layers, by a schedule.

Open ``style`` first: it names what the other modules do.
"""
