from lastbit.tables.backends.columns import (
    columns_of as columns_of,
    public_rows as public_rows,
    public_values as public_values,
    table_look as table_look,
    unit_look as unit_look,
)
from lastbit.tables.backends.csv_records import Header as Header, check_records as check_records
from lastbit.tables.backends.duckdb.counted_keys import prepare_rows as prepare_rows
from lastbit.tables.backends.duckdb.preparing import (
    PreparedState as PreparedState,
    prepared_state as prepared_state,
    unprepare_rows as unprepare_rows,
)
from lastbit.tables.backends.duckdb.public import check_public_apart as check_public_apart
from lastbit.tables.backends.duckdb.snapshot import (
    is_connection as is_connection,
    is_lazy as is_lazy,
    is_relation as is_relation,
    snapshot as snapshot,
)
from lastbit.tables.backends.engines import (
    RawRows as RawRows,
    Session as Session,
    open_session as open_session,
    session_for as session_for,
)
from lastbit.tables.backends.printed import (
    engine_record as engine_record,
    fingerprint as fingerprint,
    printed_statement as printed_statement,
)
from lastbit.tables.backends.progress import progress as progress, told as told
from lastbit.tables.backends.rehearsal import (
    rehearse as rehearse,
    rehearse_marginals as rehearse_marginals,
)
from lastbit.tables.backends.spark.snapshot import (
    spark_kind as spark_kind,
    spark_snapshot as spark_snapshot,
)
from lastbit.tables.card.budget import (
    FILTERS as FILTERS,
    Budget as Budget,
    budgets_agree as budgets_agree,
)
from lastbit.tables.card.column import TYPES as TYPES, Column as Column
from lastbit.tables.card.draft import (
    Compared as Compared,
    Decided as Decided,
    check_names as check_names,
    columns_to_draft as columns_to_draft,
    compared as compared,
    drafted as drafted,
    table_name as table_name,
    taken_from_data as taken_from_data,
)
from lastbit.tables.card.fields import Problem as Problem
from lastbit.tables.card.linked import (
    meant_name as meant_name,
    name_on_card as name_on_card,
    with_way as with_way,
)
from lastbit.tables.card.proposal import (
    ColumnProposal as ColumnProposal,
    TableLook as TableLook,
    UnitLook as UnitLook,
    bounds_text as bounds_text,
    likely_unit as likely_unit,
    proposals as proposals,
    rounded_rows as rounded_rows,
)
from lastbit.tables.card.public import (
    card_from_json as card_from_json,
    card_to_json as card_to_json,
    exact_fraction as exact_fraction,
)
from lastbit.tables.card.read import (
    Examined as Examined,
    examined as examined,
    read_card as read_card,
)
from lastbit.tables.card.schema import (
    DataCard as DataCard,
    EngineLimits as EngineLimits,
    LinkedTable as LinkedTable,
    PrivateTable as PrivateTable,
    PublicTable as PublicTable,
    Source as Source,
)
from lastbit.tables.card.source import source_of as source_of
from lastbit.tables.compile.statement import UNITS as UNITS
from lastbit.tables.limits import sealed as sealed
from lastbit.tables.measures import (
    WEIGHT_ONE as WEIGHT_ONE,
    Measure as Measure,
    distinct_values as distinct_values,
    weight_one as weight_one,
)
from lastbit.tables.plan.conversion import PairConversion as PairConversion
from lastbit.tables.plan.cost import (
    GRID as GRID,
    Cost as Cost,
    on_grid as on_grid,
    rounded_up as rounded_up,
)
from lastbit.tables.plan.declared_prices import (
    admitted as admitted,
    check_admitted as check_admitted,
    check_budget as check_budget,
    suggested as suggested,
)
from lastbit.tables.plan.left_out import Rule as Rule, rules_of as rules_of
from lastbit.tables.plan.marginals import (
    MarginalsPlan as MarginalsPlan,
    component_precision as component_precision,
    consistent_variances as consistent_variances,
    marginals_query as marginals_query,
    planned_marginals as planned_marginals,
    subsets as subsets,
)
from lastbit.tables.plan.parts import (
    AnyPart as AnyPart,
    GaussianPart as GaussianPart,
    GaussianSelection as GaussianSelection,
    LaplacePart as LaplacePart,
    NoisePart as NoisePart,
    PairSelection as PairSelection,
    PartitionSelection as PartitionSelection,
    RankPart as RankPart,
    Selection as Selection,
    SingleKeys as SingleKeys,
    TreePart as TreePart,
)
from lastbit.tables.plan.plan import (
    Plan as Plan,
    planned as planned,
    unit_name as unit_name,
    unit_names as unit_names,
)
from lastbit.tables.plan.price import asked_price as asked_price
from lastbit.tables.plan.sensitivity import (
    Recipe as Recipe,
    sensitivity_of as sensitivity_of,
)
from lastbit.tables.plan.tree import (
    ShareReach as ShareReach,
    Tree as Tree,
    share_reach as share_reach,
    tree_reach as tree_reach,
    worst_reach as worst_reach,
)
from lastbit.tables.plan.written import (
    JoinedUnits as JoinedUnits,
    WrittenPlan as WrittenPlan,
    WrittenRecipe as WrittenRecipe,
)
from lastbit.tables.query.aggregates import (
    AggregateSpec as AggregateSpec,
    PairSpec as PairSpec,
    Wanted as Wanted,
    aggregate_of as aggregate_of,
    cdf as cdf,
    columns_asked as columns_asked,
    correlation as correlation,
    count as count,
    count_distinct as count_distinct,
    count_units as count_units,
    covariance as covariance,
    histogram as histogram,
    intercept as intercept,
    max as max,
    mean as mean,
    median as median,
    min as min,
    number_texts as number_texts,
    quantile as quantile,
    quantiles as quantiles,
    regression as regression,
    slope as slope,
    specs_of as specs_of,
    std as std,
    sum as sum,
    variance as variance,
)
from lastbit.tables.query.derived import (
    Derived as Derived,
    DerivedSpec as DerivedSpec,
    columns_in as columns_in,
)
from lastbit.tables.query.expression import (
    Call as Call,
    ColumnName as ColumnName,
    ColumnType as ColumnType,
    Constant as Constant,
    Expression as Expression,
    StoredType as StoredType,
    Value as Value,
    check_parts as check_parts,
    from_json as from_json,
    value_from_json as value_from_json,
    value_to_json as value_to_json,
    value_type as value_type,
)
from lastbit.tables.query.key_values import known_values as known_values
from lastbit.tables.query.known_keys import (
    bounded_key as bounded_key,
    clamped_day as clamped_day,
)
from lastbit.tables.query.query import (
    Aggregate as Aggregate,
    OrderBy as OrderBy,
    Query as Query,
    all_of as all_of,
)
from lastbit.tables.query.rules import call as call
from lastbit.tables.query.scan import (
    GroupKey as GroupKey,
    Marginal as Marginal,
    Scan as Scan,
    scan_fields as scan_fields,
)
from lastbit.tables.query.sub_query import counted_card as counted_card
from lastbit.tables.query.types import (
    DATE_VALUES as DATE_VALUES,
    card_types as card_types,
    type_of as type_of,
)
from lastbit.tables.query.units import (
    ListJoin as ListJoin,
    PerUnit as PerUnit,
    UnitColumn as UnitColumn,
    UnitFunction as UnitFunction,
    UnitJoin as UnitJoin,
    UnitKey as UnitKey,
)
from lastbit.tables.query.view import ShownKey as ShownKey, View as View
from lastbit.tables.query.writing import to_json as to_json, values_to_json as values_to_json
from lastbit.tables.sql.asked import (
    columns_named as columns_named,
    parameter_columns as parameter_columns,
    parameter_kinds as parameter_kinds,
    tables_named as tables_named,
    with_values as with_values,
)
from lastbit.tables.sql.expressions import quoted as quoted
from lastbit.tables.sql.grouping import grouped_by as grouped_by
from lastbit.tables.sql.numbers import (
    numbers_in as numbers_in,
    numbers_in_statement as numbers_in_statement,
)
from lastbit.tables.sql.per_unit import unit_column as unit_column
from lastbit.tables.sql.rows import (
    SelectedRows as SelectedRows,
    joined_with as joined_with,
    rows_of as rows_of,
    rows_per_unit as rows_per_unit,
    with_column as with_column,
)
from lastbit.tables.sql.statement import (
    Released as Released,
    condition_of as condition_of,
    expression_of as expression_of,
    parsed as parsed,
    released_condition as released_condition,
    view_of as view_of,
)

__all__ = [
    "Budget",
    "Column",
    "Cost",
    "DataCard",
    "LinkedTable",
    "Plan",
    "PrivateTable",
    "PublicTable",
    "Query",
    "Source",
    "Wanted",
    "cdf",
    "correlation",
    "count",
    "count_distinct",
    "count_units",
    "covariance",
    "histogram",
    "intercept",
    "max",
    "mean",
    "median",
    "min",
    "parsed",
    "planned",
    "quantile",
    "quantiles",
    "read_card",
    "regression",
    "slope",
    "std",
    "sum",
    "variance",
]
