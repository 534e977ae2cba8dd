"""ONNX files that hold integers: QuantizeLinear and DequantizeLinear around float operators, and equivalent operators.

``linear`` reads these two operators. The quantised values give the type of a layer's output, and constants become
floats whose scale is stored next to them. ``operators`` expresses QLinearConv and similar operators by these two, and
``qonnx`` reads Quant and MultiThreshold. A ``mark`` holds the facts that a file states of a layer. ``integers`` makes
the quantised network from the float network and these types. Open ``integers`` last: it applies the zero points.
"""
