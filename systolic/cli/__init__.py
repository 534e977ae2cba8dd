"""The ``systolic`` command: one module a command, each with its arguments, its callable and its text.

``main`` only assembles them. ``arguments`` are the options that several commands have, ``output`` how they answer,
``progress`` what they tell meanwhile.
"""
