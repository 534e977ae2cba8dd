"""The checks of the linter. Each module yields the faults of one or two groups of rules.

- ``directives``: groups 1 to 3.
- ``dataflow`` and ``channels``: group 4. They use ``access``, which finds the variables that a statement reads and
  writes.
- ``constructs``: group 5.
- ``pipelines``: rules 6.1 and 6.2, loops inside pipelines.
- ``names``: group 7.
- ``memories`` and ``ports``: group 8, and rules 6.3 and 6.4. They use ``uses``, which finds the uses of a variable and
  the loops around them.
"""
