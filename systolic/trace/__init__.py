"""Cycle traces: a recorded execution of the generated C++, solved for a clock, a memory and FIFO depths."""
