"""Steps as sums of products, exactly: the meaning of + - * and of quotients by numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

from lastbit.verify.language import expressions as ex
from lastbit.verify.language.expressions import Expression, Table, Variable, table

Polynomial: TypeAlias = dict[tuple[int, ...], Fraction]
"""The factor of each product, which is named by the places of the steps that it is of."""

_ONE = Fraction(1)
_MOST_TERMS = 64


def linear_form(expression: Expression) -> dict[str, Fraction] | None:
    """Multiples of inputs, and of 1 under the name of nothing; None if it is something else.

    >>> u = Variable("u")
    >>> linear_form(ex.Subtract(ex.Multiply(ex.Constant(2), u), ex.Constant(1)))
    {'u': Fraction(2, 1), '': Fraction(-1, 1)}
    """
    steps = table(expression)
    found: dict[str, Fraction] = {}
    form = polynomials(steps)[-1]
    for term, share in ({(0, 0): _ONE} if form is None else form).items():
        factors = [steps.expressions[place] for place in term]
        if len(factors) > 1 or not all(isinstance(factor, Variable) for factor in factors):
            return None
        found["".join(name for factor in factors for name in ex.names(factor))] = share
    return found


def polynomials(steps: Table) -> list[Polynomial | None]:
    """Each step as a sum of products of inputs, logarithms, cosines and sines, by their places."""
    known: list[Polynomial | None] = []
    for place, (node, below) in enumerate(zip(steps.expressions, steps.below, strict=True)):
        under = [known[k] for k in below]
        form: Polynomial | None = None
        match node:
            case ex.Constant():
                form = {(): node.value}
            case Variable() | ex.Ln() | ex.Cos() | ex.Sin():
                form = {(place,): _ONE}
            case ex.Negate():
                form = _product(under[0], {(): -_ONE})
            case ex.Add() | ex.Subtract():
                way = _ONE if isinstance(node, ex.Add) else -_ONE
                one, two = under[0], _product(under[1], {(): way})
                if one is not None and two is not None:
                    form = {t: one.get(t, 0 * way) + two.get(t, 0 * way) for t in one | two}
            case ex.Multiply():
                form = _product(*under)
            case ex.Divide():
                by = {} if under[1] is None else under[1]
                if {*by} == {()} and by[()]:
                    form = _product(under[0], {(): 1 / by[()]})
        if form is not None:
            form = {term: share for term, share in form.items() if share}
        known.append(form if form is not None and _is_short(form) else None)
    return known


def _is_short(form: Polynomial) -> bool:
    """Whether it can be worked with: squares of squares of squares cannot."""
    bits = (max(x.numerator.bit_length(), x.denominator.bit_length()) for x in form.values())
    return (
        len(form) <= _MOST_TERMS
        and max(map(len, form), default=0) <= 8
        and all(count <= 1 << 18 for count in bits)
    )


def _product(one: Polynomial | None, two: Polynomial | None) -> Polynomial | None:
    if one is None or two is None or len(one) * len(two) > _MOST_TERMS**2:
        return None
    found: Polynomial = {}
    for a, share in one.items():
        for b, other in two.items():
            term = tuple(sorted((*a, *b)))
            found[term] = found.get(term, Fraction(0)) + share * other
    return found
