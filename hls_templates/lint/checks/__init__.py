"""What breaks a rule: each module yields the faults of one or two groups of rules.

``directives`` has groups 1 to 3, ``dataflow`` and ``channels`` group 4 over ``access`` (who reads and writes what),
``constructs`` group 5, ``pipelines`` what is inside a pipeline of group 6, ``names`` group 7, and ``memories`` and
``ports`` group 8 and what a pipeline does to memories and ports (6.3, 6.4), over ``uses`` (what surrounds the uses of a
variable).
"""
