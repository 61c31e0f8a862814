"""Computational differential privacy: a promise against adversaries whose time is feasible."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from lastbit.errors import IncompatibleGuarantees, InvalidParameter, WrongType
from lastbit.exact import Ball, Number, arb_of, probability, rounded_up, upper, working_precision
from lastbit.privacy.guarantees import ApproxDP, Loss, PureDP

KEYSTREAM = "no feasible adversary tells an AES-256 keystream from random bits"
"""What lastbit assumes of its own bits: assumption 1 of docs/threat-model.md."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ComputationalDP:
    """(epsilon, delta) against every adversary of a class, under assumptions that are named.

    Law      P[A(M(x)) = 0] <= exp(epsilon) P[A(M(y)) = 0] + delta for neighbours x, y and every A
             of a class of adversaries that is closed under work of feasible size, such as the
             probabilistic machines of polynomial time (paper 003, Definition 4). `bound` holds the
             two numbers and the relation of neighbours, `assumptions` what they rest on
    Theorem  *From true random bits* (`of`): let M with random bits be (epsilon, delta)-private,
             and let no adversary of the class tell the bits that M really gets from random ones
             with an advantage above g. Running M and then A is such an adversary. So
             P[A(M'(x)) = 0] <= P[A(M(x)) = 0] + g <= exp(epsilon) P[A(M(y)) = 0] + delta + g
             <= exp(epsilon) (P[A(M'(y)) = 0] + g) + delta + g: delta grows by (1 + exp(epsilon)) g.
             *Processing* by an f of the class keeps it: A(f(.)) is of the class. *Groups*: the
             same A at each of k steps, as for `ApproxDP.group`. *Two releases*: with M_1(x) drawn
             by itself an adversary against M_2 is one against both, then the other way round:
             P[A(M_1(x), M_2(x)) = 0] <= exp(e_2) P[A(M_1(x), M_2(y)) = 0] + d_2
             <= exp(e_2) (exp(e_1) P[A(M_1(y), M_2(y)) = 0] + d_1) + d_2; or in the other order
    Differs  Remark 5 says that all properties of approximate privacy carry over. The sum of the
             deltas does not by that proof, which cuts a probability at 1 output by output: here it
             is d_2 + exp(e_2) d_1, or d_1 + exp(e_1) d_2. Add up before `of`, and it is the sum
    Checked  tests/privacy/test_computational.py

    >>> ideal = PureDP(1) + PureDP("1/2")
    >>> real = ComputationalDP.of(ideal, advantage=2.0**-89)
    >>> f"{float(real.epsilon)} and {float(real.delta):.2e}"
    '1.5 and 8.86e-27'
    """

    bound: ApproxDP
    assumptions: tuple[str, ...]

    def __init__(self, bound: ApproxDP, *, assumptions: tuple[str, ...] = (KEYSTREAM,)) -> None:
        if not isinstance(bound, ApproxDP) or isinstance(bound.epsilon, float):
            raise WrongType(
                "bound", problem="is not (epsilon, delta)", remedy="pass ApproxDP(epsilon, delta)"
            )
        given = assumptions if isinstance(assumptions, tuple) else ()
        if not given or not all(isinstance(sentence, str) and sentence for sentence in given):
            raise InvalidParameter(
                "assumptions", problem="are not named", remedy="pass a tuple of sentences"
            )
        object.__setattr__(self, "bound", bound)
        object.__setattr__(self, "assumptions", tuple(sorted(set(assumptions))))

    @classmethod
    def of(
        cls, guarantee: PureDP | ApproxDP, *, advantage: Number, assumption: str = KEYSTREAM
    ) -> ComputationalDP:
        """What is left of a promise where random bits are those of a generator.

        `advantage` bounds how much better than guessing a feasible adversary tells them apart.
        """
        if not isinstance(guarantee, PureDP | ApproxDP):
            raise WrongType(
                "guarantee",
                problem="is neither pure nor approximate",
                remedy="pass guarantee.to(ApproxDP, delta=...)",
            )
        gain, exact = probability(advantage, "advantage"), guarantee.to(ApproxDP)
        if isinstance(exact.epsilon, float):
            raise InvalidParameter(
                "guarantee", problem="promises nothing", remedy="pass a finite epsilon"
            )
        delta = _stretched(exact.delta + gain, exact.epsilon, gain)
        bound = ApproxDP(exact.epsilon, delta, neighbours=exact.neighbours)
        return cls(bound, assumptions=(assumption,))

    @property
    def epsilon(self) -> Loss:
        return self.bound.epsilon

    @property
    def delta(self) -> Fraction:
        return self.bound.delta

    def post_processed(self) -> ComputationalDP:
        """What remains after processing by anything feasible: all of it."""
        return self

    def group(self, size: int) -> ComputationalDP:
        """What is promised to a group of this many units."""
        return ComputationalDP(self.bound.group(size), assumptions=self.assumptions)

    def __add__(self, other: object) -> ComputationalDP:
        """Two releases, chosen beforehand; both sets of assumptions are needed."""
        if not isinstance(other, ComputationalDP):
            raise IncompatibleGuarantees(
                "a computational guarantee adds to another one; "
                "use ComputationalDP.of(guarantee, advantage=0) for one of true random bits"
            )
        both = self.bound + other.bound  # their relations must agree
        deltas = [
            _stretched(b.delta, b.epsilon, a.delta)
            for a, b in ((self.bound, other.bound), (other.bound, self.bound))
        ]
        bound = ApproxDP(both.epsilon, min(deltas), neighbours=both.neighbours)
        return ComputationalDP(bound, assumptions=self.assumptions + other.assumptions)

    __radd__ = __add__  # another computational one adds by itself: what comes here is refused

    def implies(self, other: object) -> bool:
        """Whether this proves another promise; it proves none against unbounded adversaries."""
        return (
            isinstance(other, ComputationalDP)
            and set(self.assumptions) <= set(other.assumptions)
            and self.bound.implies(other.bound)
        )

    def __str__(self) -> str:
        numbers = f"ε = {rounded_up(self.epsilon)}, δ = {rounded_up(self.delta, 3)}"
        return (
            f"Against every feasible adversary: {numbers}, for {self.bound.neighbours}.\n"
            f"This rests on: {'; '.join(self.assumptions)}.\n"
            "Feasible processing, groups and further releases keep a promise of this kind.\n"
            "Against unbounded computing time nothing is promised: no ε and no δ below 1."
        )

    def __repr__(self) -> str:
        return f"ComputationalDP({self.bound!r}, assumptions={self.assumptions!r})"


def _stretched(added: Fraction, epsilon: Loss, delta: Fraction) -> Fraction:
    """The sum of added and exp(epsilon) delta, rounded up, and never above 1."""
    if not delta:
        return min(added, Fraction(1))
    if isinstance(epsilon, float):
        return Fraction(1)
    with working_precision(128):
        total = arb_of(added) + arb_of(epsilon).exp() * arb_of(delta)
        return min(Fraction(upper(Ball(total.min(arb_of(2))))), Fraction(1))
