"""Networks: from a file with trained floats to integers that the hardware computes exactly.

``darknet``, ``exported``, ``onnx`` and ``keras`` read networks, and ``zoo`` has the built-in ones. ``zoo.seeded`` draws
random weights of a float network, and ``exported.seed`` draws the arrays of a network that was quantised by training.
``float_model`` computes the float graph of ``network``. Quantisation turns that graph into the integer graph of
``quantized``, which ``integer_model`` computes. ``integer_model`` is the golden model: it defines every output bit.

``ops`` defines the operations: the computation of each in both graphs, and the rules that it must satisfy.
``requantise`` defines the arithmetic contract, ``quantized_check`` checks a network, and ``stored`` reads and writes a
quantised network. Read ``network`` and ``quantized`` first, because all other packages of the project use their types.
"""
