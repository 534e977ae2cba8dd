"""Networks: from a file with trained floats to integers that the hardware computes exactly.

``darknet``, ``exported``, ``onnx`` and ``keras`` read networks, and ``zoo`` has the built-in ones. ``zoo.seeded`` draws
random weights of a float network, and ``exported.seed`` draws the arrays of a network that was quantised by training.
``float_model`` computes the float graph of ``network``. Quantisation turns that graph into the integer graph of
``quantized``, which ``integer_model`` computes. ``integer_model`` is the golden model: it defines every output bit.

``ops`` has the operations: what each computes in both graphs, and its rules. ``requantise`` has the arithmetic
contract, ``quantized_check`` the rules of a network, and ``stored`` the network's file. Open ``network`` and
``quantized`` first, because the other packages of the project read these two.
"""
