"""The exporter of Keras models to ONNX files. Start reading in ``export``: ``write_model`` walks over the layers."""
