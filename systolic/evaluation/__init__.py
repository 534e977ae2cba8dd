"""Evaluation of a network on labelled images: the float network, the quantised network and the executed design.

``layouts`` reads images and labels in the layouts of public datasets. ``frames`` computes one image or many, and
``evaluate`` evaluates a whole set. ``precision`` computes average precision, and ``quality`` computes every metric.
``fidelity`` measures the SQNR of the quantised outputs. ``mixed`` chooses the bits per layer. ``report`` writes the
result as JSON, as text and as drawings of the images on which float and integers differ most.
"""
