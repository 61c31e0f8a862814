from lastbit.release.answer import Answer as Answer, Row as Row
from lastbit.release.believing import record_problem as record_problem
from lastbit.release.choosing import (
    plan_on_record as plan_on_record,
    prepare_plan as prepare_plan,
)
from lastbit.release.expected import plan_words as plan_words
from lastbit.release.kept import check_kept as check_kept, with_kept as with_kept
from lastbit.release.levels import LevelsPlan as LevelsPlan, LevelsQuestion as LevelsQuestion
from lastbit.release.levels_answer import LevelRow as LevelRow, LevelsAnswer as LevelsAnswer
from lastbit.release.limits import open_questions as open_questions
from lastbit.release.made_up_rows import (
    in_own_format as in_own_format,
    made_up as made_up,
    made_up_answer as made_up_answer,
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
from lastbit.release.paying import (
    Paid as Paid,
    accept_data as accept_data,
    answered as answered,
    checked as checked,
    reserved as reserved,
)
from lastbit.release.private_table import Table as Table
from lastbit.release.profile import LINES as LINES, Profile as Profile
from lastbit.release.recorded import (
    question_of_plan as question_of_plan,
    served as served,
)
from lastbit.release.release import (
    columns_to_release as columns_to_release,
    released as released,
)
from lastbit.release.remote import RemoteTable as RemoteTable, remote_table as remote_table
from lastbit.release.synthetic_rows import (
    Synthetic as Synthetic,
    synthetic as synthetic,
    synthetic_from as synthetic_from,
)
from lastbit.release.table import table as table
from lastbit.release.tuning import (
    BoundsSuggestion as BoundsSuggestion,
    MaxRowsSuggestion as MaxRowsSuggestion,
    Option as Option,
    limit_words as limit_words,
    option_row as option_row,
    suggest_bounds as suggest_bounds,
    suggest_max_rows as suggest_max_rows,
)
from lastbit.release.within import planned_within as planned_within, price_rows as price_rows
from lastbit.release.workload import (
    Workload as Workload,
    WorkloadPlan as WorkloadPlan,
    statements_in as statements_in,
    workload as workload,
)

__all__ = [
    "Answer",
    "BoundsSuggestion",
    "LevelsAnswer",
    "Marginals",
    "MaxRowsSuggestion",
    "RemoteTable",
    "Row",
    "Synthetic",
    "Table",
    "released",
    "synthetic_from",
]
