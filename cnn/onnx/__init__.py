"""ONNX files: a float graph goes in, a float network (cnn.network) comes out.

file opens what came, within bounds, and makes it one file that stands alone; graph is what a file says, with numpy
arrays for its constants; layers is the network while it grows; operators has a function for each ONNX operator, shapes
those that only move or rename values, windows where a kernel slides, constants works out what depends on no picture;
network walks the graph and says of every operator that was not taken why. Open network first: ``read_onnx`` runs the
rest.
"""
