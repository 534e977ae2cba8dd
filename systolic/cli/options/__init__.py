"""The options of each command as data: one module per section of the help, with a ``Form`` for each command.

Help and completion read only these modules. They therefore import no other room and no package, so that help starts at
once. ``form`` is the type of a command's options, and ``common`` has options that several sections share.
"""
