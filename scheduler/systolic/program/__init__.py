"""Schedule → what lies in DDR when a frame starts. Numbers are decided here, never in a template.

``maps`` where each feature map lies; ``passes`` the words of one pass, as the engine reads them; ``images`` weights and
requantisers in the order in which they stream; ``emit`` puts the three together into the program of a schedule.
Addresses count words of ``lanes`` values.
"""
