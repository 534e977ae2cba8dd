"""Random networks through everything: read, quantised, mapped, generated, executed, traced, and run by the host.

case says what a case is, draw draws one from a seed and a number, prepare takes it to a written design, checks has what
must hold of that, trial tries one case in a process of its own, shrink makes a failure small, campaign goes through
many and reports.
"""
