"""The tiled systolic style: which array, and how each layer of a network is tiled on it.

``array`` the geometry and its rules; ``layers``, ``workload``, ``shape``, ``tiling``, ``schedule`` what is decided,
from the network's layers to a whole schedule; ``needs`` what layers need of the array; ``rules``, ``on_chip`` what is
legal; ``engines/`` the two engines as values; ``model/`` what a schedule costs in cycles and bytes; ``area/`` what
the array takes of a board; ``search/`` the best schedule, with proof; ``program/`` the numbers that the engine reads;
``schedule_file`` schedules as JSON; ``baselines`` published schedules to compare with.
"""
