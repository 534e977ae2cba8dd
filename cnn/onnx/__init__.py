"""ONNX files: a float graph goes in, a float network (cnn.network) comes out.

- ``file`` opens a file within bounds and makes it one that stands alone, ``graph`` is its content with numpy arrays for
  the constants, and ``patterns`` puts one operator in the place of several.
- ``network`` walks the graph and says of every operator that was not taken why. ``layers`` is the network while it
  grows, and ``operators`` has the table of a function for each ONNX operator.
- A family of operators has a module: ``activations``, ``arithmetic``, ``pads``, ``pools``, ``reductions``,
  ``reordering``, ``resizing``, ``shapes`` and ``transposed``; ``sliding`` says where a kernel slides.
- ``inputs``, ``selection`` and ``tails`` are what a network begins and ends in; ``quantised`` reads files that hold
  integers.

Open ``network`` first: ``read_onnx`` runs the rest.
"""
