"""What people call a step of a table who come from another library, and how it is written here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lastbit.arguments import nearest
from lastbit.errors import UnknownName

_STEPS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("filter", "loc"), '.where("cost > 100")'),
        "select": '.agg(n=lb.count()), or .with_columns(half="cost / 2")',
        **dict.fromkeys(("assign", "mutate", "with_column"), '.with_columns(half="cost / 2")'),
        **dict.fromkeys(("groupby", "by"), '.group_by("region")'),
        **dict.fromkeys(("aggregate", "summarize", "summarise"), ".agg(n=lb.count())"),
        **dict.fromkeys(("count", "size", "len", "value_counts"), ".agg(n=lb.count())"),
        **dict.fromkeys(
            ("sum", "mean", "median", "quantile", "std", "min", "max"),
            '.agg(cost=lb.mean("cost", 0, 500))',
        ),
        **dict.fromkeys(("sort", "sort_by", "sort_values", "orderby"), '.order_by("n")'),
        **dict.fromkeys(("head", "top", "take"), ".limit(10)"),
        "merge": '.join("regions", on="region")',
        "crosstab": '.marginals(["region", "sex"])',
        "describe": ".profile(epsilon=1)",
        "columns": ".card.columns",
        **dict.fromkeys(
            ("collect", "compute", "execute", "run", "fetch", "answer", "rows"),
            ".release(epsilon=1)",
        ),
        **{
            name: f".release(epsilon=1).{name}()"
            for name in ("to_pandas", "to_polars", "to_arrow", "to_dicts", "to_csv")
        },
    }
)
"""What other libraries call a step, and how it is written here."""


def unknown_step(table: type, name: str) -> UnknownName:
    """Why a table has no such name, and which was probably meant."""
    meant = _STEPS.get(name.lower())
    steps = [step for step in dir(table) if not step.startswith("_")]
    near = nearest(name, steps)
    remedy = f"did you mean {meant}?" if meant else f"{near}help(lb.release.Table) has all"
    return UnknownName(name[:60], problem="is not a step of a table", remedy=remedy)
