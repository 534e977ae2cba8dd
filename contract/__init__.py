"""The contract between the generator, the engines and the host: the systolic array's geometry and its layer program.

Every other package of the project may import this one. It imports only the standard library, numpy, and the errors and
ranges of ``boards``.
"""
