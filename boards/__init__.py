"""The boards: a TOML file per board is read into a frozen ``Board``, from which all other packages take
their numbers.

``board`` is the place to start. ``facts`` has one dataclass per table of a file; the types of its fields are the file's
schema, by which ``reader`` and ``table`` read it. ``clocks`` computes the PL clocks.

``errors``, ``ranges`` and ``progress`` serve the whole project, because every package may import this one.
``templates`` renders generated text for the packages that write sources.
"""
