"""Pictures and boxes: a file to the network's input, its output to detections, and detections onto the picture."""
