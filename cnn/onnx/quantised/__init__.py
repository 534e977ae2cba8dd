"""ONNX files that hold integers: QuantizeLinear and DequantizeLinear around float operators, and what says the same.

linear reads the two operators: what they quantise becomes the type of a layer's output, and of constants the floats are
taken, with their scale beside them. rewriting brings other forms to these two. integers makes the quantised network of
the float one and these types. Open integers last: it is where the zero points go.
"""
