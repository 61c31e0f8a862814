"""Certificates: what is claimed, on which assumptions, and what the independent checker needs.

`certificate` is the only way to make one, and asks the checker before it returns: what the checker
rejects does not exist. Analyses make theirs before they return a number, so that no bound leaves
without it either; and they keep it, so that the checker is asked once.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from lastbit.arguments import check_path
from lastbit.canonical import digest_of
from lastbit.checker import beliefs, problem_of
from lastbit.errors import InvalidParameter, NotCertified
from lastbit.files import content_of, written_over
from lastbit.reading import MOST_BYTES, NotJson, parse_json

VERSION = 1
_NUMBER = re.compile(r"-?\d{1,4000}(/[1-9]\d{0,3999})?", re.ASCII)
_POWER = re.compile(r"(-?\d{1,4000})p(-?\d{4,6})", re.ASCII)
_FAR = 8192  # binary128 has numbers of 16,494 binary places, and Python writes no 4,301 digits


def written(exact: Fraction) -> str:
    """An exact number as certificates write it: "3", "-1/3", and "5p-16445" for 5 / 2**16445.

    >>> written(Fraction(-1, 3)), written(Fraction(5, 2**16445)), written(Fraction(2**9000))
    ('-1/3', '5p-16445', '1p9000')
    """
    top, bottom = exact.numerator, exact.denominator
    twos = (top & -top).bit_length() - 1 if top else 0
    exponent = twos if bottom == 1 else 1 - bottom.bit_length()
    if abs(exponent) > _FAR and bottom & (bottom - 1) == 0:
        return f"{top >> twos}p{exponent}"
    try:
        return str(exact)
    except ValueError:
        problem, remedy = "has more than 4,300 digits", "pass ratios of shorter numbers"
        raise InvalidParameter("number", problem=problem, remedy=remedy) from None


def number(text: object) -> Fraction:
    """The exact number that `written` wrote.

    >>> number("-1/3"), number("-1p-9000") == Fraction(-1, 2**9000)
    (Fraction(-1, 3), True)
    """
    found = None
    if isinstance(text, str) and (power := _POWER.fullmatch(text)):
        top, exponent = int(power[1]), int(power[2])
        found = Fraction(top << exponent) if exponent > 0 else Fraction(top, 1 << -exponent)
    elif isinstance(text, str) and _NUMBER.fullmatch(text):
        found = Fraction(text)
    if found is None or written(found) != text:
        raise InvalidParameter(
            "number", problem="is not a ratio in lowest terms", remedy="write it as 3 or -1/3"
        )
    return found


def digest(values: Mapping[str, Any]) -> str:
    """SHA-256 of everything but the digest itself, in one canonical spelling."""
    return digest_of({name: value for name, value in values.items() if name != "digest"})


def certify(kind: str, claim: Mapping[str, Any], body: Mapping[str, Any], *more: str) -> Accepted:
    """A certificate with the assumptions that every proof of its kind rests on, and `more`."""
    return certificate(kind, claim, (*beliefs(kind, claim), *more), body)


def certificate(
    kind: str, claim: Mapping[str, Any], assumptions: Sequence[str], body: Mapping[str, Any]
) -> Accepted:
    """A certificate as plain JSON values, sealed by a digest, and accepted by the checker.

    The digest finds a changed digit; it proves nothing. The checker re-derives the claim, and
    `NotCertified` tells what it says against it.
    """
    plain = {
        "lastbit": "certificate",
        "version": VERSION,
        "kind": kind,
        "claim": dict(claim),
        "assumptions": list(assumptions),
        "body": dict(body),
    }
    sealed = json.loads(json.dumps(plain))
    sealed["digest"] = digest(sealed)
    return issued(sealed)


class Accepted(dict[str, Any]):
    """A certificate, and the text of it that the checker accepted: it may have changed since."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        super().__init__(json.loads(text))
        self.text = text

    def is_unchanged(self) -> bool:
        try:
            return json.dumps(self) == self.text
        except (TypeError, ValueError, RecursionError):  # something that JSON has no word for
            return False


def issued(sealed: Mapping[str, Any]) -> Accepted:
    """The certificate, if the checker accepts it; the door that each one passes.

    What has passed, and was not changed since, passes again without a second look.

    >>> issued({"lastbit": "certificate"})
    Traceback (most recent call last):
        ...
    lastbit.errors.NotCertified: the independent checker rejects this certificate: it lacks a ...
    """
    if isinstance(sealed, Accepted) and sealed.is_unchanged():
        return sealed
    problem = problem_of(dict(sealed))
    if problem is not None:
        raise NotCertified(
            f"the independent checker rejects this certificate: {problem}; correct what was "
            "declared, or report it if nothing was"
        )
    return Accepted(json.dumps(sealed))


class Certified(ABC):
    """An analysis with a certificate, which is made once: figures never change.

    Its text is kept in `_text`, a field that starts as an empty list; `beyond`, if there is such a
    field, are assumptions beyond those of its kind.
    """

    __slots__ = ()
    _text: list[str]

    @abstractmethod
    def statement(self) -> tuple[str, dict[str, Any], dict[str, Any]]:
        """The kind of the certificate, its claim and its body."""

    def certificate(self) -> dict[str, Any]:
        """The claim and its proof, for `lastbit.verify.check`."""
        if not self._text:
            self._text.append(certify(*self.statement(), *getattr(self, "beyond", ())).text)
        return Accepted(self._text[0])


def text_of(sealed: Mapping[str, Any]) -> str:
    """A certificate as it is written, one number a line where it helps a reader."""
    return json.dumps(issued(sealed), indent=1, ensure_ascii=False) + "\n"


def save(sealed: Mapping[str, Any], path: Path) -> None:
    """Write a certificate that the checker accepts.

    >>> import tempfile
    >>> from lastbit.verify import analyse, error_certificate, trace
    >>> certificate = error_certificate(analyse(trace(lambda x: x + 1.0), {"x": (0, 2)}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(certificate, Path(folder) / "sum.json")
    ...     read(Path(folder) / "sum.json") == certificate
    True
    """
    written_over(path, text_of(sealed))


def read(path: str | Path) -> dict[str, Any]:
    """The JSON object in a file: every name once, every number finite, nested within reason."""
    check_path(path, "certificate")
    problem, value = "is not a JSON object", None
    try:
        value = parse_json(content_of(path, most=MOST_BYTES))
    except NotJson as error:
        problem = str(error)
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
    if not isinstance(value, dict):
        remedy = "pass a file that lastbit wrote"
        raise InvalidParameter("certificate", problem=problem, remedy=remedy)
    return value
