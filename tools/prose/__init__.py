"""A reader of the project's prose: it finds words and forms of sentences that a reader of the field stumbles over.

``texts`` finds the docstrings, comments and sentences of a file, ``rules`` judges each, ``rooms`` lists the folders
that must be clean and the few exceptions. The command is ``python -m tools.prose``.
"""
