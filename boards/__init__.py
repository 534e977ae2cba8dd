"""The boards: a TOML file goes in, a frozen ``Board`` comes out, from which all other rooms take their numbers.

facts are the dataclasses, one a table of a file; reader and tables read and check it; clocks works out which PL clocks
there are; errors are those of the whole project, since every room may import this one.
templates renders generated text, for the rooms that write sources. Open board first.
"""
