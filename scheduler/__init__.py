"""How a network is mapped onto a board: one mapping a style, both over the same facts of hardware.

``hardware`` has the facts. ``systolic`` chooses an array and tiles each layer on it; ``streaming`` gives each layer
hardware of its own and folds it to a frame rate. ``hand_edited`` helps both to read files that people edit. Numbers are
decided here, and nothing is generated.
"""
