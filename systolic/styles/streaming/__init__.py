"""The streaming style under the roof: hardware for every layer, by a folding.

Open ``style`` first: it names what the other modules do.
"""
