"""The options of each command as data: one module per section of the help, with a ``Form`` for each command.

Help and completion read these modules and nothing else, so they import no room and no package. ``form`` is the type of
a command's options, ``common`` holds options of several sections.
"""
