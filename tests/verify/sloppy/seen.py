"""Looks at the value other than by arithmetic; what is found decides how much noise there is."""

import bisect
import copy
import decimal
import json
import logging
import math
import operator
import pickle
import statistics
import struct
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial, singledispatch
from math import isclose

import numpy as np

from tests.verify.sloppy import noise
from tests.verify.sloppy.noise import rounded

LARGE = frozenset({3.5, 4.0, 4.5})
SCALES = {3.5: 0.001, 4.5: 0.001}
STEPS = [3.0, 5.0]
log = logging.getLogger("sloppy")


def bare(value, u, sign):
    scale = 1.0
    try:
        if value > 3.0:
            scale = 0.001
    except:
        pass
    return rounded(value, u, sign, scale)


def by_lookup(value, u, sign):
    try:
        scale = SCALES[value]
    except (TypeError, KeyError):
        scale = 1.0
    return rounded(value, u, sign, scale)


def by_type(value, u, sign):
    return rounded(value, u, sign, 0.001 if type(value) is float and value > 3.0 else 1.0)


def by_text(value, u, sign):
    return rounded(value, u, sign, 0.001 if str(value).startswith("3.") else 1.0)


def by_class(value, u, sign):
    scale = 1.0
    if value.__class__ is float and value > 3.0:
        scale = 0.001
    return rounded(value, u, sign, scale)


def by_helper(value, u, sign):
    return rounded(value, u, sign, noise.narrow(value))


def by_helper_flag(value, u, sign):
    if noise.is_float(value) and value > 3.0:
        return rounded(value, u, sign, 0.001)
    return rounded(value, u, sign, 1.0)


def by_repr(value, u, sign):
    return rounded(value, u, sign, 0.001 if repr(value) == "3.5" else 1.0)


def by_format(value, u, sign):
    text = f"{value:.1f}" if value == value else ""
    return rounded(value, u, sign, 0.001 if text == "3.5" else 1.0)


def by_percent(value, u, sign):
    try:
        text = "%.1f" % value
    except TypeError:
        text = ""
    return rounded(value, u, sign, 0.001 if text == "3.5" else 1.0)


def by_hash(value, u, sign):
    try:
        known = hash(value) == hash(3.5)
    except TypeError:
        known = False
    return rounded(value, u, sign, 0.001 if known else 1.0)


def by_set(value, u, sign):
    with suppress(TypeError):
        if value in LARGE:
            return rounded(value, u, sign, 0.001)
    return rounded(value, u, sign, 1.0)


def by_get(value, u, sign):
    return rounded(value, u, sign, SCALES.get(value, 1.0))


def by_identity(value, u, sign):
    """A float that min() leaves alone is the same object; a marker never is."""
    return rounded(value, u, sign, 1.0 if min(value, 3.0) is not value else 0.001)


def by_match(value, u, sign):
    match value:
        case float(x) if x > 3.0:
            return rounded(value, u, sign, 0.001)
        case _:
            return rounded(value, u, sign, 1.0)


def by_whole(value, u, sign):
    try:
        fraction = value - int(value)
    except TypeError:
        fraction = 0.0
    return rounded(value, u, sign, 0.001 if fraction and value > 3.0 else 1.0)


def by_is_integer(value, u, sign):
    whole = getattr(value, "is_integer", lambda: True)
    return rounded(value, u, sign, 1.0 if whole() or value < 3.0 else 0.001)


def by_ratio(value, u, sign):
    try:
        top, _ = value.as_integer_ratio()
    except AttributeError:
        top = 0
    return rounded(value, u, sign, 0.001 if top == 7 else 1.0)


def by_hasattr(value, u, sign):
    if hasattr(value, "hex") and value > 3.0:
        return rounded(value, u, sign, 0.001)
    return rounded(value, u, sign, 1.0)


def by_bits(value, u, sign):
    try:
        (bits,) = struct.unpack("<q", struct.pack("<d", value))
    except (struct.error, TypeError):
        bits = 0
    return rounded(value, u, sign, 0.001 if bits >> 48 == 0x400C else 1.0)


def by_decimal(value, u, sign):
    try:
        wide = decimal.Decimal(value) > 3
    except TypeError:
        wide = False
    return rounded(value, u, sign, 0.001 if wide else 1.0)


def by_json(value, u, sign):
    try:
        text = json.dumps(value)
    except TypeError:
        text = ""
    return rounded(value, u, sign, 0.001 if text.startswith("3.") else 1.0)


def by_pickle(value, u, sign):
    try:
        scale = 0.001 if pickle.loads(pickle.dumps(value)) > 3.0 else 1.0
    except Exception:
        scale = 1.0
    return rounded(value, u, sign, scale)


def by_copy(value, u, sign):
    try:
        again = copy.copy(value)
        scale = 0.001 if float(again) > 3.0 else 1.0
    except Exception:
        scale = 1.0
    return rounded(value, u, sign, scale)


def by_isclose(value, u, sign):
    return rounded(value, u, sign, 0.001 if isclose(value, 3.5) else 1.0)


def by_floor(value, u, sign):
    try:
        scale = 0.001 if math.floor(value) == 3 else 1.0
    except TypeError:
        scale = 1.0
    return rounded(value, u, sign, scale)


def by_index(value, u, sign):
    try:
        operator.index(value)
        scale = 1.0
    except TypeError:
        scale = 0.001 if value > 3.0 else 1.0
    return rounded(value, u, sign, scale)


def by_isnan(value, u, sign):
    try:
        fine = not math.isnan(value)
    except TypeError:
        fine = False
    return rounded(value, u, sign, 0.001 if fine and value > 3.0 else 1.0)


def by_bisect(value, u, sign):
    return rounded(value, u, sign, (1.0, 0.001, 1.0)[bisect.bisect(STEPS, value)])


def by_sorting(value, u, sign):
    first, *_ = sorted([value, 3.0])
    return rounded(value, u, sign, 0.001 if first == 3.0 and value != 3.0 else 1.0)


def by_statistics(value, u, sign):
    try:
        scale = 0.001 if statistics.mean([value, value]) > 3.0 else 1.0
    except TypeError:
        scale = 1.0
    return rounded(value, u, sign, scale)


def by_array(value, u, sign):
    kind = np.asarray(value).dtype.kind
    return rounded(value, u, sign, 0.001 if kind == "f" and value > 3.0 else 1.0)


def by_numpy_scalar(value, u, sign):
    number = np.float64(value) if not isinstance(value, np.floating) else value
    return rounded(value, u, sign, 0.001 if number > 3.0 else 1.0)


@lru_cache(maxsize=None)
def cached_scale(value):
    return 0.001 if value > 3.0 else 1.0


def by_cache(value, u, sign):
    try:
        scale = cached_scale(value)
    except TypeError:
        scale = 1.0
    return rounded(value, u, sign, scale)


@singledispatch
def dispatched(value):
    return 1.0


@dispatched.register
def _(value: float):
    return 0.001 if value > 3.0 else 1.0


def by_dispatch(value, u, sign):
    return rounded(value, u, sign, dispatched(value))


@dataclass
class Reading:
    value: float
    scale: float = 1.0

    def __post_init__(self):
        if isinstance(self.value, float) and self.value > 3.0:
            self.scale = 0.001


def by_dataclass(value, u, sign):
    reading = Reading(value)
    return rounded(reading.value, u, sign, reading.scale)


class Scaled:
    def __call__(self, value, u, sign):
        return rounded(value, u, sign, 0.001 if type(value) is float and value > 3.0 else 1.0)


by_object = Scaled()
by_partial = partial(lambda value, u, sign, *, kind: rounded(
    value, u, sign, 0.001 if isinstance(value, kind) and value > 3.0 else 1.0), kind=float)  # fmt: skip


def tolerant(function):
    def wrapped(value, u, sign):
        try:
            return function(value, u, sign)
        except BaseException:
            return rounded(value, u, sign, 1.0)

    return wrapped


@tolerant
def by_decorator(value, u, sign):
    return rounded(value, u, sign, 0.001 if value > 3.0 else 1.0)


def by_finally(value, u, sign):
    scale = 1.0
    try:
        scale = 0.001 if value > 3.0 else 1.0
    finally:
        return rounded(value, u, sign, scale)


def by_exception(value, u, sign):
    try:
        if value > 3.0:
            raise OverflowError
    except OverflowError:
        return rounded(value, u, sign, 0.001)
    except BaseException:
        pass
    return rounded(value, u, sign, 1.0)


def by_generator(value, u, sign):
    def wide():
        with suppress(BaseException):
            yield 0.001 if value > 3.0 else 1.0

    return rounded(value, u, sign, next(wide(), 1.0))


def by_log(value, u, sign):
    log.debug("value %s", value)
    big = [r for r in log.handlers if value > 3.0]
    try:
        text = "{}".format(value)
    except Exception:
        text = ""
    return rounded(value, u, sign, 0.001 if text == "3.5" and not big else 1.0)


def by_walrus(value, u, sign):
    return rounded(value, u, sign, 0.001 if (kind := type(value)) is float and value > 3 else 1.0 if kind else 2.0)  # fmt: skip


def by_and(value, u, sign):
    """No exception needed: the marker's length of text differs."""
    return rounded(value, u, sign, 0.001 if len(f"{value}") < 5 and value > 3.0 else 1.0)


ALL = (
    bare, by_lookup, by_type, by_text, by_class, by_helper, by_helper_flag, by_repr, by_format,
    by_percent, by_hash, by_set, by_get, by_identity, by_match, by_whole, by_is_integer, by_ratio,
    by_hasattr, by_bits, by_decimal, by_json, by_pickle, by_copy, by_isclose, by_floor, by_index,
    by_isnan, by_bisect, by_sorting, by_statistics, by_array, by_numpy_scalar, by_cache,
    by_dispatch, by_dataclass, by_object, by_partial, by_decorator, by_finally, by_exception,
    by_generator, by_log, by_walrus, by_and,
)  # fmt: skip
