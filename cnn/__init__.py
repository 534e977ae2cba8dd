"""The network: from a file with trained floats to integers that the hardware computes exactly.

darknet, exported, onnx and keras read networks, and zoo has those that come with the project. zoo.seeded draws the
weights of a float network, exported.seed those of one that was quantised by training. They become the float graph of
network, which float_model computes, and by quantisation the integer graph of quantized, which integer_model computes.
integer_model so defines every bit of it for all other rooms.

ops has the operations: what each computes in both graphs, and the rules that it keeps. requantise has the arithmetic
contract, quantized_check the rules of a network, and stored its file. Open network and quantized first, since other
rooms read these two.
"""
