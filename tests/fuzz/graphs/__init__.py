"""Random graphs of ONNX operators."""
