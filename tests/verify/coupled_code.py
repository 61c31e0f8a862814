"""Programs that draw, compare and put out: right ones, and what people got wrong."""

from __future__ import annotations

# Every right program is 1-private for queries that differ by at most 1 (each, or one of them).


def laplace(run, queries):
    run.emit(queries[0] + run.laplace(1))


def histogram(run, counts):
    for count in counts:
        run.emit(count + run.laplace(1))


def noisy_max(run, queries):
    run.emit(run.largest([query + run.laplace(2) for query in queries]))


def above_threshold(run, queries):
    """SVT 1 of Lyu and others: stops at the first that is above."""
    limit = 10 + run.laplace(2)
    for k, query in enumerate(queries):
        if query + run.laplace(4) >= limit:
            run.emit(k)
            return
    run.emit(-1)


def above_twice(run, queries, scale=8):
    """SVT 1 with two that may be above: noise for each is twice as large."""
    limit = 10 + run.laplace(2)
    count = 0
    for query in queries:
        above = query + run.laplace(scale) >= limit
        run.emit(1 if above else 0)
        count += above
        if count == 2:
            return


def monotone(run, queries):
    """SVT of queries that all move the same way: half the noise will do."""
    above_twice(run, queries, scale=4)


def fresh_limit(run, queries):
    """SVT 2: the limit is drawn again after each that is above."""
    limit, count = 10 + run.laplace(4), 0
    for query in queries:
        above = query + run.laplace(8) >= limit
        fresh = run.laplace(4)
        run.emit(1 if above else 0)
        if above:
            limit, count = 10 + fresh, count + 1
            if count == 2:
                return


def numeric(run, queries):
    """The first that is above, with its value from noise of its own."""
    limit = 10 + run.laplace(4)
    for k, query in enumerate(queries):
        if query + run.laplace(8) >= limit:
            run.emit(k)
            run.emit(query + run.laplace(2))
            return
    run.emit(-1)


def gap(run, queries):
    """The first that is above, and by how much: at no further cost."""
    limit = 10 + run.laplace(2)
    for k, query in enumerate(queries):
        noisy = query + run.laplace(4)
        if noisy >= limit:
            run.emit(k)
            run.emit(noisy - limit)
            return
    run.emit(-1)


def adaptive(run, queries, wide=8, scale=4):
    """The first that is far above, which costs less, or above."""
    limit = 10 + run.laplace(2)
    for query in queries:
        far = query + run.laplace(wide) - limit
        near = query + run.laplace(scale) - limit
        if far >= 16:
            run.emit(far)
            return
        if near >= 0:
            run.emit(near)
            return
        run.emit(0)


def partial_sum(run, values):
    run.emit(sum(values) + run.laplace(1))


def prefix_sums(run, values):
    total = 0
    for value in values:
        total = total + (value + run.laplace(1))
        run.emit(total)


def smart_sums(run, values):
    """Blocks of two: a value is in the sum of its block, and alone in front of it."""
    whole = 0
    for one, two in zip(values[::2], values[1::2], strict=True):
        run.emit(whole + (one + run.laplace(2)))
        whole = whole + (one + two + run.laplace(2))
        run.emit(whole)


def response(run, bits):
    """Randomised response: the truth three times out of four."""
    u = run.uniform()
    for bit in bits:
        run.emit(bit if u < 0.75 else 1 - bit)


def two_coins(run, bits):
    """The truth at heads; at tails the second coin."""
    truth, second = run.uniform(), run.uniform()
    if truth < 0.5:
        run.emit(bits[0])
    elif second < 0.5:
        run.emit(1)
    else:
        run.emit(0)


# ---------------------------------------------------------------- wrong


def little_noise(run, queries):
    run.emit(queries[0] + run.laplace(0.5))


def same_noise(run, counts):
    noise = run.laplace(1)
    for count in counts:
        run.emit(count + noise)


def without_noise(run, queries):
    run.emit(queries[0])


def added_twice(run, queries):
    run.emit(queries[0] + queries[0] + run.laplace(1))


def one_without(run, counts):
    for count in counts[1:]:
        run.emit(count + run.laplace(1))
    run.emit(counts[0])


def twice_told(run, counts):
    for count in (*counts, *counts):
        run.emit(count + run.laplace(1))


def max_of_little(run, queries):
    run.emit(run.largest([query + run.laplace(1) for query in queries]))


def value_of_max(run, queries):
    """The noisy value of the largest is put out as well."""
    noisy = [query + run.laplace(2) for query in queries]
    best = run.largest(noisy)
    run.emit(best)
    run.emit(noisy[best])


def max_without(run, queries):
    run.emit(run.largest(queries))


def same_noise_max(run, queries):
    noise = run.laplace(2)
    run.emit(run.largest([query + noise for query in queries]))


def svt3(run, queries):
    """SVT 3 of Lyu and others: the noisy value itself is put out."""
    limit = 10 + run.laplace(2)
    for k, query in enumerate(queries):
        noisy = query + run.laplace(4)
        if noisy >= limit:
            run.emit(k)
            run.emit(noisy)
            return
    run.emit(-1)


def svt4(run, queries):
    """SVT 4: noise of the queries that does not grow with how many may be above."""
    above_twice(run, queries, scale=4)


def monotone_little(run, queries):
    above_twice(run, queries, scale=2)


def svt5(run, queries):
    """SVT 5: no noise for the queries."""
    limit = 10 + run.laplace(2)
    for query in queries:
        run.emit(1 if query >= limit else 0)


def svt6(run, queries):
    """SVT 6: no end, however many are above."""
    limit = 10 + run.laplace(2)
    for query in queries:
        run.emit(1 if query + run.laplace(4) >= limit else 0)


def bare_limit(run, queries):
    for k, query in enumerate(queries):
        if query + run.laplace(4) >= 10:
            run.emit(k)
            return
    run.emit(-1)


def limit_told(run, queries):
    noise = run.laplace(2)
    run.emit(noise)
    for k, query in enumerate(queries):
        if query + run.laplace(4) >= 10 + noise:
            run.emit(k)
            return
    run.emit(-1)


def numeric_same(run, queries):
    """The value with the noise that was compared."""
    limit = 10 + run.laplace(4)
    for k, query in enumerate(queries):
        noisy = query + run.laplace(4)
        if noisy >= limit:
            run.emit(k)
            run.emit(noisy)
            return
    run.emit(-1)


def numeric_little(run, queries):
    limit = 10 + run.laplace(4)
    for k, query in enumerate(queries):
        if query + run.laplace(8) >= limit:
            run.emit(k)
            run.emit(query + run.laplace(1))
            return
    run.emit(-1)


def numeric_all(run, queries):
    """The value of one that is below."""
    limit = 10 + run.laplace(4)
    for query in queries:
        if query + run.laplace(8) >= limit:
            run.emit(query + run.laplace(2))
        else:
            run.emit(query + run.laplace(2))


def gap_to_ten(run, queries):
    """The gap to the limit without its noise."""
    limit = 10 + run.laplace(2)
    for k, query in enumerate(queries):
        noisy = query + run.laplace(4)
        if noisy >= limit:
            run.emit(k)
            run.emit(noisy - 10)
            return
    run.emit(-1)


def gap_below(run, queries):
    """The gaps of those below, too."""
    limit = 10 + run.laplace(2)
    for query in queries:
        noisy = query + run.laplace(4)
        run.emit(noisy - limit)
        if noisy >= limit:
            return


def gap_little(run, queries):
    limit = 10 + run.laplace(2)
    for k, query in enumerate(queries):
        noisy = query + run.laplace(2)
        if noisy >= limit:
            run.emit(k)
            run.emit(noisy - limit)
            return
    run.emit(-1)


def adaptive_little(run, queries):
    adaptive(run, queries, wide=2)


def adaptive_less(run, queries):
    adaptive(run, queries, scale=3)


def adaptive_query(run, queries):
    """The noisy value of what is far above, not its gap."""
    limit = 10 + run.laplace(2)
    for query in queries:
        noisy = query + run.laplace(8)
        near = query + run.laplace(4) - limit
        if noisy - limit >= 16:
            run.emit(noisy)
            return
        if near >= 0:
            run.emit(near + limit)
            return
        run.emit(0)


def sum_twice(run, values):
    run.emit(sum(values) + sum(values) + run.laplace(1))


def sum_and_first(run, values):
    run.emit(sum(values) + run.laplace(1))
    run.emit(values[0])


def sum_little(run, values):
    run.emit(sum(values) + run.laplace(0.75))


def prefix_of_sums(run, values):
    """Each prefix with noise of its own scale 1: a value is in all later ones."""
    for k in range(len(values)):
        run.emit(sum(values[: k + 1]) + run.laplace(1))


def prefix_bare(run, values):
    total = 0
    for value in values:
        total = total + value
        run.emit(total)


def prefix_twice(run, values):
    total = 0
    for value in values:
        noisy = value + run.laplace(1)
        total = total + noisy
        run.emit(total)
        run.emit(value + run.laplace(1))


def smart_little(run, values):
    whole = 0
    for one, two in zip(values[::2], values[1::2], strict=True):
        run.emit(whole + one + run.laplace(1))
        whole = whole + (one + two + run.laplace(2))
        run.emit(whole)


def smart_bare(run, values):
    whole = 0
    for one, two in zip(values[::2], values[1::2], strict=True):
        run.emit(whole + one + run.laplace(2))
        whole = whole + (one + two)
        run.emit(whole)


def smart_kept(run, values):
    """The blocks are put out as well as the sums of the single values."""
    smart_sums(run, values)
    for value in values:
        run.emit(value + run.laplace(2))


def always_true(run, bits):
    u = run.uniform()
    run.emit(bits[0] if u < 1.0 else 1 - bits[0])


def mostly_true(run, bits):
    u = run.uniform()
    run.emit(bits[0] if u < 0.875 else 1 - bits[0])


def told_twice(run, bits):
    for _ in range(2):
        response(run, bits)


def one_way(run, bits):
    """Who has 0 never says 1."""
    u = run.uniform()
    if bits[0] >= 1:
        run.emit(1 if u < 0.75 else 0)
    else:
        run.emit(0)


PROGRAMS = {
    # right program: its number of inputs, neighbours, and wrong variants with the step that fails
    laplace: (1, "each", {little_noise: "SEQ", without_noise: "EMIT", added_twice: "SEQ"}),
    histogram: (4, "one", {same_noise: "EMIT", one_without: "EMIT", twice_told: "SEQ"}),
    noisy_max: (4, "each", {max_of_little: "SEQ", value_of_max: "SEQ", max_without: "CASE",
                            same_noise_max: "CASE"}),
    above_threshold: (6, "each", {svt3: "SEQ", svt5: "CASE", svt6: "SEQ", bare_limit: "SEQ",
                                  limit_told: "SEQ"}),
    above_twice: (6, "each", {svt4: "SEQ", svt5: "CASE", svt6: "SEQ"}),
    monotone: (6, "same", {monotone_little: "SEQ", svt3: "SEQ", svt5: "CASE", bare_limit: "SEQ"}),
    fresh_limit: (6, "each", {svt3: "SEQ", svt5: "CASE", svt6: "SEQ"}),
    numeric: (6, "each", {numeric_same: "SEQ", numeric_little: "SEQ", numeric_all: "SEQ"}),
    gap: (6, "each", {gap_to_ten: "SEQ", gap_below: "SEQ", gap_little: "SEQ"}),
    adaptive: (4, "each", {adaptive_little: "SEQ", adaptive_less: "SEQ", adaptive_query: "SEQ"}),
    partial_sum: (4, "one", {sum_twice: "SEQ", sum_and_first: "EMIT", sum_little: "SEQ"}),
    prefix_sums: (4, "one", {prefix_of_sums: "SEQ", prefix_bare: "EMIT", prefix_twice: "SEQ"}),
    smart_sums: (4, "one", {smart_little: "SEQ", smart_bare: "EMIT", smart_kept: "SEQ"}),
}  # fmt: skip
RESPONSES = {
    response: {always_true: "UNIFORM", mostly_true: "UNIFORM", told_twice: "UNIFORM"},
    two_coins: {always_true: "UNIFORM", mostly_true: "UNIFORM", one_way: "UNIFORM"},
}
