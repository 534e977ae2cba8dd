"""The options of each command as data: one module per command, with a ``FORM``.

Help and completion read these modules and nothing else, so they import no room and no package. ``form`` is their type,
``common`` holds options of several commands.
"""
