"""The streaming style: every layer has hardware of its own, whose parallelism a folding chooses.

Read ``style`` first: each of its methods calls the module that does the work.
"""
