"""When everything happens: a traced execution solved for a clock, a memory and FIFO depths."""
