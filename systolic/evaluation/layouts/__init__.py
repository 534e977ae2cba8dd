"""Readers of labelled image datasets: one module per layout. ``read`` finds out which layout a folder has."""
