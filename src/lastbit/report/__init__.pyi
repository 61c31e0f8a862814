from lastbit.report.answer import (
    EMPTY as EMPTY,
    answer_in_notebook as answer_in_notebook,
    answer_in_terminal as answer_in_terminal,
    answer_parts as answer_parts,
    page as page,
    table_of as table_of,
    totals_of as totals_of,
)
from lastbit.report.budget import (
    account_json as account_json,
    allowance_json as allowance_json,
    answers_left as answers_left,
    budget_parts as budget_parts,
    epsilon_taken as epsilon_taken,
    typical_price as typical_price,
)
from lastbit.report.cells import shown_cell as shown_cell
from lastbit.report.certificate import (
    certificate_latex as certificate_latex,
    certificate_page as certificate_page,
)
from lastbit.report.charts import (
    Axis as Axis,
    Bars as Bars,
    Panel as Panel,
    Range as Range,
    Series as Series,
    Stems as Stems,
    Zone as Zone,
    middle as middle,
    picture as picture,
    raised as raised,
)
from lastbit.report.claims import Claim as Claim, claim_of as claim_of, only_probed as only_probed
from lastbit.report.deployment import (
    checklist_markdown as checklist_markdown,
    checklist_page as checklist_page,
    deployment_of as deployment_of,
)
from lastbit.report.law_charts import Cell as Cell, LawPanel as LawPanel, law_picture as law_picture
from lastbit.report.maps import PlaceMap as PlaceMap, place_map as place_map
from lastbit.report.marginals import (
    cross_table as cross_table,
    marginal_tables as marginal_tables,
)
from lastbit.report.page import (
    AuditStory as AuditStory,
    amount as amount,
    audit_page as audit_page,
    grouped_up as grouped_up,
    page_environment as page_environment,
    price as price,
    printable as printable,
    quoted as quoted,
    rendered as rendered,
)
from lastbit.report.plan import (
    MOST_NOTES as MOST_NOTES,
    UNTOUCHED as UNTOUCHED,
    PlanFacts as PlanFacts,
    more_words as more_words,
    notes_of as notes_of,
    plan_words as plan_words,
    title_of as title_of,
)
from lastbit.report.register import register_csv as register_csv, register_page as register_page
from lastbit.report.registry import registry_entry as registry_entry
from lastbit.report.whole import shown_columns as shown_columns, whole_sentences as whole_sentences

__all__ = [
    "AuditStory",
    "Axis",
    "Bars",
    "Cell",
    "Claim",
    "LawPanel",
    "Panel",
    "PlaceMap",
    "Series",
    "Stems",
    "Zone",
    "audit_page",
    "certificate_latex",
    "certificate_page",
    "claim_of",
    "law_picture",
    "picture",
    "place_map",
]
