from lastbit.audit.attacks.registry import (
    ATTACKS as ATTACKS,
    Attack as Attack,
    attack_named as attack_named,
    run as attack,
    run as run,
)
from lastbit.audit.blackbox.distinguish import (
    LAW_SHARE as LAW_SHARE,
    compared as compared,
    confirmed as confirmed,
    contradicted as contradicted,
    distinguish as distinguish,
    distinguish_by_law as distinguish_by_law,
    distinguish_by_sampling as distinguish_by_sampling,
)
from lastbit.audit.blackbox.exact_laws import law_of as law_of
from lastbit.audit.blackbox.features import (
    Feature as Feature,
    features as features,
    last_place as last_place,
    rows as rows,
)
from lastbit.audit.bounds import (
    delta_lower as delta_lower,
    epsilon_lower as epsilon_lower,
    error_of as error_of,
    interval as interval,
)
from lastbit.audit.canaries import (
    MOST_CANARIES as MOST_CANARIES,
    TrainingAudit as TrainingAudit,
    audit_training as audit_training,
    guesses_epsilon_lower as guesses_epsilon_lower,
    guesses_tail as guesses_tail,
)
from lastbit.audit.inputs import (
    MOST_PAIRS as MOST_PAIRS,
    SeededRandom as SeededRandom,
    all_may_move as all_may_move,
    one_may_move as one_may_move,
)
from lastbit.audit.replay.findings import Finding as Finding, Replay as Replay
from lastbit.audit.replay.neighbours import Neighbour as Neighbour, neighbours as neighbours
from lastbit.audit.replay.primitives import noise as noise
from lastbit.audit.replay.recorder import Tape as Tape
from lastbit.audit.replay.replay import (
    ProgramAudit as ProgramAudit,
    audit_program as audit_program,
    record as record,
    replay as replay,
)
from lastbit.audit.result import (
    AuditResult as AuditResult,
    Condition as Condition,
    Event as Event,
    NoEvent as NoEvent,
    OutputEvent as OutputEvent,
    RangeEvent as RangeEvent,
    RatioEvent as RatioEvent,
    Verdict as Verdict,
)
from lastbit.audit.targets.libraries import LIBRARIES as LIBRARIES, targets as targets
from lastbit.audit.targets.target import (
    SumTarget as SumTarget,
    Target as Target,
    as_release as as_release,
)

__all__ = [
    "ATTACKS",
    "Attack",
    "AuditResult",
    "Finding",
    "LIBRARIES",
    "Neighbour",
    "ProgramAudit",
    "Replay",
    "SumTarget",
    "Tape",
    "Target",
    "TrainingAudit",
    "Verdict",
    "attack",
    "attack_named",
    "audit_program",
    "audit_training",
    "delta_lower",
    "distinguish",
    "distinguish_by_law",
    "distinguish_by_sampling",
    "epsilon_lower",
    "guesses_epsilon_lower",
    "guesses_tail",
    "interval",
    "neighbours",
    "noise",
    "record",
    "replay",
    "targets",
]
