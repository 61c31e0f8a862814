"""A replay finds each named mistake, and accuses no correct program."""

import threading
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import lastbit as lb
from lastbit.audit.pytest_plugin import audit_replay  # noqa: F401 - a fixture
from lastbit.audit.replay.primitives import noise, primitives
from lastbit.audit.replay.replay import audit_program, record, replay
from lastbit.errors import InvalidParameter, WrongType
from lastbit.privacy.neighbours import CHANGE_ONE
from tests.audit import programs
from tests.audit.programs import AGES, CORRECT, DRINKS, EXTREMES, MISTAKES, WORDS

name = lambda given: getattr(given, "__name__", None)  # noqa: E731


def kinds(audit) -> set[str]:
    return {finding.kind for finding in audit.findings}


# ---------------------------------------------------------------- programs


@pytest.mark.thinned(one_in=3)
@pytest.mark.parametrize(("program", "claim"), CORRECT, ids=name)
def test_a_correct_program_is_not_accused(program, claim):
    audit = audit_program(program, AGES, records=EXTREMES, claim=claim)
    assert audit.clean, audit.in_full()
    assert audit.tried == 2 * len(AGES) + len(EXTREMES)
    assert audit.calls >= 1


@pytest.mark.thinned(one_in=3)
@pytest.mark.parametrize(("program", "kind"), MISTAKES, ids=name)
def test_a_mistake_is_found(program, kind):
    audit = audit_program(program, AGES, records=EXTREMES, claim=1)
    assert kind in kinds(audit), str(audit)


@pytest.mark.thinned(one_in=3)
@pytest.mark.parametrize(("program", "claim"), CORRECT, ids=name)
def test_one_per_cent_less_than_the_claim_is_refuted(program, claim):
    """The price found is the true one."""
    less = lb.ZCDP(claim.rho * Fraction(99, 100)) if isinstance(claim, lb.ZCDP) else claim * 0.99
    audit = audit_program(program, AGES, records=EXTREMES, claim=less)
    if program is programs.decides_by_releases:  # the second release is asked for at times only
        return
    assert kinds(audit) == {"cost"}


def test_a_public_number_of_records_may_be_used():
    assert kinds(audit_program(programs.leaks_n, AGES, records=EXTREMES)) == {"leak"}
    changed = audit_program(programs.leaks_n, AGES, records=EXTREMES, relation=CHANGE_ONE, claim=1)
    assert changed.clean


def test_words():
    milk = ["milk"]
    assert audit_program(programs.declared_words, WORDS, records=milk, claim=1).clean
    assert audit_program(
        programs.thresholded_words, WORDS, records=milk, claim=lb.ApproxDP(1, "1e-6")
    ).clean
    assert kinds(audit_program(programs.words_of_the_data, WORDS, records=milk)) == {
        "control flow",  # a word more
        "leak",  # a word in another's place
    }
    unknown = audit_program(programs.declared_words, WORDS, records=["gin"])
    assert kinds(unknown) == {"control flow"}  # the refusal itself tells


def test_float_sums_move_by_more_than_their_records():
    shares = [1.0, 1e-16, 1e-16, 0.7, 0.1]
    assert "sensitivity" in kinds(audit_program(programs.float_sum, shares))
    assert audit_program(programs.integer_sum, shares, records=[0.0, 1.0], claim=1).clean


@pytest.mark.evidence
@settings(max_examples=40)
@given(
    data=st.lists(st.integers(-50, 50), min_size=1, max_size=6),
    sensitivity=st.integers(1, 60),
)
def test_accused_exactly_if_a_record_is_larger_than_the_sensitivity(data, sensitivity):
    mechanism = lb.Laplace(sensitivity=sensitivity, epsilon=1)
    audit = audit_program(lambda rows: mechanism.release(sum(rows)), data, claim=1)
    largest = max(map(abs, data))
    assert audit.clean == (largest <= sensitivity)
    if largest:
        (cost,) = audit.costliest
        assert isinstance(cost, lb.PureDP)
        assert cost.epsilon == Fraction(largest, sensitivity)


@pytest.mark.evidence
@settings(max_examples=40)
@given(
    vector=st.lists(st.integers(-3, 3), min_size=1, max_size=4),
    square=st.integers(1, 30),
)
def test_gaussian_inputs_are_measured_by_exact_squares(vector, square):
    """sensitivity**2 = square - 1/2 lies between two squared distances, and never on one."""
    close = Fraction(int((square - 0.5) ** 0.5 * 2**30), 2**30)
    mechanism = lb.Gaussian(sensitivity=close, variance=1, grid="1/1024", dimension=len(vector))
    with record() as tape:
        tape.keep(mechanism.release([0] * len(vector)).shape)
    found = replay(lambda rows: mechanism.release(rows).shape, vector, tape)
    assert found.clean == (sum(part * part for part in vector) < square)


# ---------------------------------------------------------------- every mechanism


def median_bound(ages):
    beta = SMOOTH.beta
    return lb.smooth_sensitivity(
        "median", ages, beta=beta, lower=0, upper=120, neighbours=lb.ADD_REMOVE
    )


SMOOTH = lb.SmoothNoise(epsilon=1, noise="cauchy", grid="1/16", neighbours=lb.ADD_REMOVE)
ANSWERS = [True, False, True, True]
SCORES: dict[str, Any] = {"sensitivity": 1, "epsilon": 1}
TESTED = lb.ProposeTestRelease(bound=10, epsilon=1, delta="1e-6", neighbours=CHANGE_ONE)
STABLE = lb.StableValue(epsilon=1, delta="1e-6", neighbours=lb.ADD_REMOVE)


def counts(ages):
    return [sum(age > limit for age in ages) for limit in (20, 40, 60)]


EVERY = [
    (lb.Laplace(sensitivity=3, epsilon=1).release, counts, 1),
    (lb.RoundedLaplace(sensitivity=1, epsilon=1, cell="1/16", bound=100).release, len, 1),
    (lb.Snapping(bound=64, epsilon=1).release, len, 1),
    (lb.Gaussian(sensitivity=2, rho="1/2", dimension=3).release, counts, lb.ZCDP("1/2")),
    (lb.Exponential(**SCORES).release, counts, 1),
    (lb.PermuteAndFlip(**SCORES).release, counts, 1),
    (lb.ReportNoisyMax(**SCORES).release, counts, 1),
    (lb.AboveThreshold(threshold=3, epsilon=1).release, counts, 1),
    (lb.ExponentialQuantile("1/2", epsilon=1, lower=0, upper=120, neighbours=lb.ADD_REMOVE).release,
     list, 1),
    (SMOOTH.release, median_bound, 1),
    (lb.SmoothStatistic("median", epsilon=1, lower=0, upper=120, neighbours=lb.ADD_REMOVE).release,
     list, 1),
    (STABLE.release,
     lambda ages: lb.distance_to_instability("mode", ages, neighbours=lb.ADD_REMOVE),
     lb.ApproxDP(1, "1e-6")),
    (lb.Histogram(keys=range(4), epsilon=1, keys_per_person=1).release,
     lambda ages: Counter(min(age, 120) // 40 for age in ages), 1),
    (lb.ThresholdedHistogram(epsilon=1, delta="1e-6", keys_per_person=1).release,
     lambda ages: Counter(age // 40 for age in ages), lb.ApproxDP(1, "1e-6")),
    (lambda counted: lb.ThresholdedHistogram(epsilon=1, delta="1e-6", keys_per_person=1)
     .release_arrays(list(counted), list(counted.values())),
     lambda ages: Counter(age // 40 for age in ages), lb.ApproxDP(1, "1e-6")),
]  # fmt: skip


@pytest.mark.thinned(one_in=3)
@pytest.mark.parametrize(("release", "statistic", "claim"), EVERY)
def test_every_mechanism_is_heard_and_priced(release, statistic, claim):
    audit = audit_program(
        lambda ages: release(statistic(ages)), AGES, records=EXTREMES, claim=claim
    )
    assert audit.clean and not audit.unpriced, audit.in_full()
    assert audit.calls == 1


def test_mechanisms_for_one_record_changed():
    poll = lb.RandomizedResponse(epsilon=1)
    audit = audit_program(poll.release, ANSWERS, relation=CHANGE_ONE, claim=1)
    assert audit.clean and audit.calls == 1
    bounds = TESTED.bounds
    audit = audit_program(
        lambda ages: TESTED.release(lb.propose("median", ages, bounds=bounds, lower=0, upper=120)),
        AGES,
        relation=CHANGE_ONE,
        claim=lb.ApproxDP(1, "1e-6"),
    )
    assert audit.clean, audit.in_full()


@pytest.mark.parametrize(
    "noise",
    [
        lb.PlanarLaplace(epsilon=1, within=5, grid="1/1024"),
        lb.PolarLaplace(epsilon=1, within=5, cell="1/16", half_width=64),
    ],
    ids=["planar", "polar"],
)
def test_points_are_priced_by_their_distance(noise):
    with record() as tape:
        tape.keep(noise.release((0, 0)))
    (cost,) = replay(noise.release, (3, 4), tape).cost
    assert isinstance(cost, lb.PureDP)
    assert cost.epsilon == noise.guarantee_at(5).epsilon
    assert replay(noise.release, (0, 0), tape).cost == ()


def test_no_mechanism_is_forgotten():
    hooked = [function for function, _ in primitives()]
    assert len(set(hooked)) == len(hooked)
    public = [getattr(lb.mechanisms, name) for name in lb.mechanisms.__all__]
    assert {kind.release for kind in public if hasattr(kind, "release")} <= set(hooked)
    samplers = set(lb.sampling.__all__) - {"stream"}
    assert samplers <= {function.__name__ for function, _ in primitives()}


MUTANTS = [
    (lb.Exponential(sensitivity="1/2", epsilon=1).release, counts),
    (lb.AboveThreshold(threshold=3, sensitivity="1/2", epsilon=1, grid="1/4").release, counts),
    (lb.Snapping(sensitivity="1/2", bound=64, epsilon=1).release, len),
    (lb.Histogram(keys=range(4), epsilon=1, keys_per_person=1).release,
     lambda ages: Counter({k: 2 * c for k, c in Counter(age // 40 for age in ages).items()})),
    (lb.ThresholdedHistogram(epsilon=1, delta="1e-6", keys_per_person=1).release,
     lambda ages: Counter(k for age in ages for k in (age // 40, "all"))),
    (lb.SmoothStatistic("median", epsilon=1, lower=0, upper=120).release, list),
    (SMOOTH.release, lambda ages: lb.smooth_sensitivity(
        "median", [age // 2 for age in ages] + ages, beta=SMOOTH.beta, lower=0, upper=120,
        neighbours=lb.ADD_REMOVE)),
    (STABLE.release, lambda ages: lb.sensitivity.Stability(len(ages), 9)),
]  # fmt: skip


@pytest.mark.parametrize(("release", "statistic"), MUTANTS)
def test_a_wrong_statistic_is_found_under_every_mechanism(release, statistic):
    ages = [age for age in AGES if age < 160]
    audit = audit_program(lambda ages: release(statistic(ages)), ages)
    assert kinds(audit) == {"sensitivity"}, str(audit)


# ---------------------------------------------------------------- recording


def test_everything_is_put_back():
    """Also after an error, also for names that others imported."""
    methods = {**np.random.Generator.__dict__}, {**np.random.RandomState.__dict__}
    functions = [(function, function.__code__) for function, _ in primitives()]
    legacy = np.random.laplace, np.random.mtrand.normal
    with pytest.raises(ZeroDivisionError), record():
        assert np.random.laplace is not legacy[0]
        lb.discrete_laplace(3)
        1 / 0  # noqa: B018
    assert methods == ({**np.random.Generator.__dict__}, {**np.random.RandomState.__dict__})
    assert legacy == (np.random.laplace, np.random.mtrand.normal)
    assert all(function.__code__ is code for function, code in functions)
    assert type(RNG_AFTER()) is float
    assert type(lb.discrete_laplace(3)) is int


def RNG_AFTER():  # noqa: N802 (named as what it stands for)
    return programs.RNG.laplace()


def test_recording_does_not_nest():
    with record(), pytest.raises(InvalidParameter, match="is going on already"), record():
        pass
    with record() as tape:
        pass
    assert tape.complete and tape.calls == 0


def test_other_threads_draw_as_always_and_are_noticed():
    drawn = []
    with pytest.raises(InvalidParameter, match="another thread"), record() as tape:
        worker = threading.Thread(target=lambda: drawn.append(programs.RNG.laplace()))
        worker.start()
        worker.join()
    assert tape.calls == 0 and type(drawn[0]) is float and not tape.complete


def test_names_imported_earlier_are_heard():
    release = lb.Laplace(sensitivity=1, epsilon=1).release  # a bound method, made before
    with record() as tape:
        release(1)
        lb.bernoulli("1/2")
        lb.geometric(3, size=2)
        np.random.normal(3, 2)
        programs.RNG.integers(5)
    assert [call.kind for call in tape] == [
        "Laplace.release",
        "bernoulli",
        "geometric",
        "numpy normal",
        "numpy integers",
    ]
    assert all(call.where.startswith("tests/audit/test_replay.py:") for call in tape)


def test_draws_behave_as_numbers_while_recording():
    with record() as tape:
        one, many = programs.RNG.laplace(), programs.RNG.normal(size=(2, 3))
        assert isinstance(one, float) and float(one) == one and hash(one) == hash(float(one))
        assert np.isclose(np.exp(many), np.exp(np.asarray(many))).all()
        assert (many > 0).dtype == bool and many.sum() == np.asarray(many).sum()
        assert round(one, 3) == round(float(one), 3)
        assert type(3 + one) is float and type(np.float64(3) + one) is np.float64
        assert type(many + 1) is np.ndarray
        kept = tape.keep({"noise": one, "list": [many]})
    assert type(kept["noise"]) is float and type(kept["list"][0]) is np.ndarray
    assert one + 1 == float(one) + 1  # and after the block, as always


def test_a_mutated_input_or_output_does_not_reach_the_tape():
    release = lb.Laplace(sensitivity=1, epsilon=1).release

    def program(ages):
        counts = np.array([len(ages)])
        noisy = release(counts)
        counts += 5
        noisy += 7
        return noisy

    assert audit_program(program, AGES, claim=1).clean


# ---------------------------------------------------------------- what is said, and what is not


def test_a_finding_names_the_line_and_the_remedy():
    audit = audit_program(programs.wrong_sensitivity, AGES, records=EXTREMES)
    line = programs.wrong_sensitivity.__code__.co_firstlineno + 1
    (finding,) = audit.findings
    assert finding.where == f"tests/audit/programs.py:{line}"
    assert finding.distance == 120 and finding.allowed == 1
    assert "clamp" in str(finding)


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize(("program", "kind"), MISTAKES, ids=name)
def test_no_data_in_messages(program, kind):
    ages = [30_071, 44_071, 52_071, 18, 67_071, 23_071]
    audit = audit_program(program, ages)
    for text in (str(audit), repr(audit), *map(str, audit.findings), *map(repr, audit.findings)):
        assert "071" not in text and "record 0" not in text
    with record() as tape:
        tape.keep(program(ages))
    for text in (repr(tape), *map(repr, tape)):
        assert "071" not in text


def test_in_full_says_by_how_much_and_with_whom():
    text = audit_program(programs.wrong_sensitivity, AGES, records=EXTREMES).in_full()
    assert "moved by 120, 1 declared" in text and "seen with given record 1 added" in text


def test_a_tape_without_output_or_end_is_refused():
    with record() as tape:
        programs.noisy_mean(AGES)
        with pytest.raises(InvalidParameter, match="not complete"):
            replay(programs.noisy_mean, AGES, tape)
    with pytest.raises(InvalidParameter, match="holds no output"):
        replay(programs.noisy_mean, AGES, tape)
    with pytest.raises(WrongType):
        replay(programs.noisy_mean, AGES, None)  # type: ignore[arg-type]
    with pytest.raises(WrongType):
        replay(5, AGES, tape)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        {"claim": float("nan")},
        {"claim": -1},
        {"claim": "much"},
        {"claim": lb.MetricDP(1)},
        {"neighbours": "some"},
        {"neighbours": 0},
        {"neighbours": True},
        {"neighbours": 2.5},
        {"neighbours": [AGES], "records": [1]},
        {"relation": "add-remove"},
        {"relation": lb.privacy.AS_DECLARED},
        {"records": (1,)},
    ],
)
def test_bad_options_are_refused_before_anything_runs(options):
    def never(ages):
        raise AssertionError("was run")

    with pytest.raises(InvalidParameter):
        audit_program(never, AGES, **options)


def test_outputs_that_cannot_be_compared_are_refused():
    with pytest.raises(WrongType, match="cannot be compared"):
        audit_program(lambda ages: (object(), lb.discrete_laplace(1)), AGES)


def test_generators_are_run_to_their_end_inside():
    def program(ages):
        yield lb.Laplace(sensitivity=1, epsilon=1).release(len(ages))
        yield len(ages)

    assert kinds(audit_program(program, AGES)) == {"leak"}


# ---------------------------------------------------------------- noise of one's own, the fixture


def test_declared_noise_is_heard_as_a_whole():
    @noise(sensitivity=1, rho="1/2", norm="L2", of="vector", public=["label"])
    def vector_noise(label, vector, scale=1):
        return vector + programs.RNG.normal(0, scale, len(vector))

    def program(ages):
        return vector_noise(f"{len(ages)} rows", np.array([len(ages), 0]))

    assert audit_program(program, AGES, claim=lb.ZCDP("1/2")).clean
    by_scale = audit_program(lambda ages: vector_noise("", np.ones(1), scale=len(ages)), AGES)
    assert kinds(by_scale) == {"parameters"}
    by_shape = audit_program(lambda ages: vector_noise("", np.ones(len(ages))).sum(), AGES)
    assert kinds(by_shape) == {"sensitivity"}


@pytest.mark.parametrize(
    "options",
    [
        {"sensitivity": 1},
        {"sensitivity": 1, "epsilon": 1, "rho": 1},
        {"sensitivity": 0, "epsilon": 1},
        {"sensitivity": 1, "epsilon": -1},
        {"sensitivity": 1, "epsilon": 1, "norm": "L3"},
        {"sensitivity": 1, "epsilon": 1, "of": "elsewhere"},
        {"sensitivity": "unknown", "epsilon": 1},
        {"sensitivity": 1, "epsilon": 1, "public": ["unknown"]},
    ],
)
def test_bad_declarations_are_refused(options):
    with pytest.raises(InvalidParameter):
        noise(**options)(lambda value: value)


def test_the_fixture_passes_and_fails(audit_replay):  # noqa: F811
    assert audit_replay(programs.declared_words, WORDS, records=DRINKS, claim=1).clean
    with pytest.raises(pytest.fail.Exception, match="leak at the output"):
        audit_replay(programs.leaks_n, AGES)


# ---------------------------------------------------------------- what is believed


def test_declared_noise_is_named_as_believed():
    """A declaration is somebody's word: no replay tries whether the noise keeps it."""

    @noise(sensitivity=1, epsilon=1)
    def bad(count):
        return count

    found = audit_program(lambda rows: bad(len(rows)), [1, 2, 3], claim=1)
    assert found.clean and len(found.believed) == 1
    assert "declared, and not tested here" in str(found)
    honest = lb.Laplace(sensitivity=1, epsilon=1)
    assert not audit_program(lambda rows: honest.release(len(rows)), [1, 2]).believed


def test_what_a_subclass_says_of_its_guarantee_is_not_believed():
    class Cheap(lb.Laplace):
        __slots__ = ()

        def guarantee_at(self, distance):
            return lb.PureDP(0)

        @property
        def guarantee(self):
            return lb.PureDP(0)

    cheap = Cheap(sensitivity=1, epsilon=5)
    found = audit_program(lambda rows: cheap.release(len(rows)), [1, 2, 3], claim="1/100")
    assert not found.clean
