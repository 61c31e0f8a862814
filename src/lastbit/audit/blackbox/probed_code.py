"""Code that was only probed to be monotone: its law chooses an event, and samples decide.

Law      the law of code that is worked out by bisection is its law if the code is monotone in its
         uniform. Where that is not proved, nothing follows from it but a guess where to look
Theorem  the pair of inputs, the event and the number of runs are functions of that law and of what
         was asked, fixed before the first run is drawn. The runs draw the uniform and the sign as
         the model says, so the counts are binomial with the true probabilities, whatever the code
         is; the bound is wrong with probability at most `error`
Checked  tests/audit/test_probed_code.py
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from lastbit.audit.bounds import delta_lower, epsilon_lower
from lastbit.audit.result import OutputEvent, PairFinding
from lastbit.errors import NotMonotone
from lastbit.sampling import secure_bits, uniform_below
from lastbit.verify import Code, ExactLaw, Uniform, evaluated, input_of, monotone_steps, order

RUNS = 1 << 16  # of each input
_BITS = 128
_FEW = 75  # bits below which a float of full precision is not yet known
_MORE = 1024
_WIDE, _NONE = 5.0, 15.0  # what an interval costs, about: in standard deviations, and in runs


def is_proved(code: Code, pair: tuple[Any, Any], laws: tuple[ExactLaw, ExactLaw]) -> bool:
    """Whether the code is proved to be monotone in its uniform for both inputs."""
    inputs = [input_of(value, "value") for value in pair]
    return monotone_steps(code, inputs, laws) is not None


def counted(
    code: Code,
    pair: tuple[Any, Any],
    laws: tuple[ExactLaw, ExactLaw],
    *,
    epsilon: Fraction | None,
    delta: Fraction,
    error: Fraction,
    runs: int = RUNS,
) -> PairFinding:
    """The event that promises most by the laws, counted in `runs` fresh runs of each input."""
    shares = [
        {order(r): p for r, p in zip(law.outputs, law.probabilities, strict=True)} for law in laws
    ]
    swapped, event = _most_telling(shares, delta, runs)
    names = {order(r): r for law in laws for r in law.outputs}
    found = [
        _hits(code, input_of(value, "value"), law, event, runs)
        for value, law in zip(pair, laws, strict=True)
    ]
    one, two = reversed(found) if swapped else found
    return PairFinding(
        epsilon_lower=epsilon_lower(one, runs, two, runs, delta=delta, error=error),
        delta_lower=None
        if epsilon is None
        else delta_lower(one, runs, two, runs, epsilon=epsilon, error=error),
        event=OutputEvent.of([str(names[key]) for key in sorted(event)]),
        swapped=swapped,
        hits=one,
        trials=runs,
        other_hits=two,
        other_trials=runs,
        samples=2 * runs,
    )


def _most_telling(
    shares: Sequence[dict[int, Fraction]], delta: Fraction, runs: int
) -> tuple[bool, frozenset[int]]:
    """The outputs that are likelier under one input, as many as promise the greatest bound."""
    best: tuple[float, bool, frozenset[int]] = (-math.inf, False, frozenset())
    for swapped in (False, True):
        p, q = reversed(shares) if swapped else iter(shares)
        outputs = sorted({*p, *q}, key=lambda key, p=p, q=q: _ratio(p, q, key), reverse=True)  # type: ignore[misc]
        some, other = 0.0, 0.0
        for count, key in enumerate(outputs, 1):
            some, other = some + float(p.get(key, 0)), other + float(q.get(key, 0))
            found = _promised(some, other, float(delta), runs)
            if found > best[0]:
                best = found, swapped, frozenset(outputs[:count])
    return best[1], best[2]


def _ratio(p: dict[int, Fraction], q: dict[int, Fraction], key: int) -> float:
    one, two = float(p.get(key, 0)), float(q.get(key, 0))
    return one / two if two else math.inf if one else 0.0


def _promised(p: float, q: float, delta: float, runs: int) -> float:
    """A guess at the bound that these runs will prove, by which the event is chosen."""
    least = p - _WIDE * math.sqrt(max(p * (1 - p), 0.0) / runs) - delta
    most = q + _WIDE * math.sqrt(max(q * (1 - q), 0.0) / runs) + _NONE / runs
    return math.log(least / most) if least > 0 else -math.inf


def _hits(code: Code, value: float, law: ExactLaw, event: frozenset[int], runs: int) -> int:
    """How many fresh runs of an input end in the event; refused if one ends outside the law."""
    known = {order(output) for output in law.outputs}
    signs: Sequence[int | None] = (None,) if law.signs is None else law.signs
    coins = uniform_below(len(signs), size=runs).tolist()
    hits = 0
    for u, coin in zip(_uniforms(law.uniform, runs), coins, strict=True):
        output = order(evaluated(code, value, u, signs[int(coin)]))
        if output not in known:
            raise NotMonotone(
                "the code gave an output that it does not have by the law worked out of it, so it "
                "is not monotone in its uniform; audit a function(value) that draws its own "
                "randomness, by samples"
            )
        hits += output in event
    return hits


def _uniforms(uniform: Uniform, count: int) -> list[float]:
    """`count` draws, exactly as the model says."""
    if uniform.below(1) * uniform.size == 1:  # all alike
        return [uniform.point(int(k)) for k in uniform_below(uniform.size, size=count).tolist()]
    drawn, size = secure_bits().fill(count * _BITS // 8).tobytes(), _BITS // 8
    found = []
    for start in range(0, count * size, size):
        k, bits = int.from_bytes(drawn[start : start + size]), _BITS
        if k >> _FEW == 0:  # the next digits matter too
            more = int.from_bytes(secure_bits().fill(_MORE // 8).tobytes())
            k, bits = (k << _MORE) | more, _BITS + _MORE
        found.append(uniform.point(uniform.number(Fraction(k, 1 << bits))))
    return found
