"""The reader of ONNX files: it makes a float network (cnn.network) from the graph of a file.

- ``file`` opens a file within limits and reads its external data into it. ``graph`` is the content of the file, with
  numpy arrays as constants. ``patterns`` replaces groups of operators by one operator each.
- ``network`` walks the graph and collects an error for every operator that cannot become a layer. ``layers`` is the
  network while it grows, and ``operators`` is the table with one function per ONNX operator.
- Each family of operators has a module: ``activations``, ``arithmetic``, ``pads``, ``pools``, ``reductions``,
  ``reordering``, ``resizing``, ``shapes`` and ``transposed``. ``sliding`` computes the positions of a kernel.
- ``inputs`` reads the network's input. ``selection`` and ``tails`` read the operators at its end. ``quantised`` reads
  files that hold integers.

Start reading in ``network``: ``read_onnx`` calls all the other modules.
"""
