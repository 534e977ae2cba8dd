"""The boards: a TOML file goes in, a frozen ``Board`` comes out, from which all other rooms take their numbers.

facts are the dataclasses, one per table of a file, whose types say what a file may say; reader and table read a file by
them;
clocks works out which PL clocks there are. errors and ranges are those of the whole project, since every room may
import this one, and templates renders generated text for the rooms that write sources. Open board first.
"""
