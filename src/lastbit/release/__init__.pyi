from lastbit.release.answer import (
    Answer as Answer,
    Row as Row,
)
from lastbit.release.release import (
    released as released,
)
from lastbit.release.table import (
    table as table,
)

__all__ = [
    "Answer",
    "Row",
    "released",
]
