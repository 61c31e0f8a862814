"""A plan as kernel and checker read it: before it runs, and as the certificate of an answer.

The certificate of an answer (`certificate_of`) is what `lastbit check` needs to compute its price
again: the query, the plan and digests. The plan has seen no data, and the rows digested are
released, so it may go wherever the answer goes (tests/release/test_certificate.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lastbit.checker import Rejected, beliefs, check_query
from lastbit.errors import NotCertified
from lastbit.kernel import Program
from lastbit.tables import MarginalsPlan, Plan, Session, engine_record, sensitivity_of
from lastbit.verify import certificate, digest


def certificate_of(
    plan: Plan | MarginalsPlan,
    *,
    columns: Sequence[Mapping[str, Any]],
    rows: Sequence[Mapping[str, Any]],
    whole: Mapping[str, Any] | None = None,
    head: str | None = None,
    engine: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The certificate of a release by this plan, sealed.

    `columns`, `rows` and `whole` are those of the record; the certificate has their digest. `head`
    is the hash of the reservation that paid for it: quoted later, it proves that no entry was lost.
    `engine` is what is said of the engine (`engine_record`), where that is known already.
    """
    engine = engine_record(plan.card) if engine is None else engine
    kind, claim, body = _claimed(plan, engine, columns=columns, rows=rows, whole=whole, head=head)
    return certificate(kind, claim, beliefs(kind, claim), body)


def certified_program(
    plan: Plan | MarginalsPlan, session: Session, program: Program | None = None
) -> Program:
    """What runs; refused if the checker rejects its price, or what it does with noisy numbers.

    The price of a `program` of this plan was accepted when it was made.
    """
    try:
        accepted = program_of(plan, session, program)
        check_query(plan.query.to_json())
        return accepted
    except (NotCertified, Rejected):
        pass
    raise NotCertified(
        "the checker rejects the plan of this answer; nothing was charged; ask at another price, "
        "or with other weights"
    )


def program_of(
    plan: Plan | MarginalsPlan, session: Session | None = None, known: Program | None = None
) -> Program:
    """What runs if this plan is asked for: the kernel's reading of it, accepted by the checker.

    One that is `known` is not judged again, if it is of this plan.
    """
    if known is not None and known.plan_digest == plan.digest:
        return known
    engine = engine_record(plan.card, session)
    kind, claim, body = _claimed(plan, engine, columns=[], rows=[], head=None)
    return Program(json.dumps({"kind": kind, "claim": claim, "body": body}), plan.card)


def _claimed(
    plan: Plan | MarginalsPlan,
    engine: Mapping[str, Any],
    *,
    columns: Sequence[Mapping[str, Any]],
    rows: Sequence[Mapping[str, Any]],
    head: str | None,
    whole: Mapping[str, Any] | None = None,
) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The kind, the claim and the body of the certificate of a release by this plan."""
    card, written = plan.card, plan.to_json()
    moves = {m.name: sensitivity_of(m, card, groups=plan.groups) for m in plan.measures}
    sealed = {"columns": list(columns), "rows": list(rows)}
    claim = {
        "table": card.name,
        "unit": card.unit,
        "neighbours": card.neighbours.relation,
        "query": written["query"],
        "rows": digest(sealed if whole is None else {**sealed, "whole": whole}),
        **written["cost"],
        **({"through": written["through"]} if "through" in written else {}),
        **({"private": written["private"]} if "private" in written else {}),
        **({} if plan.query.per_unit is None else {"per_unit": True}),
    }
    body = {
        "query": plan.query.to_json(),
        "plan": written,
        "plan_digest": digest(written),
        "moves": {
            name: {norm: str(getattr(found, norm)) for norm in ("l1", "l2_squared", "linf")}
            for name, found in moves.items()
        },
        "ledger": head,
        "engine": dict(engine),
    }
    return "marginals" if isinstance(plan, MarginalsPlan) else "release", claim, body
