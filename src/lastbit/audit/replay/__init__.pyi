from lastbit.audit.replay.replay import (
    audit_program as audit_program,
    record as record,
    replay as replay,
)

__all__ = ["audit_program", "record", "replay"]
