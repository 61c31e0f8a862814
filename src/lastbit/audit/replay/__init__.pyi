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

__all__ = [
    "Finding",
    "Neighbour",
    "ProgramAudit",
    "Replay",
    "Tape",
    "audit_program",
    "neighbours",
    "noise",
    "record",
    "replay",
]
