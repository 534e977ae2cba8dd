"""The search: the best schedule of a stated space, proven by pricing or ruling out every geometry.

``space`` what is searched; ``problem`` for which workload on which board; ``task`` one geometry of it; ``bounds`` what
no candidate goes below; ``costs``, ``depths`` and ``solve`` one geometry solved whole; ``search`` all of them, on the
``workers``; ``pareto`` the front of frames/s and DSPs; ``runner_up`` and ``infeasible`` the sentences.
"""
