"""Whether two neighbours are further apart than `stability.moves` says."""

from dataclasses import replace

from lastbit.tables.measures import WEIGHT_ONE, selection_keys
from lastbit.tables.plan.sensitivity import sensitivity_of
from lastbit.tables.plan.tree import tree_over
from tests.stability import reference
from tests.stability.cases import Case, functions_in, typed
from tests.stability.engine import LABS, PUBLIC, SECRET


def vectors(case, found):
    """{measure: {(key, bin): integer}}, and the numbers of units where keys are not declared."""
    result = {}
    for measure in case.measures:
        if measure.kind == "bins":
            lists = dict(zip(found.keys, found.bins[measure.name], strict=True))
            result[measure.name] = {(k, i): n for k, v in lists.items() for i, n in enumerate(v)}
        else:
            entries = dict(zip(found.keys, found.entries[measure.name], strict=True))
            result[measure.name] = {(k, None): n for k, n in entries.items()}
    return result


def moved(one, other):
    """The absolute differences of two sparse vectors that are not 0."""
    differences = (abs(one.get(at, 0) - other.get(at, 0)) for at in one.keys() | other.keys())
    return [difference for difference in differences if difference]


def violations(case: Case, base, other):
    """What the pair breaks: a measure and a norm, or the number of keys."""
    groups = case.query.groups
    first, second = vectors(case, base), vectors(case, other)
    twins = _twins(case.measures)
    for measure in case.measures:
        limit = sensitivity_of(measure, case.card, groups=groups)
        one, two = first[measure.name], second[measure.name]
        if measure.name in twins:  # the two ends together, as one vector
            one, two = (
                {**own, **{(at, "below"): n for at, n in vector[twins[measure.name]].items()}}
                for own, vector in ((one, first), (two, second))
            )
        if groups is None:
            # of a key that only one of them finds nothing is said but with the chance delta: sums
            # of other units that have it too, and chose another, are not released either
            both = one.keys() & two.keys()
            one, two = ({at: entries[at] for at in both} for entries in (one, two))
        steps = moved(one, two)
        if sum(steps) > limit.l1:
            yield measure.kind, "L1"
        if sum(step**2 for step in steps) > limit.l2_squared:
            yield measure.kind, "L2"
        if max(steps, default=0) > limit.linf:
            yield measure.kind, "Linf"
        if measure.kind == "bins":
            yield from _trees(measure, limit, one, two)
    if groups is None:
        own = selection_keys(case.card, case.measures, groups=None) or 1
        most = 2 * own if case.card.neighbours.relation == "change-one" else own
        one = WEIGHT_ONE if any(m.kind == "shares" for m in case.measures) else 1
        units = [dict(zip(found.keys, found.units, strict=True)) for found in (base, other)]
        steps = moved(*units)
        if len(steps) > most or max(steps, default=0) > one:
            yield "keys", "L0"
        alone = moved(
            *(dict(zip(found.keys, found.single, strict=True)) for found in (base, other))
        )
        if alone not in ([], [1]) or (alone and steps):
            yield "keys", "apart"
        shown = [{key for key, number in counts.items() if number} for counts in units]
        if len(shown[0] ^ shown[1]) > most:
            yield "keys", "found"


def _twins(measures):
    """For each upper end the measure of the lower one, on the same grid."""
    ends = {replace(m, name="", kind="above"): m.name for m in measures if m.kind == "below"}
    return {m.name: ends[replace(m, name="")] for m in measures if m.kind == "above"}


def _trees(measure, limit, one, two):
    """Both trees over the bins move, on all levels together, by no more than levels times bins."""
    steps = {at: one.get(at, 0) - two.get(at, 0) for at in one.keys() | two.keys()}
    for gaussian in (False, True):
        tree = tree_over(len(measure.edges) - 1, gaussian=gaussian)
        nodes: dict[object, int] = {}
        for (key, place), step in steps.items():
            for size in tree.sizes if step else ():
                at = (key, size, place // size)
                nodes[at] = nodes.get(at, 0) + step
        if sum(map(abs, nodes.values())) > tree.levels * limit.l1:
            yield "tree", "L1"
        if sum(step**2 for step in nodes.values()) > tree.levels * limit.l2_squared:
            yield "tree", "L2"


def exact(case: Case):
    """Whether the reference knows every function of the query to the last bit."""
    return not functions_in(case.query) & reference.INEXACT


def differs(case: Case, rows, found, labs=None):
    """Whether the engine's integers are not those of the reference."""
    public = {"places": typed(case.places, "places", tuple(PUBLIC))}
    public["labs"] = typed(case.labs if labs is None else labs, "labs", tuple(LABS))
    wanted, units = reference.measured(
        case.query, case.card, case.measures, typed(rows), public, SECRET
    )
    numbers = {key: n for key, n in zip(found.keys, found.units, strict=False) if n}
    if case.query.groups is None and numbers != {key: n for key, n in units.items() if n}:
        return True
    alone = {key: n for key, n in zip(found.keys, found.single, strict=False) if n}
    if alone != {key: n for key, n in wanted.get("single", {}).items() if n}:
        return True
    for measure in case.measures:
        lists = found.bins if measure.kind == "bins" else found.entries
        zero = [0] * (len(measure.edges) - 1) if measure.kind == "bins" else 0
        for key, entry in zip(found.keys, lists[measure.name], strict=True):
            if entry != wanted[measure.name].get(key, zero):
                return True
    return False
