"""The parts of a network's lowering that are the same for every array.

``layer`` defines a layer of the array. ``views`` and ``strips`` decide which feature maps are stored next to each other
in DDR, and ``copies`` inserts copies of maps that are needed in two places. ``additions`` finds the residual adds that
the Saver computes. ``dilated`` and ``reorg`` split one node into several layers. ``refusals`` lists the nodes that the
array cannot map. ``scheduler/systolic/layers.py`` lowers a network with them.
"""
