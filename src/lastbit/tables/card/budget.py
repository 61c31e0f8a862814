"""A budget: what all answers about a table together may cost, and how that is kept.

Plain sums are kept of epsilon, of epsilon and delta, or of rho. The two filters of `privacy` keep
(epsilon, delta) for answers whose prices are chosen from earlier answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib import import_module
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from lastbit.errors import InvalidParameter
from lastbit.exact import Number, probability, rational
from lastbit.privacy import SHARE_KEPT, GaussianFilter, MomentFilter, moment_filter

Kind: TypeAlias = Literal["pure", "approx", "zcdp", "filter", "gaussian"]
_MEANT: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "pure": ("epsilon",),
        "zcdp": ("rho",),
        **dict.fromkeys(("approx", "filter", "gaussian"), ("epsilon", "delta")),
    }
)
FILTERS = ("filter", "gaussian")
"""Kinds of budget that are kept by a filter: prices may be chosen along the way."""


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Budget:
    """What all answers together may cost: epsilon, epsilon and delta, or rho.

    These decide the kind, which need not be named. Plain sums are kept of the first three kinds. A
    budget of the kind "filter" is (epsilon, delta) for answers of every price, kept by the moment
    filter (`privacy/filter.py`); `order` and `delta_kept` are its c and delta', and None for those
    that suit epsilon and delta. One of the kind "gaussian" is kept by the Gaussian filter
    (`privacy/gaussian_filter.py`), which has no order; a price in rho is then that of Gaussian
    noise.

    >>> Budget(epsilon=3).kind, Budget(epsilon=3, delta="1e-6").kind, Budget(rho="0.5").kind
    ('pure', 'approx', 'zcdp')
    >>> Budget(kind="filter", epsilon=Fraction(3), delta=Fraction(1, 10**6)).fixed().order
    Fraction(799, 100)
    """

    kind: Kind
    epsilon: Fraction
    delta: Fraction
    rho: Fraction
    order: Fraction | None
    delta_kept: Fraction | None

    def __init__(
        self,
        *,
        kind: Kind | None = None,
        epsilon: Number = 0,
        delta: Number = 0,
        rho: Number = 0,
        order: Number | None = None,
        delta_kept: Number | None = None,
    ) -> None:
        numbers = {"epsilon": epsilon, "delta": delta, "rho": rho}
        fields: dict[str, Any] = {name: rational(n, name) for name, n in numbers.items()}
        for name, number in (("order", order), ("delta_kept", delta_kept)):
            fields[name] = None if number is None else rational(number, name)
        if kind is None:
            kind = "zcdp" if fields["rho"] else "approx" if fields["delta"] else "pure"
        for name, value in {"kind": kind, **fields}.items():
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in _MEANT:
            raise InvalidParameter(
                "budget", problem="is of an unknown kind", remedy="declare epsilon, or rho"
            )
        for name in ("epsilon", "delta", "rho"):
            value = getattr(self, name)
            if (value > 0) != (name in _MEANT[self.kind]) or value < 0:
                problem = f"does not suit a budget of kind {self.kind}"
                remedy = f"declare {' and '.join(_MEANT[self.kind])}, above 0, and no other price"
                raise InvalidParameter(f"budget: {name}", problem=problem, remedy=remedy)
        probability(self.delta, "budget: delta", one=False, remedy="declare, say, 1e-6")
        if self.kind == "gaussian" and self.order is not None:
            problem, remedy = "is not for the Gaussian filter", "leave it out"
            raise InvalidParameter("budget: order", problem=problem, remedy=remedy)
        if self.kind in FILTERS:
            try:
                self.filter()
            except InvalidParameter as error:
                name, problem = f"budget: {error.parameter}", error.problem
                raise InvalidParameter(name, problem=problem, remedy=error.remedy) from None
        elif self.order is not None or self.delta_kept is not None:
            problem, remedy = "is not kept by the filter", "leave order and delta_kept out"
            raise InvalidParameter("budget", problem=problem, remedy=remedy)

    def filter(self) -> MomentFilter | GaussianFilter:
        """The filter that keeps a budget of this kind; no other has one."""
        if self.kind == "gaussian":
            kept = self.delta * SHARE_KEPT if self.delta_kept is None else self.delta_kept
            return GaussianFilter(epsilon=self.epsilon, delta=self.delta, delta_kept=kept)
        if self.kind != "filter":
            problem, remedy = "is kept by plain sums", 'declare accounting = "filter"'
            raise InvalidParameter("budget", problem=problem, remedy=remedy)
        return moment_filter(self.epsilon, self.delta, order=self.order, delta_kept=self.delta_kept)

    def fixed(self, kept: Budget | None = None) -> Budget:
        """The budget with order and delta_kept in numbers: what an account has, if it has them.

        They are fixed when an account comes under the filter, and stay when its budget changes.
        """
        if self.kind not in FILTERS:
            return self
        like: Any = self.filter() if kept is None or kept.kind != self.kind else kept
        share = like.delta_kept
        if self.delta_kept is None and share is not None and share >= self.delta:
            problem = "is not above the share that the account keeps for answers with a delta"
            least = import_module("lastbit.exact.written").shown(share).strip("'")
            remedy = f"declare more than {least}: that share is fixed"
            raise InvalidParameter("budget: delta", problem=problem, remedy=remedy)
        return replace(
            self,
            order=getattr(like, "order", None) if self.order is None else self.order,
            delta_kept=like.delta_kept if self.delta_kept is None else self.delta_kept,
        )


def budgets_agree(kept: Budget | None, declared: Budget | None) -> bool:
    """Whether the budget that a ledger has is the one that is declared, where that says anything.

    >>> from dataclasses import replace
    >>> declared = Budget(kind="filter", epsilon=Fraction(3), delta=Fraction(1, 10**6))
    >>> budgets_agree(replace(declared, order=Fraction(5)).fixed(), declared)
    True
    """
    if declared is None or kept is None:
        return kept == declared
    try:
        return kept == declared.fixed(kept)
    except InvalidParameter:  # a delta that the account cannot have: certainly another budget
        return False
