"""From a float network and some pictures to integers that keep the arithmetic contract.

The contract is in docs/explanation/quantisation.md. calibration observes the range of each layer's values, batch_norm
folds batch norms into weights, tensor_types and widths choose datatypes and scales, quantise makes the integers,
thresholds rewrites a requantisation as comparisons, fidelity measures what was lost. Open quantise first:
``quantise_format`` is what a command calls.
"""
