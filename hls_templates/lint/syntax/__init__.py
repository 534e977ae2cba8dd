"""Generated C++ as the checks see it: nodes of tree-sitter's tree, then functions, variables, scopes and constants.

Names are resolved as text: templates are not instantiated, and overloads are told apart by argument count.
An argument that is bound to a parameter pack is followed into it.
"""
