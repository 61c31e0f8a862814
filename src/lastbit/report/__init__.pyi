from lastbit.report.answer import (
    answer_in_notebook as answer_in_notebook,
    answer_in_terminal as answer_in_terminal,
    page as page,
    shown_cell as shown_cell,
    table_of as table_of,
    totals_of as totals_of,
)
from lastbit.report.audit import (
    AuditStory as AuditStory,
    audit_page as audit_page,
)
from lastbit.report.certificate import (
    Claim as Claim,
    certificate_latex as certificate_latex,
    certificate_page as certificate_page,
    claim_of as claim_of,
    only_probed as only_probed,
)
from lastbit.report.charts import (
    Axis as Axis,
    Bars as Bars,
    Cell as Cell,
    Chart as Chart,
    Curve as Curve,
    LawPanel as LawPanel,
    Mark as Mark,
    Panel as Panel,
    Range as Range,
    Series as Series,
    Stems as Stems,
    Zone as Zone,
    chart as chart,
    law_picture as law_picture,
    picture as picture,
    powers_of_ten as powers_of_ten,
)
from lastbit.report.figures import (
    admissible_figure as admissible_figure,
    composition_figure as composition_figure,
    gaussian_curve_figure as gaussian_curve_figure,
    laplace_figure as laplace_figure,
    planar_figure as planar_figure,
    poll_figure as poll_figure,
    posterior_figure as posterior_figure,
    smooth_sensitivity_figure as smooth_sensitivity_figure,
)
from lastbit.report.maps import (
    PlaceMap as PlaceMap,
    place_map as place_map,
)
from lastbit.report.plan import (
    plan_words as plan_words,
    title_of as title_of,
)
from lastbit.report.words import (
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
