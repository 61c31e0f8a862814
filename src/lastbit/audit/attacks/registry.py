"""Every attack by its name, and which targets it suits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from lastbit.audit.attacks.floats import low_bits, polar_pairs, precision, preimage
from lastbit.audit.attacks.noise import forked, threshold, timing
from lastbit.audit.attacks.sums import narrow_sum, not_a_number, overflow, reordering
from lastbit.audit.result import Verdict
from lastbit.audit.targets.target import SumTarget, Target
from lastbit.errors import InvalidParameter
from lastbit.exact import Number

FLOATS = ("float64",)
INTEGERS = ("int32", "int64")


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack: what it looks for, where it was published, and what a target must tell it."""

    name: str
    attack: Callable[..., Verdict]
    looks_for: str
    source: str
    needs: tuple[str, ...] = ()
    """Fields of a `Target` that may not be None."""
    sums: tuple[str, ...] = ()
    """For an attack on a `SumTarget`: the kinds of records."""

    def suits(self, target: Target | SumTarget) -> bool:
        """Whether the attack can run on this target at all."""
        if isinstance(target, SumTarget):
            return target.dtype.name in self.sums
        return not self.sums and all(getattr(target, need) is not None for need in self.needs)


_HANEY, _JIN, _CASACUBERTA = "Haney et al. 2022", "Jin et al. 2021", "Casacuberta et al. 2022"
_PREIMAGE = "outputs that no uniform number turns into"
_POLAR = "pairs of normals that no point turns into"
_BITS, _PAPER = "last bits that are the secret's", "paper 000, Example 1.1"
_NARROW = "float sums that move further than a record can"
_ORDER = "float sums that depend on the order of records"
_ALL = (
    Attack("preimage", preimage, _PREIMAGE, "Mironov 2012", ("answers", "scale")),
    Attack("precision", precision, "bits too fine for the larger answer", _HANEY, ("answers",)),
    Attack("polar-pairs", polar_pairs, _POLAR, _JIN, ("answers", "scale")),
    Attack("low-bits", low_bits, _BITS, _PAPER, ("answers", "step")),
    Attack("threshold", threshold, "too little noise", "Ding et al. 2018"),
    Attack("fork", forked, "noise that a forked process repeats", "docs/threat-model.md"),
    Attack("timing", timing, "draws that take longer for larger noise", _JIN, ("answers",)),
    Attack("narrow-sum", narrow_sum, _NARROW, _CASACUBERTA, sums=FLOATS),
    Attack("reordering", reordering, _ORDER, _CASACUBERTA, sums=FLOATS),
    Attack("nan", not_a_number, "a NaN record that comes out as NaN", _CASACUBERTA, sums=FLOATS),
    Attack("overflow", overflow, "integer sums that wrap around", _CASACUBERTA, sums=INTEGERS),
)
ATTACKS: Mapping[str, Attack] = MappingProxyType({attack.name: attack for attack in _ALL})
"""The published attacks by name; `attack_named` looks them up."""


def attack_named(name: str) -> Attack:
    """The attack of this name.

    >>> attack_named("precision").source
    'Haney et al. 2022'
    """
    if name not in ATTACKS:
        raise InvalidParameter(
            "attack", problem="has no such name", remedy=f"pass one of {', '.join(ATTACKS)}"
        )
    return ATTACKS[name]


def run(
    name: str,
    target: Target | SumTarget,
    *,
    samples: int | None = None,
    error: Number | None = None,
) -> Verdict:
    """Run the attack of this name, with its own number of samples and error unless told.

    >>> from lastbit import audit
    >>> bare = audit.Target(name="bare", release=lambda value, size: [value] * size, claimed=1)
    >>> audit.attack("threshold", bare, samples=2000).broken
    True
    """
    attack = attack_named(name)
    if not attack.suits(target):
        needed = " and ".join(attack.needs) or "values"
        records = " or ".join(attack.sums)
        raise InvalidParameter(
            "target",
            problem=f"does not suit the attack {name}",
            remedy=f"pass a SumTarget of {records}" if records else f"pass a Target with {needed}",
        )
    options: dict[str, Any] = {"samples": samples, "error": error}
    given = {key: option for key, option in options.items() if option is not None}
    return attack.attack(target, **given)
