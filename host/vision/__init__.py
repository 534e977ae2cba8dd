"""Pictures and boxes: reading a file into the network's input, decoding its output, and drawing detections."""
