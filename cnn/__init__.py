"""The network: from a file with trained floats to integers that the hardware computes exactly.

darknet and exported read networks from files, zoo knows those that come with the project. They become the float graph
of network (float_model computes it) and, by quantisation, the integer graph of quantized. integer_model computes that
and so defines every bit of it for all other rooms; quantized_check holds its rules, quantized_file stores it. training
made the network of models/shapes. Open network and quantized first: these two graphs are what leaves this room.
"""
