"""Grey-box audit: record a program's noise, replay it on a neighbour, see what still moves.

Most violations are no wrong noise but a wrong sensitivity, or data that find a way around the
noise. So the noise is taken out of the question. The program runs on a dataset, and every call of a
noise primitive is written down. Then it runs on a neighbour, and every primitive answers what it
answered before. If the program is private, nothing may show the neighbour: the calls are the same,
with the same parameters; their inputs are no further apart than declared; the output is the same.

Theorem  let a program see its data through primitives only, ask the same ones in the same order
         whenever their earlier answers are the same, and compute its output from those answers.
         Then it is the adaptive composition of the primitives, each at the distance its inputs
         have, and costs what that composition costs. A replay checks the three conditions on two
         datasets and one sequence of answers: a finding refutes one of them; none proves it only
         there. Noise that was added to a value is checked in a second run, with what the value
         moved by taken off the draw: all sums are the same, so whatever changes shows the draw
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from typing import Any, Literal

import numpy as np

from lastbit.audit.replay.distance import Declared, bit_identical
from lastbit.audit.replay.findings import Finding, Kind, Replay, a_little_more, claim_of, keeps
from lastbit.audit.replay.neighbours import Neighbour, neighbours as neighbours_of
from lastbit.audit.replay.numpy_generators import (
    hook_numpy,
    hook_random,
    library_state,
    numpy_noise_loaded,
    set_library_state,
)
from lastbit.audit.replay.primitives import primitives
from lastbit.audit.replay.recorder import (
    Call,
    Diverged,
    Hook,
    Recorder,
    Replayer,
    Tape,
    Unmeasurable,
    copied,
    hooked,
    one_at_a_time,
    place_of,
)
from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Number
from lastbit.privacy import ADD_REMOVE, ZCDP, Guarantee, Loss, Neighbours, PureDP, plus

Program = Callable[[Any], Any]
_SHOWN = ("leak", "control flow", "reuse")


@contextmanager
def _listening() -> Iterator[Hook]:
    """All hooks in place, and no listener yet."""
    hook = Hook()
    with one_at_a_time() as stack:
        for function, describe in primitives():
            stack.enter_context(hooked(function, describe, hook))
        stack.enter_context(hook_numpy(hook))
        stack.enter_context(hook_random(hook))
        yield hook


@contextmanager
def record() -> Iterator[Tape]:
    """Write down every call of a noise primitive made in the `with` block, in this thread.

    Recorded are the mechanisms and samplers of lastbit, the generators of numpy (also those made
    before), `random.gauss`, and functions declared with `noise`. Other threads draw as always and
    are not recorded; that they drew is noticed. Blocks do not nest, and whatever happens inside,
    everything is as it was afterwards.

    >>> from lastbit import Laplace
    >>> def program(ages):
    ...     return Laplace(sensitivity=1, epsilon=1).release(len(ages)) / len(ages)
    >>> with record() as tape:
    ...     answer = tape.keep(program([31, 44, 52]))
    >>> [finding.kind for finding in replay(program, [31, 44], tape).findings]
    ['leak']
    """
    before = numpy_noise_loaded()
    with _listening() as hook:
        tape = Tape()
        tape.library_state = library_state()
        recorder = Recorder(tape)
        hook.listener = recorder
        try:
            yield tape
        finally:
            hook.listener = None
            recorder.open = False
            tape.tossed_by_library = library_state() != tape.library_state
    if numpy_noise_loaded() != before:
        raise InvalidParameter(
            "program",
            problem="loaded numpy.random while recording, so that its draws were not heard",
            remedy="import numpy.random before the `with` block",
        )
    if hook.elsewhere:
        raise InvalidParameter(
            "program",
            problem="drew noise in another thread, which is not heard",
            remedy="let it draw in the thread that records",
        )
    tape.complete = True


def replay(program: Program, neighbour: Any, tape: Tape) -> Replay:
    """Run a program on a neighbour with the recorded noise, and report what shows the neighbour.

    The primitives refuse what they would refuse, and else answer from the tape; nothing that is
    drawn on the way is used. The program gets a copy of the data each time; it may not keep
    anything from run to run.
    """
    _check_program(program)
    if not isinstance(tape, Tape):
        raise WrongType("tape", problem="is not a tape", remedy="pass what record() gave")
    if not tape.complete:
        raise InvalidParameter(
            "tape", problem="is not complete", remedy="end its `with` block without an error first"
        )
    _ = tape.output  # refuses a tape without one
    with _listening() as hook:
        return _replayed(program, neighbour, tape, hook)


def _check_program(program: object) -> None:
    if not callable(program):
        raise WrongType("program", problem="cannot be called", remedy="pass a function of the data")


def _replayed(program: Program, neighbour: Any, tape: Tape, hook: Hook) -> Replay:
    """One neighbour, and once more with the draws that hide it."""
    first = Replayer(tape)
    found = _run(program, neighbour, first, hook)
    undone = first.undone()
    if undone and not any(finding.kind in _SHOWN for finding in found.findings):
        second = _run(program, neighbour, Replayer(tape, undone), hook)
        shown = [finding.kind for finding in second.findings if finding.kind in _SHOWN]
        if shown:
            call: Call = tape[min(undone)]
            sure = first.coupled and set(shown) == {"leak"}  # else it may be noise cut to a range
            problem = f"a draw of {call.kind} is used outside the sum that it covers"
            shows = Finding(kind="reuse", where=call.where, problem=problem, certain=sure)
            found = replace(found, findings=(*found.findings, shows))
    return found


def _run(program: Program, neighbour: Any, replayer: Replayer, hook: Hook) -> Replay:
    before, state = hook.elsewhere, library_state()
    set_library_state(replayer.tape.library_state)
    found = None
    hook.listener = replayer
    try:
        output: Any = program(copied(neighbour))
        output = list(output) if isinstance(output, Iterator) else output
    except Unmeasurable as refusal:
        raise refusal.error from None
    except Diverged:
        found = replayer.summary()
    except (Exception, SystemExit) as error:
        where = place_of(error.__traceback__)  # never the message: it may hold data
        problem = f"it ends with {type(error).__name__}, and did not on the first dataset"
        replayer.find("control flow", where, problem)
        found = replayer.summary()
    finally:
        hook.listener = None
        replayer.open = False
        set_library_state(state)
    if found is None:
        found = replayer.finish(output)
    if hook.elsewhere != before:
        elsewhere = _unsure("noise is drawn in another thread", where="another thread")
        found = replace(found, findings=(*found.findings, elsewhere))
    return found


def _unsure(problem: str, where: str = "the whole program", kind: Kind = "unfollowed") -> Finding:
    return Finding(kind=kind, where=where, problem=problem, certain=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramAudit:
    """What all neighbours together showed of a program.

    `replays` and `neighbours` are as secret as the data; str() tells nothing of them but how many.
    `believed` names noise whose guarantee was taken from its declaration and not tested.
    """

    findings: tuple[Finding, ...]
    calls: int
    tried: int
    claim: Guarantee | None
    unpriced: tuple[str, ...] = ()
    costliest: tuple[Guarantee, ...] = field(default=(), repr=False)
    believed: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        return not self.findings

    @property
    def refuted(self) -> bool:
        """Whether something is certain: see `Finding`."""
        return any(finding.certain for finding in self.findings)

    def __str__(self) -> str:
        return self._told(str)

    def in_full(self) -> str:
        """With distances, neighbours and costs: as secret as the data."""
        cost = " and ".join(str(part) for part in self.costliest) or "nothing"
        return self._told(Finding.in_full) + f"\nthe costliest neighbour: {cost}"

    def _told(self, shown: Callable[[Finding], str]) -> str:
        calls = f"{self.calls} call{'s' * (self.calls != 1)} of noise primitives"
        tried = f"{self.tried} neighbour{'s' * (self.tried != 1)}"
        if self.clean:
            lines = [f"nothing found with {tried}, {calls}"]
        else:
            lines = [f"{len(self.findings)} found with {tried}, {calls}"]
            lines += [f"* {shown(finding)}" for finding in self.findings]
        if self.unpriced:
            lines.append(f"the cost of {', '.join(self.unpriced)} is not known")
        if self.believed:
            names = ", ".join(self.believed)
            lines.append(f"declared, and not tested here: {names}; see audit.distinguish")
        return "\n".join(lines)


def audit_program(
    program: Program,
    dataset: Any,
    *,
    relation: Neighbours = ADD_REMOVE,
    neighbours: Literal["all"] | int | Iterable[Any] = "all",
    records: Any = None,
    claim: Guarantee | Number | None = None,
) -> ProgramAudit:
    """Record a program on a dataset, replay it on its neighbours, and say what was found.

    `neighbours` is "all", how many of them to take, spread evenly, or datasets of your own;
    `records` are further records to add or to put in place of others. `claim` is what the program
    promises in all; costs above it are a finding. They are computed as if every noisy number were
    shown: a program whose proof hides some (sparse vector, noisy maximum) must say so with `noise`.

    >>> from lastbit import Laplace
    >>> def average(ages):
    ...     return Laplace(sensitivity=120, epsilon=1, grid="auto").release(sum(ages)) / len(ages)
    >>> print(audit_program(average, [31, 44, 52], records=[0, 120]))
    1 found with 8 neighbours, 1 call of noise primitives
    * leak at the output: it changes although every noisy value is the same; return released ...
    """
    _check_program(program)
    promised = claim_of(claim)
    chosen = _chosen(dataset, relation, neighbours, records)  # refused before anything runs
    tape = _recorded(program, dataset)
    found = {finding: finding for finding in _fixed(tape, _recorded(program, dataset))}
    costliest: tuple[Guarantee, ...] = ()
    unpriced: dict[str, None] = {}
    tried = 0
    with _listening() as hook:
        again = _replayed(program, dataset, tape, hook)
        if not _quiet(again):
            where = again.findings[0].where if again.findings else "the whole program"
            problem = "the same dataset and the same noise give another run: "
            finding = _unsure(problem + "something is not recorded", where=where)
            return ProgramAudit(findings=(finding,), calls=tape.calls, tried=0, claim=promised)
        for neighbour in chosen:
            tried += 1
            result = _replayed(program, neighbour.dataset, tape, hook)
            unpriced |= dict.fromkeys(result.unpriced)
            costliest = max(costliest, result.cost, key=_size)
            news = [finding for finding in result.findings if finding not in found]
            sure = not news or (
                _replayed(program, neighbour.dataset, tape, hook).findings == result.findings
                and _quiet(_replayed(program, dataset, tape, hook))
            )  # a coin that is not heard need not fall alike twice
            for seen in (*result.findings, *_beyond(promised, result)):
                new = replace(seen, neighbour=neighbour.change, certain=seen.certain and sure)
                old = found.get(new, new)  # of findings that read alike the worst is kept
                found[new] = max(old, new, key=lambda one: (one.certain, one.distance or 0))
    if not tried:
        raise InvalidParameter(
            "dataset", problem="has no neighbours", remedy="pass records, or neighbours"
        )
    return ProgramAudit(
        findings=tuple(found.values()),
        calls=tape.calls,
        tried=tried,
        claim=promised,
        unpriced=tuple(unpriced),
        costliest=costliest,
        believed=tuple(dict.fromkeys(c.kind for c in tape if isinstance(c.rule, Declared))),
    )


def _quiet(found: Replay) -> bool:
    return found.clean and keeps(PureDP(0), found.cost)


def _beyond(claim: Guarantee | None, found: Replay) -> Iterator[Finding]:
    """What a neighbour says against the claim."""
    if claim is None:
        return
    if not found.within(claim):
        rounding = ", by a rounding" if found.within(a_little_more(claim)) else ""
        yield _unsure(f"the releases together cost more than the claim{rounding}", kind="cost")
    if found.unpriced:
        names = ", ".join(found.unpriced)
        yield _unsure(f"the cost of {names} is not known, so nor is the claim")


def _recorded(program: Program, dataset: Any) -> Tape:
    """A tape of the program; once more if numpy's generators were only loaded by it."""
    before = numpy_noise_loaded()
    try:
        with record() as tape:
            tape.keep(program(copied(dataset)))
    except InvalidParameter:
        if numpy_noise_loaded() == before:
            raise
        return _recorded(program, dataset)
    return tape


def _fixed(tape: Tape, other: Tape) -> Iterator[Finding]:
    """Floats that are drawn alike in two runs: chance does not do that, a fixed seed does."""
    for one, two in zip(tape, other, strict=False):
        drawn = np.asarray(one.output)
        spread = getattr(one.rule, "spread", None)
        if spread is None or drawn.dtype != np.float64 or not drawn.size or one.kind != two.kind:
            continue
        scale = min(spread.scale) if isinstance(spread.scale, tuple) else spread.scale
        fine = np.spacing(np.abs(drawn)).max() <= float(scale) * 2**-30  # else it may be chance
        if fine and bit_identical(one.output, two.output):
            problem = f"{one.kind} draws the same in every run"
            yield Finding(kind="fixed noise", where=one.where, problem=problem)


def _chosen(
    dataset: Any, relation: Neighbours, neighbours: Any, records: Any
) -> Iterable[Neighbour]:
    remedy = 'pass "all", a number or datasets'
    if isinstance(neighbours, str) and neighbours != "all":
        raise InvalidParameter("neighbours", problem="is unknown", remedy=remedy)
    if isinstance(neighbours, str | int) and not isinstance(neighbours, bool):
        return neighbours_of(dataset, relation, records=records, most=neighbours)  # type: ignore[arg-type]
    if records is not None:
        raise InvalidParameter(
            "records", problem="and neighbours are both given", remedy="pass one of them"
        )
    if isinstance(neighbours, bool) or not isinstance(neighbours, Iterable):
        raise WrongType("neighbours", problem="are not datasets", remedy=remedy)
    return (
        Neighbour(dataset=given, change=f"given neighbour {number}")
        for number, given in enumerate(neighbours)
    )


def _size(cost: tuple[Guarantee, ...]) -> tuple[Loss, Loss]:
    """For finding the costliest neighbour: epsilons, then rhos."""
    nothing: Loss = Fraction(0)
    rhos = (part.rho for part in cost if isinstance(part, ZCDP))
    epsilons = (part.epsilon for part in cost if not isinstance(part, ZCDP))
    return reduce(plus, epsilons, nothing), reduce(plus, rhos, nothing)
