"""Noisy numbers that may come, made of public facts alone: to try out the columns of an answer.

Law      rows in which every entry, bin and node is 0, 1, -1 or far out on either side, and every
         draw of a rank the first or the last candidate
Theorem  nothing of the data is in them: the plan has never seen it. So a plan whose columns cannot
         be made of them may be refused before anything is charged
Differs  they are examples, not all numbers that may come; those are tried at random by the tests
Checked  tests/release/test_rehearsal.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lastbit.kernel import Noisy
from lastbit.tables import Plan, RankPart, TreePart, weight_one

_FAR = 1 << 10


def rehearsed(plan: Plan) -> Iterator[Noisy]:
    """Noisy numbers close to 0, then far ones: the two may take different ways."""
    far = weight_one(plan.card) * _FAR
    yield pretended(plan, [0, 1, -1])
    yield pretended(plan, [far, -far])


def pretended(plan: Plan, numbers: Sequence[int]) -> Noisy:
    """What noise might give: for each number a row of which every entry is that number."""
    bins = {m.name: len(m.edges) - 1 for m in plan.measures}
    noisy = Noisy(keys=[() for _ in numbers])
    for measure in plan.measures:
        if measure.kind == "bins":
            noisy.bins[measure.name] = [[number] * bins[measure.name] for number in numbers]
        else:
            noisy.entries[measure.name] = list(numbers)
    for part in plan.parts:
        if isinstance(part, TreePart):
            empty = part.tree.sums([0] * bins[part.measure])
            noisy.trees[part.measure] = [
                [[number] * len(nodes) for nodes in empty] for number in numbers
            ]
        elif isinstance(part, RankPart):
            first = -1 if part.ends[0] else 0
            places = (first, first + part.candidates - 1)
            drawn = [places[number > 0] for number in numbers]
            noisy.ranks[part.aggregate, part.role] = drawn
    return noisy
