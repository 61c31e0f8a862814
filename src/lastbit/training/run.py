"""A run and its books: paid before the first step, counted before each, resumed for what is left.

Law      `start` charges the whole price of the plan, or finds that this run has paid it. Steps
         are claimed in blocks, each before its first step; who holds no claim takes no step
Theorem  whatever is killed, forked, copied or run twice at once, the steps that are taken under a
         run's name are at most those of its plan, and the plan was charged: what is released is
         within its epsilon and delta. Steps may be lost, never won
Proof    A claim is a note in the ledger, which is a chain: notes have an order that all see, and
         none is lost or changed (`ledger/`). A block belongs to the first note that claims it, and
         a process uses it only after it has read, from the chain, that the first one bears its own
         token of 128 random bits. So each block has one owner, and after a kill none. Within a
         process steps are counted down under a lock, and a child or a copy has none of them.
         Sampling and noise are drawn anew for every step (`noise.py`), so a step that is taken
         again from an old checkpoint is a further step, and is counted as one.  []
Differs  a process that ends within a block loses the rest of it: at most a hundredth of the steps,
         as blocks are made. Without a ledger the count is kept in memory: a program that is started
         again starts a run that nobody has counted
Checked  tests/training/test_run.py: killed, forked, at once, with another plan
"""

from __future__ import annotations

import os
import re
import threading

from lastbit.addresses import Address
from lastbit.arguments import check_kind
from lastbit.canonical import digest_of
from lastbit.errors import BudgetExceeded, InvalidParameter
from lastbit.exact import whole
from lastbit.ledger import Entry, Ledger
from lastbit.sampling import secure_bits
from lastbit.tables import Budget
from lastbit.training.plan import TrainingPlan

_BLOCKS = 100
_LONGEST_NAME = 100


class TrainingRun:
    """Steps that are paid for, taken one at a time: `start_run` makes one."""

    def __init__(self, plan: TrainingPlan, *, name: str, books: _Books | None) -> None:
        self.plan = plan
        self.name = name
        self._books = books
        self._lock = threading.Lock()
        self._mark = secure_bits().life().mark  # a grandchild may have the number of its ancestor
        self._steps: list[int] = [] if books is not None else list(range(plan.steps, 0, -1))
        self._taken = 0

    def take_step(self) -> int:
        """The number of the step that may now be taken; refused when none is left.

        Call it before the step looks at its noise: `ExactOptimizer.step` does.
        """
        with self._lock:
            if not self._mark.stands():
                problem = "was started in another process"
                raise InvalidParameter("run", problem=problem, remedy="start it in this one")
            if not self._steps and self._books is not None:
                self._steps = self._books.claimed_block()
            if not self._steps:
                raise all_taken(self.name, self.plan.steps)
            self._taken += 1
            return self._steps.pop()

    @property
    def steps_left(self) -> int:
        """How many steps may still be taken, by whoever runs this."""
        with self._lock:
            unclaimed = 0 if self._books is None else self._books.unclaimed_steps()
            return len(self._steps) + unclaimed

    @property
    def steps_taken(self) -> int:
        """How many this object has given out."""
        return self._taken

    @property
    def entry(self) -> Entry | None:
        """The charge in the ledger, if there is one."""
        return None if self._books is None else self._books.paid

    def __reduce__(self) -> str:
        problem = "cannot be copied, nor sent to another process"
        raise InvalidParameter("run", problem=problem, remedy="start it there, by its name")

    def __repr__(self) -> str:
        return f"<TrainingRun {self.name!r}: {self._taken} of {self.plan.steps} steps taken here>"


def start_run(
    plan: TrainingPlan,
    *,
    name: str = "training",
    ledger: Ledger | str | os.PathLike[str] | Address | None = None,
    account: str | None = None,
    budget: Budget | None = None,
    block: int | None = None,
) -> TrainingRun:
    """Pay for a run, or find it paid; no example is needed for it.

    The same name with the same plan resumes the run and costs nothing; with another plan it is
    refused. A `budget` opens the account if it is not there, and must be its own if it is. `block`
    is how many steps are claimed at a time.

    >>> from lastbit.training import training_plan
    >>> plan = training_plan(examples=9, batch=3, steps=2, noise_multiplier=2, delta="1e-5")
    >>> run = start_run(plan)
    >>> run.take_step(), run.take_step(), run.steps_left
    (1, 2, 0)
    >>> run.take_step()
    Traceback (most recent call last):
        ...
    lastbit.errors.BudgetExceeded: the run training has taken the 2 steps it paid for; ...
    """
    check_kind(plan, (TrainingPlan,), "plan", remedy="pass training_plan(...)")
    _check_name(name)
    if ledger is None:
        for said, value in (("account", account), ("budget", budget), ("block", block)):
            if value is not None:
                problem = "is of no use without a ledger"
                raise InvalidParameter(
                    said, problem=problem, remedy="pass ledger=, or leave it out"
                )
        return TrainingRun(plan, name=name, books=None)
    if account is None:
        remedy = "pass account=, the name of the data"
        raise InvalidParameter("account", problem="is missing", remedy=remedy)
    least = -(-plan.steps // _BLOCKS)
    size = least if block is None else min(whole(block, "block", least=1), plan.steps)
    books = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    neighbours = "add-remove of rows" if plan.unit == "example" else "add-remove of units"
    if budget is not None:
        books.account(account, budget, neighbours)
    question = digest_of({"training run": name})
    for entry in books.entries(account):
        mine = entry.question == question
        if mine and entry.plan not in (None, plan.digest):
            remedy = "resume it with that plan, or name another run"
            raise InvalidParameter(
                "plan", problem="is not the one this run paid for", remedy=remedy
            )
        # also one that somebody answered: claims name the entry of the charge, not of the answer
        if mine and entry.kind != "reserved":
            raise _over()
    paid = books.reserve(
        account,
        plan.price,
        who=None,
        question=question,
        plan_digest=plan.digest,
        fingerprint=plan.digest,
        words=f"training run {name}: {plan.steps} steps",
        neighbours=neighbours,
    )
    if paid.kind != "reserved":  # closed by another process since its entries were read
        raise _over()
    return TrainingRun(plan, name=name, books=_Books(books, account, paid, plan, size))


def _over() -> InvalidParameter:
    return InvalidParameter("run", problem="is over", remedy="name another run")


def all_taken(name: str, steps: int) -> BudgetExceeded:
    """The error of a run that is over."""
    return BudgetExceeded(
        f"the run {name} has taken the {steps:,} steps it paid for; plan a further run under "
        "another name"
    )


class _Books:
    """The claims of one run, in the chain of its ledger."""

    def __init__(
        self, ledger: Ledger, account: str, paid: Entry, plan: TrainingPlan, block: int
    ) -> None:
        self._ledger, self._account, self.paid = ledger, account, paid
        self._steps, self._block = plan.steps, block
        self._token = secure_bits().fill(16).tobytes().hex()
        self._words = re.compile(
            rf"steps (\d{{1,10}}) to (\d{{1,10}}) of the training run of entry {paid.hash}, "
            r"claimed by ([0-9a-f]{32})-(\d{1,10})"
        )
        self._claims = 0

    def claimed_block(self) -> list[int]:
        """The next steps, the last first, for this process alone; none if all are claimed."""
        while (first := self._highest() + 1) <= self._steps:
            last = min(first + self._block - 1, self._steps)
            self._claims += 1
            mine = f"{self._token}-{self._claims}"
            words = (
                f"steps {first} to {last} of the training run of entry {self.paid.hash}, "
                f"claimed by {mine}"
            )
            self._ledger.note(words, account=self._account)
            if (first, last, mine) in self._granted():
                return list(range(last, first - 1, -1))
        return []

    def unclaimed_steps(self) -> int:
        return self._steps - self._highest()

    def _highest(self) -> int:
        return max((last for _, last, _ in self._granted()), default=0)

    def _granted(self) -> list[tuple[int, int, str]]:
        """The claims that count: each begins where those before it end."""
        granted, free = [], 1
        for entry in self._ledger.entries(self._account):
            told = self._words.fullmatch(entry.words or "") if entry.kind == "note" else None
            if told is None:
                continue
            first, last, mine = int(told[1]), int(told[2]), f"{told[3]}-{told[4]}"
            if first == free and first <= last <= self._steps:
                granted.append((first, last, mine))
                free = last + 1
        return granted


def _check_name(name: object) -> None:
    remedy = f"pass at most {_LONGEST_NAME} printable letters"
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= _LONGEST_NAME:
        raise InvalidParameter("name", problem="is not the name of a run", remedy=remedy)
