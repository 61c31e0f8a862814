"""Re-derives exact losses and refutations of running code, calling the code at boundaries only.

Believed: the machine's floats, that the code is monotone in its uniform between the splits that the
claim names (if that is "proved": that it takes the steps in `programs`, which `direction.py`
follows), that it draws as the model says, and that its answer depends on nothing but its arguments.
It is called twice each time, and at all boundaries again in other orders, which finds code that
draws, counts or remembers, but code can hide such things; and at uniforms between the boundaries,
which finds most code that turns there. Check only what names code you would run.

Kind "law". For each of two inputs the uniforms are cut into cells without gaps; the code gives the
cell's output at both ends of it, and outputs rise or fall from cell to cell. So the cells are the
preimages, their probabilities the model's, and the loss the greatest log-ratio of their sums.

Kind "refutation". For each of two inputs the preimage of a range of outputs is given; the code is
inside the range at both ends of it, and outside, on the proper side, just beyond. So it is the
whole preimage, and both probabilities are exact.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import re
import struct
from bisect import bisect_left
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from .code import running_code
from .direction import check_monotone, reaches
from .intervals import check_model, interval_of
from .numbers import Json, Rejected, ln_bounds, number, require

_NAME = re.compile(r"[A-Za-z]\w*(\.[A-Za-z]\w*)*:[A-Za-z]\w*", re.ASCII)
_ABOUT = frozenset({"function", "code", "parameters", "uniform", "signs", "splits", "inputs"})
_LAW = _ABOUT | {"loss", "direction", "output", "probabilities", "monotone"}
_REFUTATION = _ABOUT | {"outputs", "loss", "probabilities", "monotone"}
_WIDEST = Fraction(1, 1 << 64)
_TRIED = 64
_TURNS = "the function gives another output between the boundaries: it is not monotone"


def check_law(claim: Json, body: Json) -> None:
    """Reject unless the cells prove the claimed loss of two inputs."""
    require(set(body) == {"laws", "programs"}, "a field is missing, or one too many")
    code = _Code(claim, _LAW)
    require(len(body["laws"]) == 2, "there are not two laws")
    one, two = (_law(code, x, law) for x, law in zip(code.inputs, body["laws"], strict=True))
    code.check_again()
    _check_direction(code, claim["monotone"], body["programs"])
    pairs = [("forward", r, one[r], two.get(r, Fraction(0))) for r in one]
    pairs += [("backward", r, two[r], one.get(r, Fraction(0))) for r in two]
    output = order(_float(claim["output"]))
    stated = [pair for pair in pairs if pair[0] == claim["direction"] and pair[1] == output]
    require(len(stated) == 1, "the direction or the output does not exist")
    p, q = stated[0][2:]
    require(claim["probabilities"] == [str(p), str(q)], "the probabilities differ")
    # p/q is the greatest ratio: products stand for quotients, as q may be 0
    require(p > 0 and all(a * q <= p * b for _, _, a, b in pairs), "another output is worse")
    if claim["loss"] == "infinite":
        require(q == 0, "the loss is finite")
        return
    require(q > 0, "the loss is infinite")
    low, high = interval_of(claim["loss"])
    least, most = ln_bounds(p / q)
    require(low <= least and most <= high, "the loss lies outside its claimed bounds")
    require(high - low <= _WIDEST, "the loss is claimed to be exact, but its bounds are wide")


def check_refutation(claim: Json, body: Json) -> None:
    """Reject unless the preimages prove the probabilities of a range of outputs."""
    require(set(body) == {"preimages", "programs"}, "a field is missing, or one too many")
    code = _Code(claim, _REFUTATION)
    low, high = (order(_float(end)) for end in claim["outputs"])
    require(low <= high, "the range of outputs is empty")
    require(len(body["preimages"]) == 2, "there are not two preimages")
    p, q = (
        _share(code, value, preimage, low, high)
        for value, preimage in zip(code.inputs, body["preimages"], strict=True)
    )
    code.check_again()
    _check_direction(code, claim["monotone"], body["programs"])
    require(claim["probabilities"] == [str(p), str(q)], "the probabilities differ")
    if claim["loss"] == "infinite":
        require(p > 0 and q == 0, "the loss is finite")
        return
    require(q > 0, "the loss is infinite")
    require(0 < number(claim["loss"]) <= ln_bounds(p / q)[0], "the loss is smaller than claimed")


class _Code:
    """The function, its generator and its inputs, as the claim names them."""

    def __init__(self, claim: Json, fields: frozenset[str]) -> None:
        require("code" in claim, "it does not say which code it is about; verify it again")
        require(set(claim) == fields, "a field is missing, or one too many")
        name = claim["function"]
        require(isinstance(name, str) and bool(_NAME.fullmatch(name)), "the function has no name")
        module, _, attribute = name.partition(":")
        try:
            self.function = getattr(importlib.import_module(module), attribute)
        except (Exception, SystemExit) as failure:  # whatever somebody's module raises
            raise Rejected("the function cannot be imported") from failure
        require(
            claim["code"] == running_code(self.function),
            "the code, or its Python, is not the one that was certified; verify it again",
        )
        self.parameters = {key: _float(text) for key, text in claim["parameters"].items()}
        self.point, self.below, self.size = _model(claim["uniform"])
        signs = [None] if claim["signs"] is None else claim["signs"]
        require(signs in ([None], [-1, 1], [1, -1]), "the signs are neither none nor both")
        self.signs: list[int | None] = [_sign(sign) for sign in signs]
        require(isinstance(claim["splits"], list), "the splits are not a list")
        starts = [0, *claim["splits"]]
        whole = all(type(start) is int for start in starts)
        require(whole and starts == sorted(set(starts)), "the splits are not in order")
        require(starts[-1] < self.size, "a split lies outside the generator")
        ends = [start - 1 for start in [*starts[1:], self.size]]
        self.stretches = [
            (sign, *ends_of) for sign in self.signs for ends_of in zip(starts, ends, strict=True)
        ]
        require(len(claim["inputs"]) == 2, "there are not two inputs")
        self.inputs = [_float(text) for text in claim["inputs"]]
        require(all(map(math.isfinite, self.inputs)), "an input is not finite")
        self.seen: dict[tuple[str, int, int | None], int] = {}
        self.seed = json.dumps([claim["code"], claim["inputs"]])
        self.tried: dict[tuple[int, int], list[int]] = {}

    def at(self, value: float, index: int, sign: int | None) -> int:
        """The output, called for twice, and the same as ever."""
        u, signs = self.point(index), () if sign is None else (sign,)
        for _ in range(2):
            try:
                output = self.function(value, u, *signs, **self.parameters)
            except (Exception, SystemExit) as failure:  # whatever somebody's code raises
                raise Rejected("the function fails at a boundary") from failure
            require(isinstance(output, float) and output == output, "the function gives no number")
            found = order(float(output))
            same = self.seen.setdefault((value.hex(), index, sign), found) == found
            require(same, "the function answers differently each time")
        return found

    def check_again(self) -> None:
        """The same outputs from the last call to the first, and in strides."""
        calls = list(self.seen)
        for value, index, sign in (*reversed(calls), *calls[1::2], *calls[::2]):
            self.at(float.fromhex(value), index, sign)

    def between(self, first: int, last: int) -> list[int]:
        """Uniforms of a stretch, one in each of some parts that are equally likely.

        The same ones for both inputs and signs, and others for other code.
        """
        if (first, last) not in self.tried:
            self.tried[first, last] = list(self._between(first, last))
        return self.tried[first, last]

    def _between(self, first: int, last: int) -> Iterator[int]:
        low, high = self.below(first), self.below(last + 1)
        for k in range(_TRIED):
            block = hashlib.sha256(f"{self.seed} {first} {k}".encode()).digest()
            share = Fraction((k << 64) + int.from_bytes(block[:8], "big"), _TRIED << 64)
            most = low + (high - low) * share
            left, right = first, last  # the last uniform of which no more is below
            while left < right:
                middle = (left + right + 1) // 2
                fits = self.below(middle) <= most
                left, right = (middle, right) if fits else (left, middle - 1)
            yield left

    def share(self, first: int, last: int) -> Fraction:
        return (self.below(last + 1) - self.below(first)) / len(self.signs)


def _check_direction(code: _Code, monotone: object, programs: Any) -> None:
    """Where it is called proved: the steps are monotone, and the code gives what they give."""
    require(monotone in ("proved", "probed"), "it does not say how the code is known monotone")
    require(isinstance(programs, list), "the steps are not a list")
    if monotone == "probed":
        require(not programs, "there are steps that prove nothing")
        return
    require(len(programs) == len(code.signs), "there are not as many programs as signs")
    steps = dict(zip(code.signs, programs, strict=True))
    for value in code.inputs:
        for sign, start, end in code.stretches:
            check_monotone(steps[sign], value, code.point(start), code.point(end))
    for (written, index, sign), output in code.seen.items():
        low, high = reaches(steps[sign], float.fromhex(written), code.point(index))
        # a zero of either sign stands for the other
        inside = order(low if low else -0.0) <= output <= order(high if high else 0.0)
        require(inside, "the code does not take the steps written here")


def _law(code: _Code, value: float, branches: list[Any]) -> dict[int, Fraction]:
    require(len(branches) == len(code.stretches), "a branch is missing, or one too many")
    law: dict[int, Fraction] = {}
    for branch, (sign, start, end) in zip(branches, code.stretches, strict=True):
        require(set(branch) == {"sign", "cells"}, "a branch has other fields")
        require(_sign(branch["sign"]) == sign, "a branch has another sign")
        outputs, cells, after = [], list[tuple[int, int]](), start
        for text, first, last in branch["cells"]:
            output = order(_float(text))
            whole = type(first) is type(last) is int
            require(whole and first == after <= last, "cells leave a gap")
            ends = {code.at(value, index, sign) for index in (first, last)}
            require(ends == {output}, "the function gives another output at the end of a cell")
            outputs.append(output)
            law[output] = law.get(output, Fraction(0)) + code.share(first, last)
            after = last + 1
            cells.append((last, output))
        require(after == end + 1, "cells leave a gap")
        ordered = sorted(set(outputs))
        require(outputs in (ordered, ordered[::-1]), "outputs neither rise nor fall")
        for index in code.between(start, end):
            wanted = cells[bisect_left(cells, index, key=lambda cell: cell[0])][1]
            require(code.at(value, index, sign) == wanted, _TURNS)
    require(sum(law.values()) == 1, "the probabilities do not add up to 1")
    return law


def _share(code: _Code, value: float, preimage: list[Any], low: int, high: int) -> Fraction:
    require(len(preimage) == len(code.stretches), "a branch is missing, or one too many")
    total = Fraction(0)
    for branch, (sign, start, end) in zip(preimage, code.stretches, strict=True):
        require(set(branch) == {"sign", "rises", "range"}, "a branch has other fields")
        require(_sign(branch["sign"]) == sign, "a branch has another sign")
        first, last = branch["range"]
        require(type(first) is type(last) is int, "a range is not written in whole numbers")
        require(start <= first <= last + 1 <= end + 1, "a range lies outside its branch")
        require(isinstance(branch["rises"], bool), "a branch neither rises nor falls")
        way = 1 if branch["rises"] else -1
        least, most = sorted((way * low, way * high))
        before = None if first == start else way * code.at(value, first - 1, sign)
        after = None if last == end else way * code.at(value, last + 1, sign)
        require(before is None or before < least, "outputs before the range belong to it")
        require(after is None or most < after, "outputs after the range belong to it")
        if first <= last:
            found = [way * code.at(value, index, sign) for index in (first, last)]
            require(least <= found[0] <= found[1] <= most, "the range has other outputs")
        for index in code.between(start, end):
            inside = least <= way * code.at(value, index, sign) <= most
            require(inside == (first <= index <= last), _TURNS)
        ends = [way * code.at(value, index, sign) for index in (start, end)]
        require(ends[0] <= ends[1], "the branch goes the other way")
        total += code.share(first, last)
    return total


def _model(uniform: Json) -> tuple[Callable[[int], float], Callable[[int], Fraction], int]:
    """The floats of a generator, the probability below each, and how many there are."""
    check_model(uniform)
    if uniform["model"] == "full":
        unit, least = 1 << (uniform["significand"] - 1), uniform["least_exponent"]

        def full(index: int) -> Fraction:
            # the exponent least + index // unit is at most 0
            return Fraction(unit + index % unit, unit << -(least + index // unit))

        return lambda i: float(full(i)), lambda i: full(i) if i else Fraction(0), -least * unit
    bits, start = uniform["bits"], uniform["first"] + number(uniform["offset"])
    size = (1 << bits) - uniform["first"]
    return lambda i: float((i + start) / (1 << bits)), lambda i: Fraction(i, size), size


def order(x: float) -> int:
    """Floats as integers in the same order, -0.0 just below 0.0."""
    pattern: int = struct.unpack("<q", struct.pack("<d", x))[0]
    return pattern if pattern >= 0 else -(pattern & 0x7FFF_FFFF_FFFF_FFFF) - 1


def _float(text: object) -> float:
    require(isinstance(text, str), "a float is not written in hexadecimal")
    value = float.fromhex(str(text))
    require(value == value and value.hex() == text, "a float is not written in hexadecimal")
    return value


def _sign(value: Any) -> int | None:
    require(value is None or type(value) is int, "a sign is not an integer")
    return value  # type: ignore[no-any-return]
