"""The streaming style: every layer has its own hardware, and a folding sets the parallelism of each layer.

Read ``style`` first: each of its methods calls the module that does the work.
"""
