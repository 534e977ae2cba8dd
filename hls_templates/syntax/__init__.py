"""Reads this project's own C++ into functions, variables, scopes, directives and constants, by tree-sitter.

The linter and the comparison with the vendor's reports use it.

Names are resolved as text. Templates are not instantiated, and overloads are distinguished by their number of
arguments. An argument that is bound to a parameter pack is followed into the callee.
"""
