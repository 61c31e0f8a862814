"""What may be a proof that a replay cannot see is never called certain; what shows, is found."""

import random
import secrets
import sys
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import lastbit as lb
from lastbit.audit.replay.findings import Finding, Replay
from lastbit.audit.replay.primitives import noise
from lastbit.audit.replay.replay import audit_program, record, replay
from lastbit.errors import InvalidParameter
from lastbit.privacy.neighbours import CHANGE_ONE
from tests.audit import programs
from tests.audit.private_programs import HIDDEN, SUM, cut_off_noise
from tests.audit.programs import AGES, EXTREMES, clamped

RNG = np.random.default_rng(11)
OWN = random.Random(5)
WIDE = lb.Laplace(sensitivity=10**9, epsilon=1)
COUNT = lb.Laplace(sensitivity=1, epsilon=1)


def kinds(audit) -> set[str]:
    return {finding.kind for finding in audit.findings}


# ---------------------------------------------------------------- private, in ways not seen


@pytest.mark.thinned(one_in=18)
@pytest.mark.parametrize("program", HIDDEN)
@pytest.mark.parametrize("relation", [lb.ADD_REMOVE, CHANGE_ONE])
def test_a_private_program_is_never_accused_with_certainty(program, relation):
    for _ in range(3):  # coins fall differently each time
        audit = audit_program(program, AGES, relation=relation, records=EXTREMES, claim=1)
        assert not audit.refuted, audit.in_full()


@pytest.mark.parametrize(
    "program",
    [
        programs.leaks_n,
        programs.bounds_from_data,
        programs.wrong_sensitivity,
        programs.branches_on_data,
        programs.stops_with_an_error,
        programs.order_of_keys,
        programs.not_monotone,
        programs.wrong_own_sensitivity,
    ],
)
def test_where_all_noise_is_in_mechanisms_a_finding_is_certain(program):
    assert audit_program(program, AGES, records=EXTREMES).refuted


def test_a_doubt_reads_as_one():
    audit = audit_program(cut_off_noise, AGES)
    assert not audit.clean and "* perhaps leak at the output" in str(audit)
    assert str(Finding(kind="leak", where="x", problem="y")).startswith("leak at x")


def test_a_coin_that_is_not_heard_makes_nothing_certain():
    """One that falls seldom passes the first look; a second is taken before anybody is blamed."""
    falls = iter([1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1])

    def program(ages):
        return COUNT.release(len(ages)) if next(falls) else "unlucky"

    audit = audit_program(program, [1, 2, 3], claim=1)
    assert "control flow" in kinds(audit) and not audit.refuted


UNHEARD = [
    lambda ages: len(ages) + secrets.randbelow(10**9),
    lambda ages: len(ages) + random.SystemRandom().random(),
    lambda ages: len(ages) + OWN.random(),
    lambda ages: WIDE.release(OWN.randrange(10**9)),  # nothing but the input of a release
]


@pytest.mark.parametrize("program", UNHEARD)
def test_what_is_not_heard_is_said_to_be(program):
    assert kinds(audit_program(program, AGES, claim=1)) == {"unfollowed"}


def test_methods_saved_before_are_not_heard_and_that_is_said():
    laplace = RNG.laplace
    assert kinds(audit_program(lambda ages: len(ages) + laplace(), AGES)) == {"unfollowed"}


def test_generators_of_ones_own_kind_are_heard():
    class Mine(np.random.Generator):
        pass

    mine = Mine(np.random.PCG64())
    audit = audit_program(lambda ages: len(ages) + mine.laplace(), AGES, claim=1)
    assert audit.clean and audit.calls == 1


def test_the_library_generator_goes_on_as_if_nothing_had_happened():
    random.seed(3)
    audit_program(lambda ages: COUNT.release(len(ages)), AGES)
    assert random.random() == random.Random(3).random()


# ---------------------------------------------------------------- noise taken away, or shown


@dataclass
class Answer:
    noisy: float
    noise: float


def removed_as_a_number(ages):
    draw = RNG.laplace()
    return (len(ages) + draw) - float(draw)


def shown_as_text(ages):
    draw = RNG.laplace()
    return len(ages) + draw, f"{draw:.9f}"


def shown_in_an_object(ages):
    draw = RNG.laplace()
    return Answer(len(ages) + draw, draw)


def shown_as_a_sum(ages):
    draws = RNG.laplace(size=2)
    return np.array([len(ages), 0]) + draws, draws.sum()


def shown_by_a_branch(ages):
    draw = RNG.laplace()
    return len(ages) + draw, [draw < limit for limit in range(-40, 40)]


def integers_shown(ages):
    draw = lb.discrete_laplace(3)
    return len(ages) + draw, str(draw)


def set_to_nothing(ages):
    draws = RNG.laplace(size=2)
    draws[0] = 0
    return np.array([len(ages), 0]) + draws


def clipped_away(ages):
    draws = RNG.laplace(size=2)
    np.clip(draws, 0, 0, out=draws)
    return np.array([len(ages), 0]) + draws


def sorted_in_place(ages):
    draws = RNG.laplace(size=9)
    draws.sort()
    return len(ages) + draws


def in_part_of_a_view(ages):
    draws = RNG.laplace(size=(2, 2))
    draws[0][:] = 0
    return len(ages) + draws


TAKEN_AWAY = [
    (removed_as_a_number, "reuse"),
    (shown_as_text, "reuse"),
    (shown_in_an_object, "reuse"),
    (shown_as_a_sum, "reuse"),
    (shown_by_a_branch, "reuse"),
    (integers_shown, "reuse"),
    (set_to_nothing, "leak"),
    (clipped_away, "leak"),
    (sorted_in_place, "leak"),
    (in_part_of_a_view, "leak"),
]


@pytest.mark.parametrize(("program", "kind"), TAKEN_AWAY)
def test_noise_that_is_shown_or_taken_away_is_found(program, kind):
    audit = audit_program(program, AGES, claim=100)
    assert kinds(audit) == {kind}
    assert audit.refuted == (kind == "reuse")


def test_writing_into_noise_is_what_it_is_without_a_recording():
    with record():
        draws = RNG.laplace(size=2)
        before = np.array(draws, subok=False)
        np.multiply(draws, 2, out=draws)
        assert np.array_equal(draws, 2 * before)
        draws += 1
        assert np.array_equal(draws, 2 * before + 1)
        draws[0] = 7
        assert draws[0] == 7 and draws.copy()[0] == 7


# ---------------------------------------------------------------- what a claim is compared with


def test_our_gaussian_keeps_what_it_promises():
    """Its (epsilon, delta) is tighter than what its rho is worth."""
    promised = lb.ApproxDP(1, "1e-5")
    release = lb.Gaussian(sensitivity=1, epsilon=1, delta="1e-5").release
    assert audit_program(lambda ages: release(len(ages)), AGES, claim=promised).clean
    twice = audit_program(
        lambda ages: (release(len(ages)), release(len(ages))), AGES, claim=promised
    )
    assert kinds(twice) == {"cost"}


@pytest.mark.parametrize(("deviation", "kept"), [(3.73064, True), (3.73062, False)])
def test_gaussian_noise_is_priced_by_its_own_curve(deviation, kept):
    """Balle and Wang's deviation for (1, 1e-5) is 3.730632."""
    promised = lb.ApproxDP(1, "1e-5")
    for program in (
        lambda ages: len(ages) + RNG.normal(0, deviation),
        lambda ages: RNG.normal(len(ages), deviation),
        lambda ages: [len(ages) + draw for draw in RNG.normal(0, deviation * 2, 4)],
    ):
        assert audit_program(program, AGES, claim=promised).clean == kept
    with_laplace = lambda ages: len(ages) + RNG.normal(0, 3.8) + COUNT.release(len(ages))  # noqa: E731
    assert not audit_program(with_laplace, AGES, claim=promised).clean


def test_a_rounding_is_called_one():
    audit = audit_program(lambda ages: len(ages) + RNG.laplace(0, 1 / 0.7), AGES, claim=0.7)
    assert "by a rounding" in str(audit) and not audit.refuted
    shares = [0.1] * 9 + [1.0]
    laplace = lb.Laplace(sensitivity=1, epsilon=1, grid="auto")
    audit = audit_program(lambda rows: laplace.release(sum(rows)), [*shares, 0.7])
    assert all("by a rounding" in finding.problem for finding in audit.findings)


def test_a_claim_is_not_confirmed_by_noise_without_a_price():
    assert audit_program(lambda ages: len(ages) + RNG.gumbel(), AGES).clean
    assert kinds(audit_program(lambda ages: len(ages) + RNG.gumbel(), AGES, claim=1)) == {
        "unfollowed"
    }


def test_chances_are_priced_by_their_ratio():
    def answers(rows):
        return [lb.bernoulli("3/4" if row else "1/4") for row in rows]

    audit = audit_program(answers, [True, False], relation=CHANGE_ONE, claim="1.0987")
    assert audit.clean and not audit.unpriced
    assert kinds(audit_program(answers, [True, False], relation=CHANGE_ONE, claim="1.0986")) == {
        "cost"
    }
    chosen = lambda rows: lb.choice([1 + sum(rows), 2], size=2)  # noqa: E731
    (cost,) = audit_program(chosen, [1, 0], relation=CHANGE_ONE).costliest
    assert isinstance(cost, lb.PureDP)
    assert abs(float(cost.epsilon) - 2 * np.log(1.5)) < 1e-15  # (1/2, 1/2) against (1/3, 2/3)
    sure = audit_program(lambda rows: lb.bernoulli(rows[0]), [1, 0], relation=CHANGE_ONE)
    assert sure.costliest == (lb.PureDP(float("inf")),)


def test_two_prices_are_both_bounds():
    part = Replay(findings=(), cost=(lb.ZCDP(1),), declared=(lb.PureDP(1),))
    assert part.within(lb.PureDP(1)) and part.within(lb.ZCDP(1)) and not part.within(lb.ZCDP("1/3"))


# ---------------------------------------------------------------- programs that behave badly


def test_a_program_may_change_its_data():
    def program(ages):
        ages.sort()
        ages.append(5)
        return COUNT.release(len(ages))

    mine = [3, 2, 1]
    assert audit_program(program, mine, claim=1).clean and mine == [3, 2, 1]
    own = [[3, 2], [3, 2, 1, 0]]
    assert audit_program(program, mine, neighbours=own).clean and own == [[3, 2], [3, 2, 1, 0]]


def test_leaving_is_control_flow():
    def program(ages):
        if len(ages) < 6:
            sys.exit("too few")
        return COUNT.release(len(ages))

    audit = audit_program(program, AGES)
    assert kinds(audit) == {"control flow"} and audit.refuted


def test_a_divergence_that_is_swallowed_is_noted_all_the_same():
    def program(ages):
        for age in clamped(ages):
            try:
                SUM.release(age)
            except BaseException:
                continue

    assert kinds(audit_program(program, AGES)) == {"control flow"}


def test_a_session_belongs_into_the_program():
    asked = lb.AboveThreshold(threshold=3, epsilon=1).start()
    with pytest.raises(InvalidParameter, match="did not start"):
        audit_program(lambda ages: asked.ask(len(ages)), AGES)


def test_nothing_tried_is_nothing_found_and_refused():
    with pytest.raises(InvalidParameter, match="has no neighbours"):
        audit_program(lambda rows: COUNT.release(len(rows)), [])
    with pytest.raises(InvalidParameter, match="has no neighbours"):
        audit_program(lambda rows: COUNT.release(len(rows)), [1, 1], relation=CHANGE_ONE)


def test_seeds_and_chance_are_told_apart():
    far = audit_program(lambda ages: RNG.laplace(1e17, 1), AGES)
    assert "fixed noise" not in kinds(far)  # floats are 16 apart there
    seeded = audit_program(lambda ages: np.random.default_rng(1).laplace(len(ages)), AGES)
    assert kinds(seeded) == {"fixed noise"} and seeded.refuted


def test_a_scale_that_follows_the_data_is_found_however_it_is_applied():
    for program in (
        lambda ages: len(ages) + RNG.laplace(0, max(ages)),
        lambda ages: len(ages) + max(ages) * RNG.laplace(),
        lambda ages: RNG.laplace(len(ages), max(ages)),
        lambda ages: lb.Laplace(sensitivity=max(ages), epsilon=1).release(len(ages)),
    ):
        assert kinds(audit_program(program, AGES)) == {"parameters"}
    assert audit_program(program, AGES).refuted  # of a mechanism; by hand it may be smooth


def test_one_draw_in_two_roles():
    def program(ages):
        draw = 4 * RNG.laplace()
        return len(ages) + draw, round(draw) + 3

    assert "reuse" in kinds(audit_program(program, AGES))


def test_deltas_are_checked_when_they_are_declared():
    with pytest.raises(InvalidParameter):
        noise(sensitivity=1, epsilon=1, delta=-1)(lambda value: value)


def test_the_same_release_added_to_data_is_a_finding_about_the_release():
    program = lambda ages: COUNT.release(0) + len(ages)  # noqa: E731
    with record() as tape:
        tape.keep(program(AGES))
    (finding,) = replay(program, AGES[:-1], tape).findings
    assert finding.kind == "leak" and finding.certain


def test_centres_are_spread_over_what_is_drawn():
    def cost(program):
        (total,) = audit_program(program, AGES).costliest
        assert isinstance(total, lb.PureDP)
        return total.epsilon

    assert cost(lambda ages: RNG.laplace(len(ages), 4, size=3)) == Fraction(3, 4)
    assert cost(lambda ages: RNG.laplace([len(ages), 0], [4, 1])) == Fraction(1, 4)
    assert cost(lambda ages: RNG.laplace([len(ages), 0], [4, 1], size=(3, 2))) == Fraction(3, 4)
    assert cost(lambda ages: RNG.laplace(len(ages), [4, 1])) == Fraction(5, 4)
    assert cost(lambda ages: lb.rounded("laplace", location=len(ages), scale=4, size=2)) == (
        Fraction(2, 4)
    )
