"""Control flow of a function: natural loops, the order of a loop's blocks, and the branches that a block depends on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Graph = Mapping[str, Sequence[str]]


def predecessors_of(successors: Graph) -> dict[str, list[str]]:
    """Return the predecessors of each block: the control-flow graph with its edges reversed."""
    sources: dict[str, list[str]] = {label: [] for label in successors}
    for label, ways in successors.items():
        for way in ways:
            sources[way].append(label)
    return sources


def innermost_loops(successors: Graph) -> dict[str, set[str]]:
    """Return the loops that contain no other loop: the label of each one's header, with its blocks, header included."""
    loops = natural_loops(successors)
    return {h: body for h, body in loops.items() if not any(second != h and second in body for second in loops)}


def natural_loops(successors: Graph) -> dict[str, set[str]]:
    """Return the natural loops of a control-flow graph: the label of each one's header, with its blocks, header
    included.

    An edge to a block that dominates the edge's start closes a loop. The first label is the entry of the function.
    """
    sources = predecessors_of(successors)
    dominator = _immediate_dominators(successors, sources)
    loops: dict[str, set[str]] = {}
    for label, ways in successors.items():
        for header in ways:
            if label in dominator and _dominates(header, label, dominator):
                body, waiting = loops.setdefault(header, {header}), [label]
                while waiting:
                    block = waiting.pop()
                    if block not in body:
                        body.add(block)
                        waiting += [block for block in sources[block] if block in dominator]
    return loops


def _dominates(header: str, label: str, dominator: Mapping[str, str]) -> bool:
    while label != header and dominator[label] != label:
        label = dominator[label]
    return label == header


def _immediate_dominators(successors: Graph, sources: Graph) -> dict[str, str]:
    """Return the immediate dominator of every block that the entry reaches; the entry dominates itself."""
    entry = next(iter(successors))
    order = forward(entry, set(successors), successors)
    rank = {label: number for number, label in enumerate(order)}
    dominator = {entry: entry}
    changed = True
    while changed:
        changed = False
        for label in order[1:]:
            ways = [block for block in sources[label] if block in dominator]
            nearest = ways[0]
            for way in ways[1:]:
                while way != nearest:
                    if rank[way] > rank[nearest]:
                        way = dominator[way]
                    else:
                        nearest = dominator[nearest]
            changed |= dominator.get(label) != nearest
            dominator[label] = nearest
    return dominator


def forward(header: str, body: set[str], successors: Graph) -> list[str]:
    """Return the labels of a loop's blocks, each after all blocks that lead to it within an iteration."""
    finished: list[str] = []
    visited = {header}
    stack = [(header, iter(successors[header]))]
    while stack:
        block, ways = stack[-1]
        step = next((way for way in ways if way in body and way not in visited), None)
        if step is None:
            finished.append(block)
            stack.pop()
        else:
            visited.add(step)
            stack.append((step, iter(successors[step])))
    return finished[::-1]


def deciding_blocks(order: Sequence[str], successors: Graph) -> dict[str, frozenset[str]]:
    """Return, for each block of a loop, the blocks whose branches decide whether an iteration executes it.

    A branch does not decide about a block that follows on both of its ways.

    Args:
        order: The blocks of the loop as ``forward`` returns them, the header first.
        successors: The control-flow graph.
    """
    header, body_blocks = order[0], set(order)
    ways_on = {label: [way for way in successors[label] if way in body_blocks and way != header] for label in order}
    certain = _certain(order, ways_on, successors, body_blocks)
    sources = predecessors_of(ways_on)
    deciding: dict[str, frozenset[str]] = {}
    for label in order:
        reached: set[str] = set()
        for block in sources[label]:
            reached |= deciding[block] | {block}
        deciding[label] = frozenset(
            block for block in reached if len(successors[block]) > 1 and label not in certain[block]
        )
    return deciding


def _certain(order: Sequence[str], ways_on: Graph, successors: Graph, body_blocks: set[str]) -> dict[str, set[str]]:
    """Return, for each block, itself and the blocks that an iteration always executes after it.

    No block is certain to follow a block that can end the loop or the iteration.
    """
    certain: dict[str, set[str]] = {}
    for label in reversed(order):
        ways = [certain[block] for block in ways_on[label]]
        exits = any(way not in body_blocks for way in successors[label])
        ends = any(way == order[0] for way in successors[label])
        shared = set.intersection(*ways) if ways and not exits and not ends else set()
        certain[label] = shared | {label}
    return certain
