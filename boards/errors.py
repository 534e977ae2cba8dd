"""All errors that the project raises on purpose; every room imports them from here.

The sentence of an error says what was required, what came, where, and what to do.
"""


class SystolicError(Exception):
    """Base of every error that this project raises on purpose."""


class BoardError(SystolicError):
    """A board file or a board fact is not usable."""


class NetworkError(SystolicError):
    """A model file (cfg, weights, names, npz …) is not usable; the sentence names file and line."""


class QuantiseError(SystolicError):
    """A network cannot be quantised as asked."""


class ScheduleError(SystolicError):
    """A layer or a network does not map onto the array, buffers or board."""


class GenerateError(SystolicError):
    """The generated folder cannot be made or written."""


class SimulationError(SystolicError):
    """The generated code cannot be compiled or executed."""


class PictureError(SystolicError):
    """A file is not a picture that can be used."""


class HostError(SystolicError):
    """The accelerator, on the board or simulated, did not do what the host asked."""
