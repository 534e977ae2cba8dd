"""The ``systolic`` command: ``main`` assembles the modules of ``commands``, one a command.

``options`` has the options of each command as data, and those that several have in ``options/common.py``; ``output`` is
how commands answer, ``progress`` what they tell meanwhile.
"""
