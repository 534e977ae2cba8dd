"""The ``systolic`` command line.

``main`` parses a command line and runs one module of ``commands``. ``table`` lists the commands, and ``options`` has
their options as data. ``output`` prints results, ``messages`` prints notes and errors, and ``progress`` shows the step
that is running.
"""
