"""How many steps lead to data where one record can move a statistic too far."""

from __future__ import annotations

from lastbit.errors import InvalidParameter
from lastbit.exact.rational import Number, rational
from lastbit.privacy.neighbours import CHANGE_ONE, Neighbours
from lastbit.sensitivity.near import near
from lastbit.sensitivity.statistics import Statistic, question

__all__ = ["distance_beyond"]


def distance_beyond(
    statistic: Statistic | str,
    data: object,
    *,
    bound: Number,
    lower: Number,
    upper: Number,
    neighbours: Neighbours = CHANGE_ONE,
) -> int:
    """The least k with U_k > bound; if there is none, one more than there are records.

    Theorem  it is 0 where LS > bound, as U_0 >= LS, and moves by at most 1 between neighbours: if
             U_k(x') > bound then U_(k+1)(x) >= U_k(x') > bound by (B). The number of records moves
             by at most 1 too, and the lesser of two such distances as well. U_k is constant from
             k = n on, and U_k <= U_(k+1), so it is found by bisection
    Source   Dwork, Lei 2009 (propose, test, release)
    Checked  tests/sensitivity/test_beyond.py

    >>> distance_beyond("median", [1, 2, 3, 3, 9], bound=2, lower=0, upper=10)
    1
    """
    limit = rational(bound, "bound")
    if limit < 0:
        raise InvalidParameter("bound", problem="is negative", remedy="pass a number from 0 up")
    asked, rows, relation = question(statistic, data, lower, upper, neighbours)
    least, greatest = 0, rows.count + 1
    while least < greatest:
        middle = (least + greatest) // 2
        if near(asked, rows, middle, relation) > limit:
            greatest = middle
        else:
            least = middle + 1
    return least
