"""The reader of our own C++: nodes of tree-sitter's tree, then functions, variables, scopes, directives and constants.

The linter and the comparison with the vendor's reports use it.

Names are resolved as text: templates are not instantiated, and overloads are told apart by argument count.
An argument that is bound to a parameter pack is followed into it.
"""
