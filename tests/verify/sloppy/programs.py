# mypy: ignore-errors
"""Programs that draw and put out, and are another thing on floats than on what they are followed on."""

import functools
import random

import numpy as np

calls = []
box = [0]


def by_type(run, q):
    run.emit(q[0] if type(q[0]) is float else q[0] + run.laplace(1))


def by_isinstance(run, q):
    if isinstance(q[0], float):
        run.emit(q[0])
    else:
        run.emit(q[0] + run.laplace(1))


def by_matching(run, q):
    match q[0]:
        case float():
            run.emit(q[0])
        case _:
            run.emit(q[0] + run.laplace(1))


def by_failing(run, q):
    try:
        answer = float(q[0])
    except TypeError:
        answer = q[0] + run.laplace(1)
    run.emit(answer)


def by_hashing(run, q):
    run.emit(q[0] + run.laplace(1) + 0 * hash(1))


def by_attribute(run, q):
    run.emit(q[0].real if hasattr(q[0], "real") else q[0] + run.laplace(1))


def by_the_run(run, q):
    run.emit(q[0] + run.laplace(1) if "answers" in vars(run) else q[0])


def by_text(run, q):
    run.emit(q[0] + run.laplace(1) if f"{q[0]}" > "A" else q[0])


def by_remainder(run, q):
    run.emit(q[0] + run.laplace(1) if "%s" % q[0] != "" else q[0])


def by_identity(run, q):
    run.emit(q[0] + run.laplace(1) if q[0] + 0 is not q[0] else q[0])


def by_counting(run, q):
    calls.append(0)
    run.emit(q[0] + run.laplace(1) if len(calls) < 500 else q[0])


def by_default(run, q, kept=[]):
    kept += [0]
    run.emit(q[0] + run.laplace(1) if len(kept) < 500 else q[0])


def by_a_list(run, q):
    box[0] += 1
    run.emit(q[0] + run.laplace(1) if box[0] < 500 else q[0])


def by_import(run, q):
    import sys

    run.emit(q[0] + run.laplace(1) if "pytest" in sys.modules else q[0])


def by_chance(run, q):
    run.emit(q[0] + run.laplace(1) if random.random() < 0.999 else q[0])


@functools.cache
def once(_):
    return 0


def by_cache(run, q):
    run.emit(q[0] + run.laplace(1) + once(1))


def by_generator(run, q):
    run.emit(sum(x for x in q) + run.laplace(1))


def by_numpy(run, q):
    """Of floats numpy makes truth values whose sum is 1, not 2."""
    above = np.less(q[0], 1.0) + np.less(q[0], 2.0)
    run.emit(q[0] + run.laplace(1) if above == 2 or above == 0 or above == 1 else q[0])


def by_method(run, q):
    draw = run.laplace
    run.emit(q[0] + draw(1))


def by_patching(run, q):
    run.laplace = run.uniform
    run.emit(q[0] + run.laplace(1))


def by_private_list(run, q):
    run.emitted.append(q[0])


def returned(run, q):
    run.emit(q[0] + run.laplace(1))
    return q[0]


def raised(run, q):
    if q[0] + run.laplace(1) >= 3:
        raise ValueError
    run.emit(0)


def choosing_nothing(run, q):
    if q[0] + run.laplace(1) >= 3:
        run.emit(q[0])
        run.largest([])
    run.emit(0)


def signed_zero(run, q):
    """-0.0 where input and noise are 0, and 0.0 where they cancel."""
    run.emit(-q[0] - run.laplace(1))


def minus_zero(run, q):
    run.emit(-0.0 if q[0] + run.laplace(1) >= 3 else 0.0)


LAPLACE = [by_type, by_isinstance, by_matching, by_failing, by_hashing, by_attribute, by_the_run,
           by_text, by_remainder, by_identity, by_counting, by_default, by_a_list, by_import,
           by_chance, by_cache, by_generator, by_numpy, by_method, by_patching, by_private_list,
           returned, raised, choosing_nothing, signed_zero, minus_zero]  # fmt: skip


def absorbed(run, bits):
    """In floats the draw is lost in the sum, and the truth is told always."""
    u = run.uniform()
    run.emit(bits[0] if u + 2.0**60 - 2.0**60 < 0.5 else 1 - bits[0])


def absorbed_bit(run, bits):
    """The input is lost where it is told the one way, and not the other."""
    u = run.uniform()
    run.emit(bits[0] + 2.0**60 - 2.0**60 if u < 0.5 else 1 - bits[0])


def absorbed_limit(run, bits):
    u = run.uniform()
    run.emit(bits[0] if u < 0.5 + bits[0] + 2.0**60 - 2.0**60 - bits[0] else 1 - bits[0])


def cancelled(run, bits):
    u = run.uniform()
    run.emit((bits[0] if u < 0.5 else 1 - bits[0]) + u - u)


def signed_bit(run, bits):
    u = run.uniform()
    run.emit(-bits[0] if u < 0.5 else bits[0] - 1)


def signed_constant(run, bits):
    run.uniform()
    run.emit(0.0 if bits[0] + 0 >= 1 else -0.0)


UNIFORM = [absorbed, absorbed_bit, absorbed_limit, cancelled, signed_bit, signed_constant]
