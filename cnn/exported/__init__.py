"""Networks that were quantised by training: a topology (JSON) and float arrays (npz) become an integer network.

``topology`` holds the layers that a file describes. ``topology_file`` and ``layer_kinds`` read the file, and
``json_table`` checks its keys. ``integers`` has the formulas, and ``network`` applies them to each layer. ``seed``
draws random arrays. Open ``network`` first, because ``read_exported`` runs all of them.
"""
