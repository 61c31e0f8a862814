"""What a certificate claims, in words: a title, the number it comes to, sentences and facts.

Numbers are rounded the safe way: a bound on a loss up, a probability that refutes down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from lastbit.errors import InvalidParameter
from lastbit.exact import rounded_down, rounded_up
from lastbit.report.charts import shortened
from lastbit.report.page import CURRENCIES, MALFORMED, amount, quoted
from lastbit.report.proofs import down, exact, float_name, probability, up
from lastbit.verify import expression_from_json, format_from_json, number, text as expression_text

Facts: TypeAlias = tuple[tuple[str, str], ...]
Json: TypeAlias = Mapping[str, Any]
_MANY = 21  # digits: losses differ where floats end
_MOST_CODE = 400


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim as a reader sees it: a title, the number it comes to, sentences, and facts."""

    title: str
    verdict: str
    sentences: tuple[str, ...]
    facts: Facts


def claim_of(certificate: Json) -> Claim:
    """The claim of a certificate that `check` accepts; any other may be refused.

    >>> from lastbit.verify.snapping import snapping_bound
    >>> claim_of(snapping_bound(epsilon=1, bound=64).certificate()).verdict
    'ε ≤ 1 + 3.12...e-14'
    """
    kinds: Mapping[str, Callable[[Json, Json], Claim]] = {
        "error-bound": _error_bound,
        "law": _law,
        "refutation": _refutation,
        "snapping": _snapping,
        "rounding": _rounding,
        "derivation": _derivation,
        "gaussian": _gaussian,
        "polar": _polar,
        "coupling": _coupling,
        "release": _release,
        "marginals": _release,
        "composition": _composition,
    }
    try:
        return kinds[certificate["kind"]](certificate["claim"], certificate["body"])
    except MALFORMED as error:
        raise InvalidParameter(
            "certificate", problem="has no claim that can be read", remedy="write it again"
        ) from error


def only_probed(certificate: Json) -> bool:
    """Whether a certificate rests on code being monotone, which was probed and not proved."""
    claim = certificate.get("claim")
    return isinstance(claim, Mapping) and claim.get("monotone") == "probed"


# ---------------------------------------------------------------- noise that is certified


def _snapping(claim: Json, _: Json) -> Claim:
    epsilon, loss, delta = (number(claim[name]) for name in ("epsilon", "loss", "delta"))
    with_delta = f", δ ≤ {up(delta)}" if delta else ""
    sentences = (
        f"The snapping mechanism in {claim['format']}, with ε = {exact(claim['epsilon'])} and "
        f"results within ±{exact(claim['bound'])}. Take two inputs at most 1 apart, and any "
        "output. The logarithm of the ratio of its two probabilities is at most "
        f"{_above(loss, epsilon)}" + (", but for outputs that δ pays for." if delta else "."),
        "It holds for all inputs of the format, not only for some that were tried.",
    )
    facts = (
        ("mechanism", "snapping: clamp, add noise, round to the grid, clamp"),
        ("format", str(claim["format"])),
        ("ε of the noise", exact(claim["epsilon"])),
        ("bound", f"±{exact(claim['bound'])}"),
        ("inputs apart", str(claim["distance"])),
        ("loss, all counted", rounded_up(loss, _MANY)),
        ("floats add", up(loss - epsilon)),
        ("delta", up(delta)),
    )
    verdict = f"ε ≤ {_above(loss, epsilon)}{with_delta}"
    return Claim("The snapping mechanism", verdict, sentences, facts)


def _rounding(claim: Json, body: Json) -> Claim:
    epsilon = number(claim["epsilon"])
    values = "[{}, {}]".format(*map(exact, claim["values"])) if "values" in claim else ""
    ideal = epsilon - number(body["excess"])
    total = _above(epsilon, ideal)
    sentences = (
        f"{_moved(claim, values or 'that region')} and for every result, the logarithm of the "
        f"ratio of its two probabilities is at most {total}.",
        f"In exact arithmetic the noise would cost {amount(ideal, up=True)}; the rest is the price "
        "of the floats and of the generator.",
    )
    if "scale" in body:
        noise = f"Laplace noise of scale {exact(body['scale'])}"
    else:
        most = f"a factor e**({exact(claim['rate'])} d) over d"
        noise = f"declared, not proved: its density changes by at most {most}"
    facts = (
        *_float_noise(claim, _programs(claim), noise, values),
        *_query(claim, body),
        ("uniform", uniform_words(claim["uniform"])),
        ("machine", _machine(claim)),
        ("loss, all counted", rounded_up(epsilon, _MANY)),
    )
    return Claim("Float noise, rounded and truncated", f"ε ≤ {total}", sentences, facts)


def _derivation(claim: Json, body: Json) -> Claim:
    delta, ideal = number(claim["delta"]), number(claim["sensitivity"]) / number(body["scale"])
    whole = _rounding(
        claim, {**body, "excess": str(number(claim["epsilon"]) - ideal), "query": None}
    )
    losses = tuple(
        (f"loss of {exact(first)} to {exact(last)}", _above(number(loss), ideal))
        for first, last, loss in claim["outputs"]
    )
    paid = f", δ ≤ {up(delta)}" if delta else ""
    sentences = (*whole.sentences, *((f"But for δ = {up(delta)}.",) if delta else ()))
    title = "Float noise, derived case by case"
    return Claim(title, whole.verdict + paid, sentences, (*whole.facts, *losses))


def _programs(claim: Json) -> Iterable[tuple[str, str]]:
    names = ("code",) if len(claim["programs"]) == 1 else ("code, sign +1", "code, sign -1")
    return zip(names, map(_code, claim["programs"]), strict=False)


def _gaussian(claim: Json, body: Json) -> Claim:
    epsilon, delta = number(claim["epsilon"]), number(claim["delta"])
    ideal, missed = up(number(body["ideal_delta"])), up(number(body["missed"]))
    sentences = (
        f"{_moved(claim, 'that region')} and every set of results, one probability is at most "
        f"e**ε times the other and δ, with ε = {exact(claim['epsilon'])} and δ = {up(delta)}.",
        f"In exact arithmetic δ would be below {ideal}. Draws of probability {missed} are given "
        f"up; floats and generator cost the rest.",
    )
    test, programs = claim["accepted"], [("code", _code(claim["programs"][0]))]
    if test is not None:
        programs.append(("drawn until within 0 and 1", _code(test)))
    facts = (
        *_float_noise(claim, programs, f"normal, of variance {exact(body['variance'])}"),
        ("uniforms", uniform_words(claim["uniform"])),
        ("machine", _machine(claim)),
    )
    verdict = f"ε ≤ {rounded_up(epsilon, 6)}, δ ≤ {up(delta)}"
    return Claim("Gaussian noise in floats, rounded and truncated", verdict, sentences, facts)


def _polar(claim: Json, body: Json) -> Claim:
    excess, rate = up(number(claim["excess"])), exact(claim["rate"])
    region, values = (
        " × ".join("[{}, {}]".format(*map(exact, side)) for side in claim[name])
        for name in ("region", "values")
    )
    sentences = (
        f"The code's sums are rounded to the nearest multiples of {exact(claim['cell'])}, and a "
        f"point beyond {region} is reported as outside. Take two points of {values} at a distance "
        f"d > 0, and any result. The logarithm of the ratio of its two probabilities is at most "
        f"{rate} d + {excess}.",
        f"In exact arithmetic it would be {rate} d; the rest is the price of the floats and of "
        "the generator.",
    )
    about = [fact for record in claim["code"] for fact in _named(record)]
    facts = (
        *(about or [("about", "the steps below; no code is named")]),
        *zip(("x", "y"), map(_code, claim["programs"]), strict=True),
        ("noise", f"Laplace noise of the plane, of rate {rate}"),
        ("rounded to", f"multiples of {exact(claim['cell'])}"),
        ("region", region),
        ("points", values),
        ("points apart", exact(claim["sensitivity"])),
        ("uniforms", uniform_words(claim["uniform"])),
        ("machine", _machine(claim)),
        ("loss, all counted", rounded_up(number(claim["epsilon"]), _MANY)),
    )
    ideal = number(claim["epsilon"]) - number(claim["excess"])
    verdict = f"ε ≤ {_above(number(claim['epsilon']), ideal)}"
    return Claim("Planar noise in floats, rounded and truncated", verdict, sentences, facts)


def _moved(claim: Json, values: str) -> str:
    """What becomes of the code's sum, and for which values the claim is."""
    low, high = map(exact, claim["region"])
    return (
        f"The code's sum is rounded to the nearest multiple of {exact(claim['cell'])}, and moved "
        f"into [{low}, {high}]. For every two values in "
        f"{values} at most {exact(claim['sensitivity'])} apart"
    )


def _float_noise(
    claim: Json, programs: Iterable[tuple[str, str]], noise: str, values: str = ""
) -> Facts:
    """The code, its noise, and how its sum is rounded and truncated."""
    about = [fact for record in claim["code"] for fact in _named(record)]
    low, high = map(exact, claim["region"])
    return (
        *(about or [("about", "the steps below; no code is named")]),
        *programs,
        ("noise", noise),
        ("rounded to", f"multiples of {exact(claim['cell'])}"),
        ("region", f"[{low}, {high}]"),
        *((("values", values),) if values else ()),
        ("values apart", exact(claim["sensitivity"])),
    )


def _coupling(claim: Json, _: Json) -> Claim:
    delta, count = number(claim["delta"]), len(claim["inputs"])
    inputs = "one input" if claim["neighbours"] == "one" else "each input"
    apart = exact(claim["sensitivity"])
    if claim["values"] is None:
        differ = f"in {inputs} by at most {apart}"
        differ += ", all of them up or all of them down" if claim["neighbours"] == "same" else ""
        limits = f"multiples of {exact(claim['grid'])} within ±{exact(claim['bound'])}"
    else:
        differ = f"in {inputs}"
        limits = ", ".join(map(exact, claim["values"]))
    with_delta = f", δ ≤ {up(delta)}" if delta else ""
    sentence = (
        f"Take {'one input' if count == 1 else f'{count} inputs'}, and any two databases that "
        f"differ {differ}. Each output has two probabilities, which differ by a factor of at most "
        f"e**ε, ε = {exact(claim['epsilon'])}"
        + (", but for draws beyond a cap, which δ pays for." if delta else ".")
    )
    program = "not named" if claim["code"] is None else str(claim["code"]["function"])
    draws = (
        draw["law"] + (f"({exact(draw['scale'])})" if "scale" in draw else "")
        if draw["law"] != "rounded"
        else f"{draw['name']}, by a logarithm and rounded to {exact(draw['step'])}"
        for draw in claim["draws"]
    )
    facts = (
        ("program", program),
        ("inputs", f"{count}: {limits}"),
        ("draws", ", ".join(draws)),
    )
    verdict = f"ε ≤ {rounded_up(number(claim['epsilon']), 6)}{with_delta}"
    return Claim("A program that draws, compares and puts out", verdict, (sentence,), facts)


def _named(record: Json) -> Facts:
    """The code by its name, and the parameters that it was certified with."""
    values = []
    for name, written in sorted(record["parameters"].items()):
        kind, _, rest = str(written).partition(" ")
        try:
            floats = kind.endswith("float64") or kind == "float"
            value = float_name(rest) if floats else str(number(rest))
        except (ValueError, ArithmeticError):  # not seen by the checker if code is not run
            value = quoted(rest)
        values.append(f"{quoted(name)} = {value}")
    found = (str(record["role"]), f"{record['function']} ({record['machine']['python']})")
    return (found, ("parameters", ", ".join(values))) if values else (found,)


def _query(claim: Json, body: Json) -> Facts:
    """The query whose own error is counted, if there is one."""
    if body["query"] is None:
        return (("query", "exact, or its floats are the values"),)
    stated = body["query"]["claim"]
    return (
        ("query", _code(stated["expression"])),
        *_ranges(stated["ranges"]),
        ("query's own error", up(number(claim["query_error"]))),
    )


def _error_bound(claim: Json, _: Json) -> Claim:
    error = up(number(claim["error"]))
    least, most = (number(end) for end in claim["computed"])
    sentence = (
        f"For all inputs in these ranges the machine's result is at most {error} away from the "
        "exact one."
    )
    facts = (
        ("code", _code(claim["expression"])),
        *_ranges(claim["ranges"]),
        ("machine", _machine(claim)),
        ("result from", f"{down(least)} to {up(most)}"),
        ("error", error),
    )
    return Claim("How far float code strays", f"error ≤ {error}", (sentence,), facts)


def _above(total: Fraction, ideal: Fraction) -> str:
    """A loss as what it should be and what the floats add."""
    return f"{amount(ideal, up=True)} + {up(total - ideal)}"


def _machine(claim: Json) -> str:
    """The format of the machine, and what its library is assumed to keep to."""
    pairs = sorted(claim["ulps"].items())
    functions = ", ".join(f"{name} within {exact(ulps)} ulp" for name, ulps in pairs)
    return f"{format_from_json(claim['format']).name}; {functions}"


def _ranges(ranges: Json) -> Facts:
    return tuple(
        (f"{quoted(name)} from", f"{amount(number(low), up=False)} to {exact(high)}")
        for name, (low, high) in sorted(ranges.items())
    )


def _code(rows: Any) -> str:
    return shortened(expression_text(expression_from_json(rows)), _MOST_CODE)


# ---------------------------------------------------------------- an answer about a table


def _release(claim: Json, body: Json) -> Claim:
    # it loads the rooms of tables, which claims about code need not wait for
    from lastbit.report.plan import plan_facts
    from lastbit.tables import Cost, Query, WrittenPlan

    plan, query = WrittenPlan.from_json(body["plan"]), Query.from_json(body["query"])
    table, cost = quoted(claim["table"]), Cost.from_json(claim)
    unit = "row" if claim["unit"] is None else quoted(claim["unit"])
    costs = ((letter, getattr(cost, name)) for name, letter in CURRENCIES)
    price = ", ".join(f"{letter} ≤ {amount(paid, up=True)}" for letter, paid in costs if paid)
    relation = "changed" if claim["neighbours"] == "change-one" else "more or less"
    however = "" if claim["unit"] is None else ", however many rows it has"
    sentences = (
        f"Whatever the data were: with one {unit} {relation}{however}, the probabilities of all "
        f"answers differ by no more than {price} allows.",
        "It is the price of the whole answer: all its columns and groups, and which keys it shows.",
    )
    columns = ", ".join(f"{quoted(part.name)} ({part.function})" for part in query.aggregates)
    engine = body.get("engine")  # which earlier certificates do not name
    # short: where a line is cut, a name must not come out of its quotes
    known = plan_facts(plan, query, "", named=lambda name, _: quoted(name, 16))
    facts = (
        ("table", table),
        ("released", columns),
        ("groups", "found privately" if plan.groups is None else f"{plan.groups}, public"),
        ("privacy unit", f"one {unit} {relation}"),
        ("contribution bound", f"{plan.max_rows} {'row' if plan.max_rows == 1 else 'rows'} in all"),
        *(
            (row.what, f"{row.noise}: {row.price}" if row.price else row.noise)
            for row in known.rows
        ),
        ("adds up", known.composition),
        *(() if engine is None else (("engine", _engine(engine)),)),
        ("SHA-256 of the rows", str(claim["rows"])),
    )
    return Claim(f"An answer from {table}", price, sentences, facts)


def _engine(engine: Json) -> str:
    return f"{engine['name']} {engine['version']}, dialect {engine['dialect']}"


def _composition(claim: Json, body: Json) -> Claim:
    epsilon, delta = number(claim["epsilon"]), number(claim["delta"])
    losses = [*claim["losses"], *claim["on_trust"]]
    count = sum(loss["times"] for loss in losses)
    releases = f"{count:,} {'release' if count == 1 else 'releases'}"
    price = f"ε ≤ {up(epsilon)}, δ ≤ {up(delta)}"
    relation = {
        "add-remove": "one {} more or less",
        "change-one": "one {} changed",
    }.get(claim["neighbours"]["relation"], "as declared for each release, by {}")
    about = relation.format(quoted(claim["neighbours"]["unit"]))
    if body["form"] == "sum":
        form = "the losses add up"
    elif body["form"] == "lattice":
        form = f"law of the sum, steps of {exact(body['step'])}, order {exact(body['order'])}"
    else:
        form = f"product of moments, order {exact(body['order'])}"
    tight = claim["tight_epsilon_on_trust"]
    sentences = [
        f"For all data and all neighbours ({about}), {price} bounds how far the probabilities of "
        f"all answers differ. They are the answers of the {releases} together.",
    ]
    if claim["on_trust"]:
        sentences.append(
            "Losses on trust are not checked: the total holds if their moments, which the file "
            "states, are right."
        )
    if tight is not None:
        sentences.append("The file names a smaller ε too: it is not proved, and not shown here.")
    facts = (
        *(("loss", _loss(loss)) for loss in claim["losses"]),
        *(("loss, on trust", _loss(loss)) for loss in claim["on_trust"]),
        ("neighbours", about),
        ("proof", form),
        ("epsilon, checked", up(epsilon)),
        ("delta", up(delta)),
    )
    return Claim(f"{releases} together", price, tuple(sentences), facts)


def _loss(written: Json) -> str:
    """A loss and how often it occurs."""
    parts = []
    for name, value in written.items():
        if name == "outcomes":
            parts.append(f"{len(value)} outcomes")
        elif name == "log_moment":
            parts.append(f"ln of the moment ≤ {up(number(value))}")
        elif name not in ("loss", "times"):
            parts.append(
                f"{name.replace('_', ' ')} {value if type(value) is int else exact(value)}"
            )
    kind = str(written["loss"]).removesuffix("Loss")
    return f"{kind}, {', '.join(parts)}; {written['times']:,} ×"


# ---------------------------------------------------------------- running code


def _law(claim: Json, body: Json) -> Claim:
    x, y = map(float_name, claim["inputs"])
    first, second = (x, y) if claim["direction"] == "forward" else (y, x)
    p, q = (probability(number(ratio)) for ratio in claim["probabilities"])
    if claim["loss"] == "infinite":
        verdict, loss = "the loss is infinite", "infinite"
        told = (
            f"From {second} it never comes: an observer who sees it knows the input was not that."
        )
    else:
        low, high = (number(end) for end in claim["loss"])
        verdict = f"loss {rounded_up(high, _MANY)}"
        loss = f"between {rounded_down(low, _MANY)} and {rounded_up(high, _MANY)}"
        told = f"No output tells {x} and {y} better apart."
    sentences = (
        f"The exact privacy loss between the inputs {x} and {y} is {loss}.",
        f"The output {float_name(claim['output'])} comes with probability {p} from the input "
        f"{first}, and with probability {q} from {second}. {told}",
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


def _refutation(claim: Json, body: Json) -> Claim:
    x, y = map(float_name, claim["inputs"])
    low, high = map(float_name, claim["outputs"])
    p, q = (number(ratio) for ratio in claim["probabilities"])
    single = claim["outputs"][0] == claim["outputs"][1]  # as texts: -0.0 is not 0.0 here
    outputs = f"The output is {low}" if single else f"The output lies from {low} to {high}"
    if claim["loss"] == "infinite":
        verdict = "the loss is infinite"
        told = (
            f"An observer who sees such an output knows that the input was not {y}. No ε "
            f"holds, unless with a δ of {down(p)} or more."
        )
    else:
        loss = down(number(claim["loss"]))
        verdict = f"loss ≥ {loss}"
        told = f"The logarithm of their ratio is at least {loss}."
    sentences = (
        f"{outputs} with probability {probability(p)} from the input {x}, and with "
        f"probability {probability(q)} from the input {y}. {told}",
    )
    facts = (*_about(claim), *_monotone(claim, body), ("outputs", f"{low} to {high}"))
    verdict += _if_monotone(claim)
    return Claim(f"{quoted(claim['function'])} tells two inputs apart", verdict, sentences, facts)


def _if_monotone(claim: Json) -> str:
    """What a verdict on running code adds where its direction is not proved."""
    return ", if the code is monotone (only probed)" if claim["monotone"] == "probed" else ""


def _monotone(claim: Json, body: Json) -> Facts:
    if claim["monotone"] == "probed":
        return (("monotone", "probed, not proved: see the assumptions"),)
    many = len(body["programs"]) > 1
    names = [f"code, sign {sign:+d}" if many else "code" for sign in claim["signs"] or [0]]
    steps = zip(names, map(_code, body["programs"]), strict=True)
    return (("monotone", "proved from its steps"), *steps)


def _about(claim: Json) -> Facts:
    pairs = sorted(claim["parameters"].items())
    parameters = ", ".join(f"{quoted(name)} = {float_name(value)}" for name, value in pairs)
    return (
        ("function", quoted(claim["function"])),
        *((("parameters", parameters),) if parameters else ()),
        ("inputs", " and ".join(map(float_name, claim["inputs"]))),
        ("uniform", uniform_words(claim["uniform"])),
        ("sign", "none" if claim["signs"] is None else "fair, +1 or -1"),
    )


def uniform_words(model: Json) -> str:
    """The model of a generator."""
    if model["model"] == "full":
        bits, least = model["significand"], model["least_exponent"]
        return f"all floats of (0, 1) with {bits} bits, down to 2**{least}"
    if model["model"] == "within":
        return f"any generator within {model['delta_0']} of a uniform real"
    if model["model"] == "words":
        radius, turn = up(number(model["radius"])), up(number(model["turn"]))
        drawn = f"(k + 1/2)/2**{model['bits']}, all alike"
        return f"{drawn}; the radius within {radius}, cosine and sine within {turn}"
    offset = f"k + {model['offset']}" if model["offset"] != "0" else "k"
    start = f", k from {model['first']} on" if model["first"] else ""
    return f"({offset})/2**{model['bits']}{start}, all alike"
