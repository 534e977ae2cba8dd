"""The ``systolic`` command: ``main`` assembles the modules of ``commands``, one a command.

``arguments`` are the options that several commands have, ``output`` how they answer, ``progress`` what they tell
meanwhile.
"""
