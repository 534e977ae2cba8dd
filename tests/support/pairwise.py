"""Tables of cases that cover every pair of values of different axes, instead of the whole grid."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product
from typing import Any

Row = tuple[Any, ...]
_Places = tuple[int, ...]
_Pair = tuple[int, int, int, int]


def pairwise(allowed: Callable[..., bool] | None = None, /, **axes: Sequence[Any]) -> list[Row]:
    """Return rows, one value per axis in the order of the axes, that cover every pair of values of two axes.

    The choice is greedy and depends on the arguments alone, so that test names stay the same from run to run.

    Args:
        allowed: Called with one keyword argument per axis; rows for which it returns False are left out, and so are
            pairs that occur in no allowed row. None allows every row.
        axes: The values of each axis by its name. Values need not be hashable.

    Example:
        ``@pytest.mark.parametrize(("style", "bits"), pairwise(style=("systolic", "streaming"), bits=(4, 8, 16)))``
    """
    names, values = list(axes), [list(axis) for axis in axes.values()]

    def legal(places: _Places) -> bool:
        return allowed is None or allowed(**dict(zip(names, _row(values, places), strict=True)))

    lengths = [len(axis) for axis in values]
    if len(lengths) < 2:
        return [_row(values, places) for places in product(*map(range, lengths)) if legal(places)]
    open_pairs = dict.fromkeys(_all_pairs(lengths))
    rows: list[Row] = []
    while open_pairs:
        pair = next(iter(open_pairs))
        places = next(filter(legal, _completions(pair, lengths, open_pairs)), None)
        if places is None:
            del open_pairs[pair]
            continue
        rows.append(_row(values, places))
        for covered in _pairs_of(enumerate(places)):
            open_pairs.pop(covered, None)
    return rows


def _row(values: Sequence[Sequence[Any]], places: _Places) -> Row:
    return tuple(axis[place] for axis, place in zip(values, places, strict=True))


def _all_pairs(lengths: Sequence[int]) -> Iterator[_Pair]:
    for (left, left_length), (right, right_length) in combinations(enumerate(lengths), 2):
        for a, b in product(range(left_length), range(right_length)):
            yield left, a, right, b


def _pairs_of(places: Any) -> Iterator[_Pair]:
    for (left, a), (right, b) in combinations(sorted(places), 2):
        yield left, a, right, b


def _completions(pair: _Pair, lengths: Sequence[int], open_pairs: dict[_Pair, None]) -> Iterator[_Places]:
    """Yield every row that contains ``pair``. At each axis, the value that covers most open pairs is first."""
    left, a, right, b = pair
    yield from _complete({left: a, right: b}, lengths, open_pairs)


def _complete(chosen: dict[int, int], lengths: Sequence[int], open_pairs: dict[_Pair, None]) -> Iterator[_Places]:
    axis = next((axis for axis in range(len(lengths)) if axis not in chosen), None)
    if axis is None:
        yield tuple(chosen[axis] for axis in range(len(lengths)))
        return

    def covered(value: int) -> int:
        return sum(pair in open_pairs for pair in _pairs_of({**chosen, axis: value}.items()))

    for value in sorted(range(lengths[axis]), key=covered, reverse=True):
        yield from _complete({**chosen, axis: value}, lengths, open_pairs)
