"""Networks that were quantised by training: a topology (JSON) and float arrays (npz) go in, integers come out.

topology is what a file describes, topology_file and layer_kinds read it (json_table checks its keys), integers has the
formulas, network applies them, seed draws random arrays. Open network first: ``read_exported`` runs the rest.
"""
