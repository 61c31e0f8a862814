from lastbit.release.answer import (
    Answer as Answer,
    Row as Row,
)
from lastbit.release.private_table import (
    Table as Table,
    table as table,
)
from lastbit.release.release import (
    released as released,
)

__all__ = [
    "Answer",
    "Row",
    "Table",
    "released",
]
