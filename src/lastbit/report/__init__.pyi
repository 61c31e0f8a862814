from lastbit.report.answer_tables import (
    AnswerTable as AnswerTable,
    shown_cell as shown_cell,
    table_of as table_of,
    totals_of as totals_of,
)
from lastbit.report.answers import (
    page as page,
)
from lastbit.report.audit_figures import (
    Cell as Cell,
    LawPanel as LawPanel,
    Range as Range,
    law_picture as law_picture,
)
from lastbit.report.audit_page import (
    AuditStory as AuditStory,
    audit_page as audit_page,
)
from lastbit.report.claims import (
    Claim as Claim,
    claim_of as claim_of,
    only_probed as only_probed,
)
from lastbit.report.curves import (
    Axis as Axis,
    Chart as Chart,
    Curve as Curve,
    Mark as Mark,
    chart as chart,
    powers_of_ten as powers_of_ten,
)
from lastbit.report.derivations import (
    certificate_page as certificate_page,
)
from lastbit.report.figures import (
    composition_figure as composition_figure,
    gaussian_curve_figure as gaussian_curve_figure,
    laplace_figure as laplace_figure,
    poll_figure as poll_figure,
    posterior_figure as posterior_figure,
)
from lastbit.report.maps import (
    PlaceMap as PlaceMap,
    place_map as place_map,
)
from lastbit.report.noise_figures import (
    admissible_figure as admissible_figure,
    planar_figure as planar_figure,
    smooth_sensitivity_figure as smooth_sensitivity_figure,
)
from lastbit.report.plan import (
    PlanRow as PlanRow,
    PlanWords as PlanWords,
    bounding_sentences as bounding_sentences,
    composition_sentence as composition_sentence,
    plan_rows as plan_rows,
    plan_words as plan_words,
    record_words as record_words,
    title_of as title_of,
)
from lastbit.report.plots import (
    Bars as Bars,
    Panel as Panel,
    Series as Series,
    Stems as Stems,
    Zone as Zone,
    picture as picture,
)
from lastbit.report.proofs import (
    certificate_latex as certificate_latex,
)
from lastbit.report.words import (
    cost_text as cost_text,
    price as price,
    printable as printable,
    quoted as quoted,
)

__all__ = [
    "AuditStory",
    "Axis",
    "Bars",
    "Cell",
    "Chart",
    "Claim",
    "Curve",
    "LawPanel",
    "Mark",
    "Panel",
    "PlaceMap",
    "Series",
    "Stems",
    "Zone",
    "admissible_figure",
    "audit_page",
    "certificate_latex",
    "certificate_page",
    "chart",
    "claim_of",
    "composition_figure",
    "gaussian_curve_figure",
    "laplace_figure",
    "law_picture",
    "picture",
    "place_map",
    "planar_figure",
    "poll_figure",
    "posterior_figure",
    "powers_of_ten",
    "smooth_sensitivity_figure",
]
