"""The streaming style under the roof: folding → design, execution, time."""
