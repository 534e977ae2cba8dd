"""Cycle traces: a recorded execution of the generated code, solved for a clock, a memory and FIFO depths."""
