"""Post-training quantisation: a float network and some pictures become integers that keep the arithmetic contract.

docs/explanation/quantisation.md describes the contract. ``calibration`` observes the range of each layer's values.
``batch_norm`` folds batch norms into weights. ``tensor_types`` and ``widths`` choose datatypes and scales, and
``quantise`` makes the integers. ``thresholds`` rewrites a requantiser as comparisons, and ``fidelity`` measures the
error. Open ``quantise`` first: commands call its ``quantise_format``.
"""
