"""The ``systolic`` command: ``main`` assembles the modules of ``commands``, one per command.

``options`` has the options of each command as data, and those of several sections in ``options/common.py``; ``output``
is how commands answer, ``progress`` what they report meanwhile.
"""
