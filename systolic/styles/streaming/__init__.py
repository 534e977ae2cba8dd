"""The streaming style: every layer has its own hardware, and a folding chooses the parallelism of each.

Read ``style`` first: each of its methods calls the module that does the work.
"""
