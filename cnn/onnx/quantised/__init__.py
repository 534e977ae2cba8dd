"""ONNX files that hold integers: QuantizeLinear and DequantizeLinear around float operators, and what says the same.

linear reads the two operators: what they quantise becomes the type of a layer's output, and of constants the floats are
taken, with their scale beside them. operators brings QLinearConv and its kind to these two, qonnx reads Quant and
MultiThreshold. mark is what a file says of a layer. integers makes the quantised network of
the float one and these types. Open integers last: it is where the zero points go.
"""
