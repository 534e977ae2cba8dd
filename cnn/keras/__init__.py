"""Keras models → ONNX: a walk over their layers."""
