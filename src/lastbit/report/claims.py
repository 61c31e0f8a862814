"""What a certificate claims, in words.

Only the certificate is read, and nothing in it is checked: `lastbit.verify.check` does that first.
Numbers are rounded the safe way: a bound on a loss up, a probability that refutes down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

from lastbit.errors import InvalidParameter
from lastbit.exact import shown
from lastbit.report.plan import natural_unit
from lastbit.report.words import quoted
from lastbit.verify import (
    decimal,
    expression_from_json,
    format_from_json,
    number,
    text as expression_text,
)

LONGEST = 24
LARGEST = 10**1000
MOST_DIGITS = 24
SMALL = 10**6
LOSS_DIGITS = 21
MOST_CODE = 400


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim as a reader sees it: a title, the number it comes to, sentences, and facts."""

    title: str
    verdict: str
    sentences: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]


def claim_of(certificate: Mapping[str, Any]) -> Claim:
    """The claim of a certificate that `check` accepts; any other may be refused.

    >>> from lastbit.verify.snapping import snapping_bound
    >>> claim_of(snapping_bound(epsilon=1, bound=64).certificate()).verdict
    'ε ≤ 1 + 3.12...e-14'
    """
    kinds: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Claim]] = {
        "error-bound": _error_bound,
        "law": _law,
        "refutation": _refutation,
        "snapping": _snapping,
        "rounding": _rounding,
        "release": _release,
    }
    try:
        return kinds[certificate["kind"]](certificate["claim"], certificate["body"])
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:
        raise InvalidParameter(
            "certificate", problem="has no claim that can be read", remedy="write it anew"
        ) from error


# ---------------------------------------------------------------- numbers


def short(x: Fraction, *, up: bool) -> str:
    """A number as a person would write it, or by seven digits, rounded up or down.

    >>> short(Fraction(7, 10), up=True), short(Fraction(10**30 + 1, 3), up=True)
    ('0.7', '3.333334e+29')
    """
    if max(abs(x.numerator), x.denominator) < LARGEST:
        plain = shown(x).strip("'")
        if len(plain) <= LONGEST and "..." not in plain:
            return plain
    return decimal(x, up=up)


def long(x: Fraction, *, up: bool) -> str:
    """A number with 21 digits, rounded up or down: losses differ where floats end.

    >>> long(Fraction(1, 3), up=True), long(Fraction(2), up=True)
    ('0.333333333333333333334', '2')
    """
    context = Context(prec=LOSS_DIGITS, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    near = context.divide(Decimal(x.numerator), Decimal(x.denominator)).normalize(context)
    return f"{near:f}" if -5 < near.adjusted() < LOSS_DIGITS else f"{near:e}"


def probability_text(p: Fraction) -> str:
    """An exact probability, over a power of two where it is one; long ones by seven digits.

    >>> probability_text(Fraction(3, 2**60)), probability_text(Fraction(0))
    ('3/2**60 (2.602085e-18)', '0')
    """
    if p.denominator == 1:
        return str(p)
    near = decimal(p, up=False)
    if p.denominator & (p.denominator - 1) == 0 and p.denominator > SMALL:
        below = f"2**{p.denominator.bit_length() - 1}"
    else:
        below = str(p.denominator)
    if len(str(p.numerator)) > MOST_DIGITS or len(below) > MOST_DIGITS:
        return f"{near} (exact in the certificate)"
    return f"{p.numerator}/{below} ({near})"


def _above(total: Fraction, ideal: Fraction) -> str:
    """A loss as what it should be and what the floats add."""
    return f"{short(ideal, up=True)} + {decimal(total - ideal, up=True)}"


def _float(text: str) -> str:
    return repr(float.fromhex(text))


# ---------------------------------------------------------------- kinds


def _snapping(claim: Mapping[str, Any], _: Mapping[str, Any]) -> Claim:
    epsilon, bound = number(claim["epsilon"]), number(claim["bound"])
    loss, delta = number(claim["loss"]), number(claim["delta"])
    with_delta = f", δ ≤ {decimal(delta, up=True)}" if delta else ""
    sentences = (
        f"The snapping mechanism in {claim['format']}, with ε = {short(epsilon, up=True)} and "
        f"results within ±{short(bound, up=True)}: for every two inputs at most 1 apart and for "
        "every output, the logarithm of the ratio of its two probabilities is at most "
        f"{_above(loss, epsilon)}" + (", but for outputs that δ pays for." if delta else "."),
        "It holds for all inputs of the format, not only for some that were tried.",
    )
    facts = (
        ("mechanism", "snapping: clamp, add noise, round to the grid, clamp"),
        ("format", str(claim["format"])),
        ("ε of the noise", short(epsilon, up=True)),
        ("bound", f"±{short(bound, up=True)}"),
        ("inputs apart", str(claim["distance"])),
        ("loss, all counted", long(loss, up=True)),
        ("floats add", decimal(loss - epsilon, up=True)),
        ("delta", decimal(delta, up=True)),
    )
    verdict = f"ε ≤ {_above(loss, epsilon)}{with_delta}"
    return Claim("The snapping mechanism", verdict, sentences, facts)


def _rounding(claim: Mapping[str, Any], body: Mapping[str, Any]) -> Claim:
    epsilon, cell = number(claim["epsilon"]), number(claim["cell"])
    distance = number(claim["sensitivity"])
    low, high = (short(number(end), up=True) for end in claim["region"])
    ideal = epsilon - number(body["excess"])
    total = f"{_above(epsilon, ideal)}"
    sentences = (
        f"The code's sum is rounded to the nearest multiple of {short(cell, up=True)}, and what "
        f"lies beyond [{low}, {high}] is moved to its nearer end. For every two values in that "
        f"region at most {short(distance, up=True)} apart and for every result, the logarithm of "
        f"the ratio of its two probabilities is at most {total}.",
        f"In exact arithmetic the noise would cost {short(ideal, up=True)}; the rest is the price "
        "of the floats and of the generator.",
    )
    about = tuple(fact for record in claim["code"] for fact in _named(record)) or (
        ("about", "the steps below; no code is named"),
    )
    programs = tuple(
        ("code" if len(claim["programs"]) == 1 else f"code, sign {sign}", _code(rows))
        for rows, sign in zip(claim["programs"], ("+1", "-1"), strict=False)
    )
    facts = (
        *about,
        *programs,
        ("noise", _noise(claim, body)),
        ("rounded to", f"multiples of {short(cell, up=True)}"),
        ("region", f"[{low}, {high}]"),
        ("values apart", short(distance, up=True)),
        *_query(claim, body),
        ("uniform", uniform_text(claim["uniform"])),
        ("machine", _machine(claim)),
        ("loss, all counted", long(epsilon, up=True)),
    )
    return Claim("Float noise, rounded and truncated", f"ε ≤ {total}", sentences, facts)


def _named(record: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The code by its name, and the parameters that it was certified with."""
    found = (str(record["role"]), f"{record['function']} ({record['machine']['python']})")
    values = []
    for name, text in sorted(record["parameters"].items()):
        kind, _, rest = str(text).partition(" ")
        try:
            value = repr(float.fromhex(rest)) if kind.endswith("float64") or kind == "float" else ""
            value = value or str(Fraction(rest))
        except (ValueError, ArithmeticError):  # not seen by the checker if code is not run
            value = quoted(rest)
        values.append(f"{quoted(str(name))} = {value}")
    return (found, ("parameters", ", ".join(values))) if values else (found,)


def _release(claim: Mapping[str, Any], body: Mapping[str, Any]) -> Claim:
    plan = body["plan"]
    unit = "row" if claim["unit"] is None else quoted(claim["unit"])
    price = ", ".join(
        f"{letter} ≤ {short(number(claim[name]), up=True)}"
        for letter, name in (("ε", "epsilon"), ("δ", "delta"), ("ρ", "rho"))
        if number(claim[name])
    )
    relation = "changed" if claim["neighbours"] == "change-one" else "more or less"
    however = "" if claim["unit"] is None else ", however many rows it has"
    sentences = (
        f"Whatever the data were: with one {unit} {relation}{however}, the probabilities of all "
        f"answers differ by no more than {price} allows.",
        "It is the price of the whole answer: all its columns and groups, and which keys it shows.",
    )
    columns = ", ".join(
        f"{quoted(part['name'])} ({part['function']})" for part in body["query"]["aggregates"]
    )
    groups = "found privately" if plan["groups"] is None else f"{plan['groups']}, public"
    facts = (
        ("table", quoted(claim["table"])),
        ("released", columns),
        ("groups", groups),
        ("protected", f"one {unit} {relation}"),
        ("counts for at most", f"{plan['max_rows']} {_rows(plan['max_rows'])} in all"),
        *((_part_name(part, plan), _part_noise(part, plan)) for part in plan["parts"]),
        ("adds up", _adding(plan)),
        ("SHA-256 of the rows", str(claim["rows"])),
    )
    return Claim(f"An answer from {quoted(claim['table'])}", price, sentences, facts)


def _rows(number_of_rows: int) -> str:
    return "row" if number_of_rows == 1 else "rows"


def _part_name(part: Mapping[str, Any], plan: Mapping[str, Any]) -> str:
    match part["part"]:
        case "keys":
            return "which keys are shown"
        case "rank":
            return f"{quoted(part['aggregate'], 16)}, {part['role']}"
    kinds = {measure["name"]: measure["kind"] for measure in plan["measures"]}
    users = (r["aggregate"] for r in plan["recipes"] if part["measure"] in r["measures"].values())
    return f"{kinds[part['measure']]} for {', '.join(quoted(user, 16) for user in users)}"


def _part_noise(part: Mapping[str, Any], plan: Mapping[str, Any]) -> str:
    names = ("rho",) if part.get("rho") is not None else ("epsilon", "delta")
    letters = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
    paid = " and ".join(
        f"{letters[name]} {short(number(part[name]), up=True)}" for name in names if name in part
    )
    units = {m["name"]: natural_unit(m, plan["weight_one"]) for m in plan["measures"]}
    match part["mechanism"]:
        case "laplace":
            scale = number(part["scale"]) * units[part["measure"]]
            noise = f"Laplace noise of scale {short(scale, up=False)}"
        case "gaussian":
            variance = number(part["variance"]) * units[part["measure"]] ** 2
            noise = f"Gaussian noise of variance {short(variance, up=False)}"
        case "threshold":
            noise = f"units with Laplace noise reach {part['threshold']}"
        case _:
            noise = f"drawn among {part['candidates']} by rank"
    return f"{noise}: {paid}"


def _adding(plan: Mapping[str, Any]) -> str:
    if plan["composition"] == "basic":
        return "epsilons and deltas"
    if plan["conversion"] is None:
        return "rhos"
    order = decimal(number(plan["conversion"]["order"]), up=True)
    return f"rhos, turned into ε and δ by the divergence of order {order}"


def only_probed(certificate: Mapping[str, Any]) -> bool:
    """Whether a certificate rests on code being monotone, which was probed and not proved."""
    claim = certificate.get("claim")
    return isinstance(claim, Mapping) and claim.get("monotone") == "probed"


def _if_monotone(claim: Mapping[str, Any]) -> str:
    """What a verdict on running code adds where its direction is not proved."""
    return ", if the code is monotone (only probed)" if claim["monotone"] == "probed" else ""


def _monotone(claim: Mapping[str, Any], body: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    if claim["monotone"] == "probed":
        return (("monotone", "probed, not proved: see the assumptions"),)
    many = len(body["programs"]) > 1
    names = [f"code, sign {sign:+d}" if many else "code" for sign in claim["signs"] or [0]]
    steps = zip(names, body["programs"], strict=True)
    return (("monotone", "proved from its steps"), *((name, _code(rows)) for name, rows in steps))


def _law(claim: Mapping[str, Any], body: Mapping[str, Any]) -> Claim:
    x, y = (_float(text) for text in claim["inputs"])
    first, second = (x, y) if claim["direction"] == "forward" else (y, x)
    p, q = (number(text) for text in claim["probabilities"])
    output = _float(claim["output"])
    if claim["loss"] == "infinite":
        verdict, loss = "the loss is infinite", "infinite"
        told = f"From {second} it never comes: whoever sees it knows that the input was not that."
    else:
        low, high = (number(end) for end in claim["loss"])
        verdict = f"loss {long(high, up=True)}"
        loss = f"between {long(low, up=False)} and {long(high, up=True)}"
        told = f"No output tells {x} and {y} better apart."
    sentences = (
        f"The exact privacy loss between the inputs {x} and {y} is {loss}.",
        f"The output {output} comes with probability {probability_text(p)} from the input {first}, "
        f"and with probability {probability_text(q)} from {second}. {told}",
        "This is about these two inputs only.",
    )
    cells = [sum(len(branch["cells"]) for branch in law) for law in body["laws"]]
    facts = (
        *_about(claim),
        *_monotone(claim, body),
        ("cells", f"{cells[0]} from {x}, {cells[1]} from {y}"),
    )
    verdict += _if_monotone(claim)
    return Claim(f"The exact loss of {quoted(claim['function'])}", verdict, sentences, facts)


def _refutation(claim: Mapping[str, Any], body: Mapping[str, Any]) -> Claim:
    x, y = (_float(text) for text in claim["inputs"])
    low, high = (_float(text) for text in claim["outputs"])
    p, q = (number(text) for text in claim["probabilities"])
    single = claim["outputs"][0] == claim["outputs"][1]  # as texts: -0.0 is not 0.0 here
    outputs = f"The output is {low}" if single else f"The output lies from {low} to {high}"
    if claim["loss"] == "infinite":
        verdict = "the loss is infinite"
        told = (
            f"Whoever sees such an output knows that the input was not {y}. No ε whatever holds, "
            f"unless with a δ of {decimal(p, up=False)} or more."
        )
    else:
        loss = decimal(number(claim["loss"]), up=False)
        verdict = f"loss ≥ {loss}"
        told = f"The logarithm of their ratio is at least {loss}."
    sentences = (
        f"{outputs} with probability {probability_text(p)} from the input {x}, and with "
        f"probability {probability_text(q)} from the input {y}. {told}",
    )
    facts = (*_about(claim), *_monotone(claim, body), ("outputs", f"{low} to {high}"))
    verdict += _if_monotone(claim)
    return Claim(f"{quoted(claim['function'])} tells two inputs apart", verdict, sentences, facts)


def _error_bound(claim: Mapping[str, Any], _: Mapping[str, Any]) -> Claim:
    error = decimal(number(claim["error"]), up=True)
    least, most = (number(end) for end in claim["computed"])
    sentences = (
        f"For all inputs in these ranges the machine's result is at most {error} away from the "
        "exact one.",
    )
    facts = (
        ("code", _code(claim["expression"])),
        *_ranges(claim["ranges"]),
        ("machine", _machine(claim)),
        ("result from", f"{decimal(least, up=False)} to {decimal(most, up=True)}"),
        ("error", error),
    )
    return Claim("How far float code strays", f"error ≤ {error}", sentences, facts)


def _noise(claim: Mapping[str, Any], body: Mapping[str, Any]) -> str:
    """What law the noise has: recognised, or declared by whoever wrote the certificate."""
    if "scale" in body:
        return f"Laplace noise of scale {short(number(body['scale']), up=True)}"
    rate = short(number(claim["rate"]), up=True)
    return f"declared, not proved: its density changes by at most a factor e**({rate} d) over d"


def _machine(claim: Mapping[str, Any]) -> str:
    """The format of the machine, and what its library is assumed to keep to."""
    functions = ", ".join(
        f"{name} within {short(number(ulps), up=True)} ulp"
        for name, ulps in sorted(claim["ulps"].items())
    )
    return f"{format_from_json(claim['format']).name}; {functions}"


def _query(claim: Mapping[str, Any], body: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The query whose own error is counted, if there is one."""
    if body["query"] is None:
        return (("query", "exact, or its floats are the values"),)
    stated = body["query"]["claim"]
    return (
        ("query", _code(stated["expression"])),
        *_ranges(stated["ranges"]),
        ("query's own error", decimal(number(claim["query_error"]), up=True)),
    )


def _ranges(ranges: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (
            f"{quoted(name)} from",
            f"{short(number(low), up=False)} to {short(number(high), up=True)}",
        )
        for name, (low, high) in sorted(ranges.items())
    )


def _about(claim: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    parameters = ", ".join(
        f"{quoted(name)} = {_float(text)}" for name, text in sorted(claim["parameters"].items())
    )
    sign = "none" if claim["signs"] is None else "fair, +1 or -1"
    given = (("parameters", parameters),) if parameters else ()
    return (
        ("function", quoted(claim["function"])),
        *given,
        ("inputs", " and ".join(_float(text) for text in claim["inputs"])),
        ("uniform", uniform_text(claim["uniform"])),
        ("sign", sign),
    )


def uniform_text(model: Mapping[str, Any]) -> str:
    """The model of a generator, in words."""
    if model["model"] == "full":
        return (
            f"all floats of (0, 1) with {model['significand']} bits, down to "
            f"2**{model['least_exponent']}"
        )
    offset = f"k + {model['offset']}" if model["offset"] != "0" else "k"
    start = f", k from {model['first']} on" if model["first"] else ""
    return f"({offset})/2**{model['bits']}{start}, all alike"


def _code(rows: Any) -> str:
    text = expression_text(expression_from_json(rows))
    return text if len(text) <= MOST_CODE else text[: MOST_CODE - 1] + "…"
