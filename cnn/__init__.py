"""The network: from a file with trained floats to integers that the hardware computes exactly.

darknet, exported, onnx and keras read networks, zoo knows those that come with the project; zoo.seeded draws the
weights of a float network, exported.seed those of one that was quantised by training. They become the float graph of
network (float_model computes it) and, by quantisation, the integer graph of quantized. integer_model computes that and
so defines every bit of it for all other rooms. The package ops has the
operations: what each computes in both, and the rules that it keeps; requantise has the arithmetic contract,
quantized_check the rules of a network, stored its file. training made the network of models/shapes. Open network and
quantized first: other rooms read these two.
"""
