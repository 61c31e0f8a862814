"""The certificate of an answer: what `lastbit check` needs to work out its price again.

Theorem  a certificate holds nothing but the query, the plan and digests. The plan has seen no
         data, and the rows digested are released: so it may go wherever the answer goes
Checked  tests/release/test_certificate.py; the checker: `verify/check_release.py`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lastbit.tables.measures import Measure
from lastbit.tables.plan import Plan
from lastbit.tables.stability import moves
from lastbit.verify.arithmetic import digest
from lastbit.verify.certificate import certificate
from lastbit.verify.check import beliefs

__all__ = ["certificate_of"]


def certificate_of(
    plan: Plan,
    *,
    columns: Sequence[Mapping[str, Any]],
    rows: Sequence[Mapping[str, Any]],
    head: str | None = None,
) -> dict[str, Any]:
    """The certificate of a release by this plan, sealed.

    `columns` and `rows` are those of the record; the certificate has their digest. `head` is the
    hash of the reservation that paid for it: quoted later, it proves that no entry was lost.
    """
    card, written = plan.card, plan.to_json()
    claim = {
        "table": card.name,
        "unit": card.unit,
        "neighbours": card.neighbours.relation,
        "query": plan.query.digest,
        "rows": digest({"columns": list(columns), "rows": list(rows)}),
        **written["cost"],
    }
    body = {
        "query": plan.query.to_json(),
        "plan": written,
        "plan_digest": plan.digest,
        "moves": {measure.name: _moves(plan, measure) for measure in plan.measures},
        "ledger": head,
    }
    return certificate("release", claim, beliefs("release", claim), body)


def _moves(plan: Plan, measure: Measure) -> dict[str, str]:
    found = moves(measure, plan.card, groups=plan.groups)
    return {
        "l1": str(found.l1),
        "l2_squared": str(found.l2_squared),
        "linf": str(found.linf),
    }
