"""Re-derives the price of a released answer from its query and the facts of its card.

The checker believes the theorems of the mechanisms and those of `tables/measures.py` and
`ranks.py`. It believes no number: measures and sensitivities are worked out again from the query,
every part's loss from its noise, the total from the parts. A claim may be looser than that, never
tighter.

| part | sensitivity | loss |
|---|---|---|
| Laplace noise of scale s | L1 | epsilon = L1/s |
| Gaussian noise of variance v | L2 | rho = L2**2/(2v), or mu**2 below |
| keys by threshold T, scale s | c keys a unit | epsilon = c/s (2c/s: one changed); delta below |
| keys by threshold T, variance v | L2 | rho = L2**2/(2v); delta below |
| rank by exp(-rate distance) | M | epsilon = 2 rate M, rho = epsilon**2/8 |
| noise on a tree of bins, l levels | l times that of the bins | as noise |
| the same noise on both ends of values | as of one: `tables/measures.py` | paid for once |

Quantiles of one measure may be drawn by rank, each, or all be read off one tree over its bins. On
each level of a tree every row is in one node, so each level moves as bins do. Its shape follows
from the number of its bins (`tree.py`): fewer levels than were noised would cost less.

Keys, Laplace: with q = exp(-1/s) and p = P[1 + X >= T] = q**(T-1)/(1+q), delta = 1 - (1-p)**c,
provided that p <= 1 - q. Keys, Gaussian: with p_K = P[w_K + X >= T], where w_K is what a unit with
K keys adds to each, delta = 1 - (1-p_K)**K for the worst K <= c (`tables/plan/selection.py`); tails
are in `tail.py`. Such a part pays rho with the others, or epsilon by an order of its own. In that
case units with one key may be counted apart, as keys by Laplace with c = 1: a unit that comes or
goes is in one of the two counts, so the part's epsilon and delta must suffice for each of the two.

In all: epsilons and deltas add up (paper 003, Proposition 8). Rhos add up, and rho implies
(epsilon, delta) by the order a > 1 on record if
exp((a-1)(a rho - epsilon))/(a-1) (1-1/a)**a <= delta (CKS20, Proposition 12); the delta of keys is
added to that. Where everything is Gaussian noise, mu**2 may add up instead: a part has L2**2 x for
any 0 < x <= 12 with x (1 - x/12) >= 1/v (`privacy/gaussian_pair.py`), and mu on record
implies (epsilon, delta) as in `tail.py`.

Every measure that is released must have one part, no more and no less; keys that only the data
knows must be found by threshold. What is not checked here is in the sentences that
`dispatch.py` demands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .numbers import (
    FARTHEST,
    Json,
    Rejected,
    digest,
    exp_above,
    exp_bounds,
    ln_bounds,
    ratio,
    require,
)
from .query import (
    RANKED,
    Facts,
    Measured,
    Question,
    facts_of,
    measured_of,
    moves_of,
    question_of,
    rank_moved,
    selecting,
    share_weights,
)
from .tail import gaussian_tail, pair_delta
from .tree import tree_shape

CLAIM = frozenset({"table", "unit", "neighbours", "query", "rows", "epsilon", "delta", "rho"})
_OPTIONAL = frozenset({"private", "per_unit", "through"})
_BODY = frozenset({"query", "plan", "plan_digest", "moves", "ledger"})
PLAN = frozenset(
    {"query", "table", "unit", "max_rows", "max_groups", "neighbours", "weight_one", "groups"}
    | {"asked", "composition", "conversion", "cost", "measures", "recipes", "parts"}
)
_PRICE = ("epsilon", "delta", "rho")
_ENGINES = ("duckdb", "postgres", "spark")
_VERSION = re.compile(r"[0-9A-Za-z.+!_-]{1,60}", re.ASCII)
HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
_BETA = Fraction(1, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Proof:
    """All that the parts are checked against."""

    question: Question
    facts: Facts
    measures: Mapping[str, Measured]
    recipes: list[dict[str, Any]]
    concentrated: bool
    paired: bool
    """Whether mu**2 adds up instead of rho."""
    trees: frozenset[str]
    """The measures that have a tree; whether they may is checked with the parts."""
    extra: str | None
    """The measure that no aggregate needs, by which undeclared keys are found."""

    def needed(self, serving: str | None) -> list[tuple[str, ...]]:
        """The parts that there must be: by kind, measure or aggregate, and role.

        `serving` is the measure that the selection of keys names: where each row is a unit, the
        count of rows may be its own.
        """
        summed: set[str] = set()
        planted: set[str] = set()
        drawn: list[tuple[str, ...]] = []
        for part, recipe in zip(self.question.aggregates, self.recipes, strict=True):
            name = recipe["measures"].get("bins")
            if part.function == "cdf" or (part.function == "quantile" and name in self.trees):
                planted.add(name)
            elif part.function in RANKED:
                three = part.function == "quantile" and part.intervals
                roles = ("value", "low", "high") if three else ("value",)
                drawn += [("rank", part.name, role) for role in roles]
            else:
                summed |= set(recipe["measures"].values())
        if self.facts.groups is None:
            units = {name for name in summed if self._counts_units(name, serving)}
            drawn.append(("keys", *units, *(() if self.extra is None else (self.extra,))))
            summed -= units
        drawn += [("tree", name) for name in planted]
        return drawn + [("noise", name) for name in summed]

    def _counts_units(self, name: str, serving: str | None) -> bool:
        measure = self.measures[name]
        rows = measure.kind == "rows" and measure.expression is None and self.facts.unit is None
        return measure.kind == "units" or (rows and name == serving)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What parts cost, in every currency."""

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    mu_squared: Fraction = Fraction(0)

    def __add__(self, other: Loss) -> Loss:
        both = {name: getattr(self, name) + getattr(other, name) for name in self.__slots__}
        return Loss(**both)


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are one, to the type: 1, 1.0 and true are three."""
    first, second = (json.dumps(x, sort_keys=True, allow_nan=False) for x in (one, other))
    return first == second


def check_parts(body: Json) -> None:
    """That a body has its parts, and of the engine a name, a version and that of its dialect.

    Of the engine only the form is checked: it computes the measures, which is assumed. Earlier
    certificates do not name it.
    """
    require(set(body) - {"engine"} == _BODY, "the body lacks a part, or has one too many")
    match body.get("engine", {"name": "duckdb", "version": "1", "dialect": 1}):
        case {"name": str(name), "version": str(version), "dialect": int(dialect), **rest}:
            known = not rest and name in _ENGINES and bool(_VERSION.fullmatch(version))
            require(known and type(dialect) is int and dialect >= 1, "the engine is malformed")
        case _:
            raise Rejected("the engine is malformed")


def check_names(claim: Json, body: Json, parts: frozenset[str], of_plan: frozenset[str]) -> Json:
    """The plan, if what is named in several places is one thing, and digests are digests.

    How rows reach their unit is in both, where they do so through other tables.
    """
    way = {"through"} & set(claim)
    require(set(claim) == parts | way, "the claim lacks a part, or has one too many")
    check_parts(body)
    plan: Json = body["plan"]
    require(isinstance(plan, Mapping) and set(plan) == of_plan | way, "the plan lacks a part")
    require(same(claim.get("through"), plan.get("through")), "claim and plan differ in the way")
    for name in ("table", "unit", "neighbours", "query"):
        require(same(claim[name], plan[name]), f"claim and plan differ in {name}")
    require(isinstance(plan["table"], str) and bool(plan["table"]), "the table has no name")
    require(body["query"]["table"] == plan["table"], "the query is about another table")
    require(plan["query"] == digest(body["query"]), "the plan is for another query")
    require(body["plan_digest"] == digest(plan), "the plan was changed after it was written")
    for text in (claim["rows"], *([] if body["ledger"] is None else [body["ledger"]])):
        require(isinstance(text, str) and bool(HASH.fullmatch(text)), "a digest is malformed")
    return plan


def check_release(claim: Json, body: Json) -> None:
    """Raise `Rejected` unless the release costs no more than is claimed."""
    joined = {"private"} & set(claim)
    plan = check_names(claim, body, CLAIM | _OPTIONAL & set(claim), PLAN | joined)
    private = [found.get("private", {}) for found in (claim, plan)]
    require(same(*private) and claim.get("private") != {}, "claim and plan join other tables")
    inner = True if "per_unit" in body["query"] else None
    require(claim.get("per_unit") is inner, "claim and query differ in the sub-query")
    # what follows from the query and the card must be written as it follows
    question = question_of(body["query"])
    facts = facts_of(plan, question)
    measures, recipes, extra = _measured(plan, question, facts)
    require(same(plan["groups"], question.groups), "the number of groups is another")
    require(same(plan["weight_one"], facts.weight_one), "the weight 1 is another")
    require(same(plan["recipes"], recipes), "the aggregates are made of other measures")
    moved = {
        name: {norm: str(size) for norm, size in moves_of(measure, facts).items()}
        for name, measure in measures.items()
    }
    require(same(body["moves"], moved), "one unit moves the measures by another amount")
    require(plan["composition"] in ("basic", "concentrated"), "the composition is unknown")
    proof = _Proof(
        question=question,
        facts=facts,
        measures=measures,
        recipes=recipes,
        concentrated=plan["composition"] == "concentrated",
        paired=plan["composition"] == "concentrated" and "mu" in (plan["conversion"] or {}),
        trees=_trees(plan["parts"]),
        extra=extra,
    )
    losses = {"noise": _noise, "keys": _keys, "rank": _rank, "tree": _tree}
    parts, made = _parts(plan, proof), [recipe["measures"] for recipe in recipes]
    twins = {own["below"]: own["above"] for own in made if "below" in own}
    noises = {part["measure"]: part for part in parts if part["part"] == "noise"}
    for below, above in twins.items():
        alike = same({**noises[below], "measure": above}, noises[above])
        require(alike, "the noise on two ends differs")
    # every part is checked, then the noise on two ends is paid for once
    found = [(part, losses[part["part"]](part, proof)) for part in parts]
    once = [loss for part, loss in found if part["part"] != "noise" or part["measure"] not in twins]
    check_cost(claim, plan, total_loss(plan, once))


def _measured(
    plan: Json, question: Question, facts: Facts
) -> tuple[dict[str, Measured], list[dict[str, Any]], str | None]:
    """The measures and recipes that the query needs, and the name of one that finds keys alone.

    Which bins a rank is drawn from is public: earlier plans had other edges for columns in steps.
    """
    ends = any(measure["kind"] == "above" for measure in plan["measures"])
    for closed in (False, True):
        measures, recipes = measured_of(question, closed=closed, ends=ends)
        extra = None
        if len(plan["measures"]) == len(measures) + 1:
            extra = f"m{len(measures) + 1}"
            measures[extra] = selecting(plan["measures"][-1], measures, facts)
        expected = [measure.json(name) for name, measure in measures.items()]
        if same(plan["measures"], expected):
            return measures, recipes, extra
    raise Rejected("the query needs other measures")


def _trees(parts: Any) -> frozenset[str]:
    require(isinstance(parts, list), "there are no parts")
    found = [part for part in parts if isinstance(part, Mapping) and part.get("part") == "tree"]
    return frozenset(str(part.get("measure")) for part in found)


def _parts(plan: Json, proof: _Proof) -> list[Json]:
    """The parts, if they are those that the query needs, each once."""
    parts: list[Json] = plan["parts"]
    found: list[tuple[str, ...]] = []
    for part in parts:
        match part:
            case {"part": "noise" | "keys" | "tree" as kind, "measure": str(name)}:
                found.append((kind, name))
            case {"part": "keys", "measure": None}:
                found.append(("keys",))
            case {"part": "rank", "aggregate": str(name), "role": str(role)}:
                found.append(("rank", name, role))
            case _:
                raise Rejected("a part is unknown")
    serving = next((part["measure"] for part in parts if part["part"] == "keys"), None)
    needed = proof.needed(serving)
    require(sorted(found) == sorted(needed), "a part is missing, or there is one too many")
    return parts


def _tree(part: Json, proof: _Proof) -> Loss:
    """Noise on the nodes of all levels: each level moves as the bins do."""
    bins = len(proof.measures[part["measure"]].edges) - 1
    branching, levels = tree_shape(bins, gaussian=proof.concentrated)
    shape = {"branching": branching, "levels": levels}
    told = {name: part.get(name) for name in shape}
    require(same(told, shape), "a tree has another shape than its bins ask for")
    nodes = {key: value for key, value in part.items() if key not in ("branching", "levels")}
    return _noise(nodes, proof, levels)


def _noise(part: Json, proof: _Proof, levels: int = 1) -> Loss:
    moves = moves_of(proof.measures[part["measure"]], proof.facts)
    moved = {norm: levels * size for norm, size in moves.items()}
    return noise_loss(part, moved, concentrated=proof.concentrated, paired=proof.paired)


def noise_loss(
    part: Json, moves: Mapping[str, int], *, concentrated: bool, paired: bool = False
) -> Loss:
    """What noise costs on integers that move by this much, in the norm that it pays for."""
    gaussian = part["mechanism"] == "gaussian"
    require(gaussian or part["mechanism"] == "laplace", "a mechanism is unknown")
    require(gaussian == concentrated, "this noise is not paid for in this way")
    norm, parameter = ("l2_squared", "variance") if gaussian else ("l1", "scale")
    fields = {"part", "measure", "mechanism", "sensitivity", parameter, "epsilon", "rho"}
    fields |= {"mu_squared"} if paired else set()
    require(set(part) == fields, "a part lacks a number, or has one too many")
    moved = moves[norm]
    require(same(part["sensitivity"], {norm: str(moved)}), "a sensitivity is wrong")
    noise = positive(part[parameter])
    if gaussian:
        require(part["epsilon"] is None, "Gaussian noise has no epsilon")
        rho = stated(part["rho"], moved / (2 * noise))
        return _pair(part, moved, noise) if paired else Loss(rho=rho)
    require(part["rho"] is None, "a part is paid for twice")
    return Loss(epsilon=stated(part["epsilon"], moved / noise))


def _pair(part: Json, moved: int, variance: Fraction) -> Loss:
    """Noise of this variance on integers that move by this much, squared, as a Gaussian pair."""
    stated = ratio(part["mu_squared"])
    x = stated / moved
    require(0 < x <= 12 and x * (1 - x / 12) * variance >= 1, "a part costs more than it says")
    return Loss(mu_squared=stated)


def _keys(part: Json, proof: _Proof) -> Loss:
    if part["mechanism"] == "gaussian threshold":
        return _gaussian_keys(part, proof)
    facts = proof.facts
    fields = {"part", "measure", "mechanism", "keys_per_person", "scale", "threshold"}
    require(set(part) == fields | {"epsilon", "delta"}, "a part lacks a number")
    require(part["mechanism"] == "threshold", "a mechanism is unknown")
    extra = None if proof.extra is None else proof.measures[proof.extra]
    require(extra is None or extra.kind == "units", "keys are found by another measure")
    own = facts.own_keys if extra is None else extra.highest
    require(same(part["keys_per_person"], own), "a unit can bring another number of keys to light")
    proved = _counted(part, own, people=2 if facts.change_one else 1)
    return Loss(
        epsilon=stated(part["epsilon"], proved.epsilon),
        delta=stated(part["delta"], proved.delta),
    )


def _counted(part: Json, own: int, *, people: int) -> Loss:
    """What units cost that are counted by Laplace noise, a key being shown from a threshold on."""
    threshold, scale = part["threshold"], positive(part["scale"])
    require(type(threshold) is int and threshold >= 2, "a threshold is not a number from 2 up")
    chance, least = _appears(scale, threshold)
    require(chance <= least, "the threshold is so low that not seeing a key tells too much")
    return Loss(epsilon=people * own / scale, delta=_some(chance, own))


def _gaussian_keys(part: Json, proof: _Proof) -> Loss:
    facts = proof.facts
    fields = {"part", "measure", "mechanism", "keys_per_person", "weight_one", "sensitivity"}
    fields |= {"variance", "threshold", "tail", "epsilon", "rho", "order", "delta"}
    measure = Measured(kind="units") if proof.extra is None else proof.measures[proof.extra]
    apart = measure.kind == "shares" and measure.lowest == 2
    fields |= {"single"} if apart else set()
    own_mu = not proof.concentrated and "mu" in part
    fields |= {"mu_squared", *(["mu"] if own_mu else [])} if own_mu or proof.paired else set()
    require(set(part) == fields, "a part lacks a number, or has one too many")
    own = measure.highest or facts.own_keys
    require(same(part["keys_per_person"], own), "a unit can bring another number of keys to light")
    shares = measure.kind == "shares"
    weights = share_weights(measure.lowest or 1, own) if shares else {own: 1}
    one = share_weights(1, 1)[1] if shares else 1
    require(same(part["weight_one"], one), "the weight 1 is another")
    moved = moves_of(measure, facts)["l2_squared"]
    require(same(part["sensitivity"], {"l2_squared": str(moved)}), "a sensitivity is wrong")
    variance, threshold, tail = positive(part["variance"]), part["threshold"], ratio(part["tail"])
    require(
        type(threshold) is int and threshold > max(weights.values()),
        "a threshold is not above a unit",
    )
    for keys, weight in weights.items():
        chance = _some(gaussian_tail(variance, threshold - weight), keys)
        require(chance <= tail, "a key of one unit alone is shown too often")
    rho, delta = stated(part["rho"], moved / (2 * variance)), ratio(part["delta"])
    require(not (apart and proof.concentrated), "this noise is not paid for in this way")
    if proof.concentrated:
        require(part["epsilon"] is None and part["order"] is None, "a part is paid for twice")
        require(delta >= tail, "a part costs more than it says")
        paid = _pair(part, moved, variance) if proof.paired else Loss(rho=rho)
        return paid + Loss(delta=delta)
    epsilon = ratio(part["epsilon"])
    if own_mu:
        require(part["order"] is None, "a part is paid for twice")
        proved = tail + _converted(_pair(part, moved, variance), part["mu"], epsilon)
    else:
        order = ratio(part["order"])
        require(epsilon >= 0 and order > 1, "the conversion has no meaning")
        proved = tail + _order_delta(rho, epsilon, order)
    require(delta >= proved, "rho does not imply epsilon and delta")
    if apart:
        require(set(part["single"]) == {"scale", "threshold"}, "a part lacks a number")
        spent = _counted(part["single"], 1, people=1)
        within = spent.epsilon <= epsilon and spent.delta <= delta
        require(within, "units with one key cost more than the part")
    return Loss(epsilon=epsilon, delta=delta)


def _rank(part: Json, proof: _Proof) -> Loss:
    fields = {"part", "aggregate", "measure", "mechanism", "role", "level", "shift", "ends"}
    fields |= {"candidates", "sensitivity", "rate", "epsilon", "rho"}
    require(set(part) == fields, "a part lacks a number, or has one too many")
    require(part["mechanism"] == "exponential", "a mechanism is unknown")
    pairs = zip(proof.question.aggregates, proof.recipes, strict=True)
    aggregate, recipe = next(pair for pair in pairs if pair[0].name == part["aggregate"])
    measures = recipe["measures"]
    require(part["measure"] == measures["bins"], "a quantile is drawn from another measure")
    level = {"min": Fraction(0), "max": Fraction(1)}.get(aggregate.function, aggregate.level)
    if aggregate.ends is not None and part["role"] != "value":
        level = aggregate.ends[part["role"] == "high"]
    assert level is not None
    require(ratio(part["level"]) == level, "a quantile has another level")
    moved = rank_moved(level, proof.facts)
    require(same(part["sensitivity"], {"distance": str(moved)}), "a sensitivity is wrong")
    rate = positive(part["rate"])
    bins = len(proof.measures[measures["bins"]].edges) - 1
    _check_aim(part, aggregate.function, level, rate, bins)
    epsilon = stated(part["epsilon"], 2 * rate * moved)
    require(not proof.paired, "a draw is not Gaussian noise")
    if proof.concentrated:
        return Loss(rho=stated(part["rho"], epsilon**2 / 8))
    require(part["rho"] is None, "a part is paid for twice")
    return Loss(epsilon=epsilon)


def _check_aim(part: Json, function: str, level: Fraction, rate: Fraction, bins: int) -> None:
    """The ends and the shift: public, and as wide as 95 % of releases ask (Theorem 3)."""
    ends = [ratio(end) for end in part["ends"]]
    require(len(ends) == 2 and all(e.denominator == 1 and e >= 0 for e in ends), "ends are odd")
    wide, role = max(ends), part["role"]
    patterns = {
        "min": ([0, wide], wide),
        "max": ([wide, 0], 0),
        "value": ([0, 0], 0),
        "low": ([wide, wide], 0),
        "high": ([wide, wide], 2 * wide),
    }
    expected = patterns[function if function in ("min", "max") else role]
    require((ends, ratio(part["shift"])) == expected, "a draw aims at another rank")
    candidates = bins + sum(end > 0 for end in ends)
    require(same(part["candidates"], candidates), "a draw has another number of candidates")
    if role != "value" or function in ("min", "max"):
        beta = _BETA if role == "value" else _BETA / 2
        odds = (candidates - 1) * (1 - beta) / beta
        enough = wide >= 1 and rate * level.denominator * wide >= ln_bounds(odds)[1]
        require(enough, "a draw aims so near that its interval fails too often")


def positive(text: Any) -> Fraction:
    """A number above 0."""
    value = ratio(text)
    require(value > 0, "a noise or a rate is not above 0")
    return value


def stated(text: Any, proved: Fraction) -> Fraction:
    """A price on record, if it is not below the one that is proved."""
    price = ratio(text)
    require(price >= proved, "a part costs more than it says")
    return price


def _appears(scale: Fraction, threshold: int) -> tuple[Fraction, Fraction]:
    """An upper bound of P[1 + X >= threshold], and a lower bound of 1 - exp(-1/scale)."""
    rate = 1 / scale
    q_low, q_high = exp_bounds(-min(rate, FARTHEST))
    if rate > FARTHEST:
        q_low = Fraction(0)
    reached = exp_above(-(threshold - 1) * rate)
    # for small rates 1 - exp(-r) >= r - r**2/2 is sharper than a difference of decimals
    return reached / (1 + q_low), max(1 - q_high, rate - rate**2 / 2)


def _some(chance: Fraction, keys: int) -> Fraction:
    """An upper bound of 1 - (1-p)**c: the least of three, sharp for small and for large p."""
    pairs = Fraction(keys * (keys - 1), 2)
    series = keys * chance - pairs * chance**2 + pairs * (keys - 2) / 3 * chance**3
    bounds = [keys * chance, Fraction(1), series]
    exponent = keys * ln_bounds(1 - chance)[0] if chance < 1 else -FARTHEST
    if exponent > -FARTHEST:
        bounds.append(1 - exp_bounds(exponent)[0])
    return min(bounds)


def total_loss(plan: Json, losses: list[Loss]) -> Loss:
    """The parts together: sums, and from rho to epsilon and delta where that is on record."""
    total = sum(losses, Loss())
    conversion = plan["conversion"]
    if plan["composition"] == "basic":
        require(conversion is None, "epsilons need no conversion")
        return total
    if conversion is None:
        require(not total.epsilon, "rho cannot pay for epsilon")
        return total
    if set(conversion) == {"mu", "epsilon", "delta"}:
        epsilon, delta = ratio(conversion["epsilon"]), ratio(conversion["delta"])
        require(not total.rho, "a part is not paid for in mu")
        proved = _converted(total, conversion["mu"], epsilon)
        require(delta >= proved, "mu does not imply epsilon and delta")
        return Loss(epsilon=total.epsilon + epsilon, delta=total.delta + delta)
    require(set(conversion) == {"rho", "epsilon", "delta", "order"}, "the conversion is malformed")
    require(not total.mu_squared, "a part is not paid for in rho")
    rho, epsilon = ratio(conversion["rho"]), ratio(conversion["epsilon"])
    delta, order = ratio(conversion["delta"]), ratio(conversion["order"])
    require(rho >= total.rho, "the parts cost more rho than is converted")
    require(epsilon >= 0 and order > 1, "the conversion has no meaning")
    require(delta >= _order_delta(rho, epsilon, order), "rho does not imply epsilon and delta")
    return Loss(epsilon=total.epsilon + epsilon, delta=total.delta + delta)


def _converted(parts: Loss, text: Any, epsilon: Fraction) -> Fraction:
    """An upper bound of the delta that the mu on record proves, if the parts are within it."""
    mu = positive(text)
    require(mu**2 >= parts.mu_squared, "the parts cost more mu than is converted")
    return pair_delta(mu, epsilon)


def _order_delta(rho: Fraction, epsilon: Fraction, order: Fraction) -> Fraction:
    """An upper bound of the delta that the divergence of this order proves."""
    exponent = (order - 1) * (order * rho - epsilon)
    exponent += order * ln_bounds(1 - 1 / order)[1] - ln_bounds(order - 1)[0]
    return exp_above(exponent)


def check_cost(claim: Json, plan: Json, proved: Loss) -> None:
    """Proved <= cost <= claimed, in one currency; and no more was charged than was asked."""
    require(set(plan["cost"]) == set(_PRICE), "the cost lacks a part")
    require(set(plan["asked"]) == {*_PRICE, "weights"}, "the price asked lacks a part")
    weights = plan["asked"]["weights"]
    if isinstance(weights, Mapping):
        weights = all(positive(weight) for weight in weights.values())
    require(weights in (None, True, "balanced"), "the weights are malformed")
    for name in _PRICE:
        cost, stated = ratio(plan["cost"][name]), ratio(claim[name])
        asked = plan["asked"][name]
        require(getattr(proved, name) <= cost, f"the parts cost more {name} than the plan says")
        require(cost <= stated, f"the plan costs more {name} than is claimed")
        require(cost <= (0 if asked is None else ratio(asked)), f"more {name} than was asked")
    for price in (plan["cost"], claim):
        mixed = ratio(price["rho"]) > 0 and price["epsilon"] != "0"
        require(not mixed, "the price mixes two currencies")
    require(ratio(claim["delta"]) < 1, "a delta of 1 promises nothing")
