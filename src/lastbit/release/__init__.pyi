from lastbit.release.answer import (
    Answer as Answer,
    Row as Row,
)
from lastbit.release.marginal_answer import (
    MarginalCell as MarginalCell,
    Marginals as Marginals,
    MarginalTable as MarginalTable,
)
from lastbit.release.marginals import (
    MarginalsQuestion as MarginalsQuestion,
    released_marginals as released_marginals,
)
from lastbit.release.private_table import (
    Table as Table,
    table as table,
)
from lastbit.release.release import (
    released as released,
)
from lastbit.release.synthetic_rows import (
    Synthetic as Synthetic,
    synthetic as synthetic,
    synthetic_from as synthetic_from,
)
from lastbit.release.within import (
    planned_within as planned_within,
    price_rows as price_rows,
)

__all__ = [
    "Answer",
    "Marginals",
    "Row",
    "Synthetic",
    "Table",
    "released",
    "synthetic_from",
]
