"""The execution of a design: compile its sources, run them on images, and compare with the golden model."""
