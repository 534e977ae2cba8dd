"""Networks for other tools: contest writes the files of UltraNet's own accelerator (cnn.onnx.quantised writes ONNX)."""
