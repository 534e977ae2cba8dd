"""What the generator, the engines and the host agree on: the geometry of the systolic array and its layer program.

Every other room may import this one. It needs the standard library and numpy, and of ``boards`` only the errors.
"""
