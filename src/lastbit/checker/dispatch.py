"""Re-derives what a certificate claims, in the checker's own arithmetic.

A certificate's numbers are never believed: each is worked out again from its premises, and the
claim from the last of them. What is believed instead is written in the docstrings here, rule by
rule, and in sentences that a certificate must carry word for word (`beliefs`): without them it
would claim more than is proved. The time taken grows with the size of the file, not with its
numbers; only functions that a certificate names may take as long as they like: checking calls them.

A saved answer holds its certificate; `check` takes the whole answer too, and then also requires
that its numbers, price and words are those that were certified (`answer.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

from .numbers import Json, Rejected, digest, require
from .price import MALFORMED

_CHECKED: Mapping[str, str] = MappingProxyType({
    "composition": "composition.check_composition", "coupling": "coupling.check_coupling",
    "derivation": "loss_derivation.check_derived_loss",
    "error-bound": "error_bound.check_error_bound", "gaussian": "gaussian.check_gaussian",
    "law": "law.check_law", "marginals": "marginals.check_marginals",
    "refutation": "law.check_refutation", "release": "shown.check_release",
    "rounding": "rounding.check_rounding", "polar": "polar.check_polar",
    "snapping": "snapping.check_snapping",
})  # fmt: skip
_WITHOUT_CODE: Mapping[str, str] = MappingProxyType({
    "coupling": "coupling.check_coupling_steps",
    "derivation": "loss_derivation.check_derived_loss_steps",
    "gaussian": "gaussian.check_gaussian_steps", "polar": "polar.check_polar_steps",
    "rounding": "rounding.check_rounding_steps",
})  # fmt: skip
KINDS = tuple(_CHECKED)
_FIELDS = frozenset({"lastbit", "version", "kind", "claim", "assumptions", "body", "digest"})
_BITS = (
    "The random bits are those of a cryptographic generator: the claim is computational, against "
    "whoever cannot tell them from random ones (paper 003, Definition 4)."
)
_RUN = (
    "The code draws its uniform as the model says, and its sign, if any, fairly and apart from it.",
    "The floats of the machine that checks are those of the machine that runs the code.",
    _BITS,
)
_LAW = (
    "Between two boundaries the output neither rises nor falls: the code is monotone in its "
    "uniform there. The producer probed it; the checker runs the code at the boundaries only.",
    *_RUN,
)
_REFUTATION = (
    "The code is monotone in its uniform between the splits named; the checker runs it at the ends "
    "of the preimages only.",
    *_RUN,
)
_MONOTONE = (
    "The code takes the steps written here for every uniform, each correctly rounded; the checker "
    "compares it with them at the boundaries. The library's ln and exp are monotone and within "
    "four ulps. From that it is proved that the code rises or falls with its uniform.",
    *_RUN,
)
_ERROR_BOUND = (
    "Sums, products and quotients are correctly rounded to the nearest, ties to even, one by "
    "one, without fusing or extended precision; the inputs are numbers of the format.",
    "The library's ln, exp and sqrt are within the stated number of ulps of the true value.",
)
_TURN = "So are its cos and sin, in units of the last place of 1."
_SNAPPING = (
    "The mechanism computes clamp(round(clamp(x) + s * (LN(u) / epsilon))) in this format, each "
    "operation rounded to nearest, ties to even; LN is the correctly rounded logarithm.",
    "round goes to the nearest multiple of the grid, ties to even; clamp to [-bound, bound].",
    "The sign s is fair and independent of u; P(u < a) = a for every a of the format between its "
    "least normal number and 1, and no u is less than that number.",
    "Neighbouring databases have query values, as computed, at most 1 apart.",
    _BITS,
)
_ROUNDING = (
    "The basic operations are correctly rounded as IEEE 754 says, one by one, without fusing or "
    "extended precision; the logarithm is within the stated ulps and monotone.",
    "The code computes the sum, rounds it to the nearest multiple of the cell and then moves what "
    "lies beyond the region to its nearer end; zero is released without a sign. The values are "
    "numbers of the format in the region.",
    "The uniform, and the sign if there is one, are drawn as the model says, independently of the "
    "value. Where the logarithm of 0 arises the code goes on with an infinity.",
    _BITS,
)
_WITHIN = (
    "The draws are numbers of the format from 0 to 1. Each one, whatever the value and the draws "
    "before it were, is within delta_0 of a uniform real that is independent of them; nothing else "
    "is known of the generator. A sign is fair and apart from all draws."
)
_GAUSSIAN = (
    "The basic operations are correctly rounded as IEEE 754 says, one by one, without fusing or "
    "extended precision; ln, sqrt and cos of the library are within the stated ulps.",
    _ROUNDING[1],
    "The uniforms are drawn as the model says, independently of one another and of the value, and "
    "two fresh ones serve for one noise; where there is a test of pairs, new ones are drawn until "
    "it gives a number above 0 and below 1.",
    _BITS,
)
_POLAR = (
    "The basic operations are correctly rounded as IEEE 754 says, one by one, without fusing or "
    "extended precision; ln of the library is within the stated ulps, cos and sin within theirs in "
    "units of the last place of 1.",
    "The code adds the noise to a point, rounds both sums to the nearest multiples of the cell, "
    "and reports what lies beyond the region in a coordinate as outside, all of it alike; zero is "
    "released without a sign. The points are numbers of the format among the values.",
    "What is drawn is drawn as the model says, independently of the point and of one another, "
    "afresh for each noise.",
    _BITS,
)
_WORDS = (
    "The radius r, the cosine c and the sine s are within the stated errors of those of two "
    "independent words of bits: (k + 1/2)/2**bits of the law 1 - (1 + r) exp(-r) lies below r, and "
    "c and s are of (m + 1/2)/2**bits of a turn."
)
_COUPLING = (
    "Inputs are multiples of the grid within the bound, as computed, and differ between neighbours "
    "as the claim says. The floats are those of IEEE 754's binary64.",
    "Laplace draws have exactly the discrete law of their scale on the grid, uniforms u exactly "
    "P(u < a) = a for floats a; all are independent of one another and of the inputs.",
    "A choice of the largest takes the first of equal ones; what is put out is seen as floats, "
    "zero without a sign, and nothing else is, running time included.",
    _BITS,
)
_LOGARITHMS = (
    "Products and quotients are correctly rounded, and so is the logarithm that the program is "
    "given; signs are fair and independent of all else; u is never 0."
)
_FOLLOWED = (
    "The code that runs is the code named here, and is called with a list of Python's own floats. "
    "It was screened for anything that it could do otherwise with floats than with the marks on "
    "which it is followed, and tried at finitely many points; a loop takes the number of rounds "
    "that was followed."
)
_CODE = (
    "The code that runs is the code named here, with these constants and on this machine, and is "
    "called with Python's own floats. Its answer depends on its arguments alone: it was screened "
    "for anything else and agreed with the steps bit for bit at finitely many points. Python and "
    "its libraries do at every call what they did there; their functions are within the stated "
    "ulps at every point, tried or not."
)
_STEPS = (
    "The claim is about the steps written in it and names no code: that the code which runs takes "
    "these steps is not checked."
)
_DECLARED = (
    "The ideal noise, the code's meaning in the reals at a uniform real, has a density p with "
    "p(x) <= exp(rate |x - y|) p(y): declared, not proved."
)
_RELEASE = (
    "The data, the joined public tables and the limits are those of the table's card. Its unit "
    "column says whose row a row is; where there is none, each row is somebody else's.",
    "The query and its price, the limits, bounds, steps, edges, declared keys and joined tables "
    "were fixed without a look at the protected data, other than by answers paid for.",
    "The engine computed the measures exactly as the plan says: expressions row by row, values "
    "clamped to the grid, rows weighed by the number of rows of their own unit, all in integers "
    "that did not overflow; a unit that had to choose keys chose by its own rows and a secret "
    "drawn afresh.",
    "Each mechanism ran once, with the parameters of the plan and noise of its exact law, "
    "independent of all else; the rows were made of its results alone, and nothing else that "
    "depends on the data, running time included, was seen.",
    _BITS,
)
_PRIVATE_JOIN = (
    "The private tables that are joined hold rows of the same units, each named by its unit "
    "column; neighbours differ in the rows of one unit in all of these tables. Rows met only where "
    "units were equal, and no more of one unit's than the plan says, chosen by its own rows and a "
    "secret drawn afresh."
)
_PER_UNIT = (
    "Each row of the sub-query was made of rows of one unit: by counting them, by sums of "
    "integers that did not overflow, by quotients of these, or by least and greatest values. No "
    "order of rows changed one."
)
_THROUGH = (
    "A row belongs to the unit that it reaches through the tables of the claim, step by step, by "
    "equal columns; a row that reaches nobody counts for nothing, and one that reaches several "
    "units is there once for each. Neighbours differ in rows through which one unit alone is "
    "reached: its rows in the last table, and rows of the others that lead to nobody else."
)
_COMPOSITION = (
    "Each release is about the same people and no worse than the loss written for it: for every "
    "two neighbours and whatever was answered before, its pair of laws dominates the release; for "
    "ZCDP, the divergence of every order a > 1 is at most a rho.",
    "The losses and how often each occurs were fixed beforehand, and there were no other releases; "
    "a mechanism may have been chosen from earlier answers, its loss may not.",
    _BITS,
)
_MOMENT_ON_TRUST = (
    "The moments of the losses under on_trust are at most what is written there: the producer "
    "computed them, and no other program has."
)
_TIGHT_ON_TRUST = (
    "The epsilon under tight_epsilon_on_trust was computed by the producer alone. It is not proved "
    "here; what is proved is the larger one."
)


_BELIEFS: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "law": _LAW, "refutation": _REFUTATION, "snapping": _SNAPPING,
})  # fmt: skip


def _part(place: str) -> Any:
    """A function of a file of this room, which is loaded when it is needed."""
    file, name = place.split(".")
    return getattr(import_module(f".{file}", __package__), name)


def certificate_in(found: Json) -> Json:
    """The certificate itself, or the one that a saved answer holds."""
    inner = found.get("certificate") if "rows" in found else found
    return inner if isinstance(inner, Mapping) else found


def _drawn(believed: tuple[str, ...], claim: Json) -> tuple[str, ...]:
    """What is believed of noise, and of a generator that is known up to an error."""
    uniform = claim.get("uniform")
    within = isinstance(uniform, Mapping) and uniform.get("model") == "within"
    return (*believed, _WITHIN) if within else believed


def beliefs(kind: object, claim: Json) -> tuple[str, ...]:
    """What a proof of this kind rests on and nothing here checks."""
    match kind:
        case "law" | "refutation" if claim.get("monotone") == "proved":
            return _MONOTONE
        case "error-bound":
            return (*_ERROR_BOUND, *((_TURN,) if {"cos", "sin"} & {*claim.get("ulps", ())} else ()))
        case "derivation":
            return (*_ROUNDING, _CODE if claim["code"] else _STEPS)
        case "rounding":
            require("code" in claim, "it does not say which code it is about; verify it again")
            about = _CODE if claim.get("code") else _STEPS
            return (*_drawn(_ROUNDING, claim), about, *((_DECLARED,) if "rate" in claim else ()))
        case "coupling":
            rounded = any(draw["law"] == "rounded" for draw in claim.get("draws", ()))
            about = _FOLLOWED if claim["code"] else _STEPS
            return (*_COUPLING, *((_LOGARITHMS,) if rounded else ()), about)
        case "gaussian":
            return (*_drawn(_GAUSSIAN, claim), _CODE if claim["code"] else _STEPS)
        case "polar":
            uniform = claim.get("uniform")
            words = isinstance(uniform, Mapping) and uniform.get("model") == "words"
            drawn = (_WORDS,) if words else ()
            return (*_POLAR, *drawn, _CODE if claim["code"] else _STEPS)
        case "composition":
            moments = (_MOMENT_ON_TRUST,) if _part("composition.taken_on_trust")(claim) else ()
            tight = claim.get("tight_epsilon_on_trust", "") is not None
            return (*_COMPOSITION, *moments, *((_TIGHT_ON_TRUST,) if tight else ()))
        case "release":
            joined = (_PRIVATE_JOIN,) if "private" in claim else ()
            way = (_THROUGH,) if "through" in claim else ()
            return (*_RELEASE, *way, *joined, *((_PER_UNIT,) if "per_unit" in claim else ()))
        case "marginals":
            return (*_RELEASE, *((_THROUGH,) if "through" in claim else ()))
        case str() if kind in _BELIEFS:
            return _BELIEFS[kind]
    raise Rejected("its kind is unknown")


def check(certificate: Json) -> None:
    """Raise `Rejected` unless the certificate, or that of a saved answer, proves its claim.

    Code that it names is imported and called.

    >>> check({"lastbit": "certificate"})
    Traceback (most recent call last):
        ...
    lastbit.checker.numbers.Rejected: it lacks a part, or has one too many
    """
    _check_whole(certificate, _CHECKED)


def check_apart_from_code(certificate: Json) -> None:
    """Raise `Rejected` unless all holds that can be seen without running code.

    For a certificate that `names_code` this is no acceptance: whether that code is here, is the
    same and does what the certificate says is left open.
    """
    _check_whole(certificate, {**_CHECKED, "law": "", "refutation": "", **_WITHOUT_CODE})


def check_query(query: Json) -> None:
    """Raise `Rejected` unless a query is whole: what it does with released numbers too."""
    try:
        _part("shown.shown_question")(query)
    except MALFORMED as error:
        raise Rejected(f"it is malformed ({type(error).__name__})") from error


def names_code(certificate: Json) -> bool:
    """Whether a certificate is about code that is run to check it."""
    inner = certificate_in(certificate)
    kind, claim = inner.get("kind"), inner.get("claim")
    if kind in ("derivation", "gaussian", "polar", "rounding") and isinstance(claim, Mapping):
        return claim.get("code") != []
    if kind == "coupling" and isinstance(claim, Mapping):
        return claim.get("code") is not None
    return kind in ("law", "refutation")


def taken_on_trust(certificate: Json) -> bool:
    """Whether a premise of the claim is a number that nothing here re-derives.

    Such a certificate may be checked; that is no acceptance of the whole.
    """
    inner = certificate_in(certificate)
    claim = inner.get("claim")
    if inner.get("kind") != "composition" or not isinstance(claim, Mapping):
        return False
    return bool(_part("composition.taken_on_trust")(claim))


def remarks_on(certificate: Json) -> tuple[str, ...]:
    """What a reader of a certificate or answer that was accepted should know, in sentences.

    Nothing of it contradicts what is claimed: that is refused.
    """
    inner = certificate_in(certificate)
    if inner.get("kind") not in ("release", "marginals"):
        return ()
    return tuple(_part("answer.remarks_on")(certificate, inner))


def _check_whole(found: Json, checked: Mapping[str, str]) -> None:
    try:
        require(isinstance(found, Mapping), "it is not a JSON object")
        certificate = certificate_in(found)
        require(set(certificate) == _FIELDS, "it lacks a part, or has one too many")
        require(certificate["lastbit"] == "certificate", "it is not a certificate")
        version = certificate["version"]
        require(type(version) is int and version == 1, "its version is unknown")
        require(certificate["digest"] == digest(certificate), "it was changed after it was written")
        kind, claim, body = (certificate[part] for part in ("kind", "claim", "body"))
        whole = isinstance(claim, Mapping) and isinstance(body, Mapping)
        require(whole, "claim or body is missing")
        assumptions = certificate["assumptions"]
        said = isinstance(assumptions, list) and all(isinstance(a, str) and a for a in assumptions)
        require(said, "its assumptions are not written out")
        unsaid = set(beliefs(kind, claim)) - set(assumptions)
        require(not unsaid, "its assumptions leave out what the proof rests on")
        place = checked[kind]
        require(bool(place), "it is about running code: without that, nothing can be checked")
        _part(place)(claim, body)
        if certificate is not found:
            _part("answer.check_answer")(found, certificate)
    except MALFORMED as error:
        raise Rejected(f"it is malformed ({type(error).__name__})") from error


def problem_of(certificate: Json) -> str | None:
    """Why a certificate is rejected; None if it is accepted.

    >>> problem_of({"lastbit": "certificate"})
    'it lacks a part, or has one too many'
    """
    try:
        check(certificate)
    except Rejected as problem:
        return str(problem)
    return None
