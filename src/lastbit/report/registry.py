"""An entry for the Differential Privacy Deployments Registry, from what is on record of a table.

Source   the registry's schema (Ghazi, Nanayakkara, Vadhan 2025) as it was in July 2026
Checked  tests/report/test_deployment.py
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from lastbit.exact import rounded_up
from lastbit.report.deployment import (
    CENTRAL,
    CLOCK,
    EXACT,
    VARIANTS,
    WIDTH,
    Deployment,
    accepted_words,
    composition_words,
    mechanism_words,
    neighbour_words,
    unprotected_words,
)
from lastbit.report.page import CURRENCIES, listed, price, printable
from lastbit.report.plan import bound_words

_DIGITS = 7
_OPEN = "to be filled in"


def registry_entry(about: Deployment) -> str:
    """An entry for the Differential Privacy Deployments Registry, as YAML, of status Draft.

    What is on record is filled in; an empty text with a comment is for people.
    """
    return "\n".join(_yaml(_entry(about))) + "\n"


def _entry(about: Deployment) -> dict[str, Any]:
    card, budget = about.card, about.account.budget
    assert budget is not None  # `lastbit report` refuses a card without one
    first = min(one.when for one in about.answers)
    slug = re.sub(r"\W+", "-", printable(card.name, 60).lower()).strip("-")
    derived = {row.name for one in about.accepted for row in one.reading.query.derived}
    made = sorted(map(printable, derived))
    asked = dict.fromkeys(one.title for one in about.accepted)
    return {
        "url_slug": f"{slug}-{first[:4]}",
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": printable(card.name, 60),
                "data_curators": [""],
                "intended_use": "",
                "data_product_type": "Summary statistics",
                "data_product_region": "",
                "description": f"Answers about the table {printable(card.name, 60)}: "
                + "; ".join(asked),
                "publication_date": first,
            },
            "dp_variant": {
                "variant_name": VARIANTS[budget.kind],
                "data_domain": "Tables with the columns "
                + listed(
                    [f"{printable(n, 60)} ({c.stored_type})" for n, c in card.columns.items()]
                ),
                "unprotected_quantities": unprotected_words(about),
            },
            "privacy_loss": _loss(about),
            "deployment_model": _model(about),
            "accounting": {
                "post_processing": f"Computed from released numbers: {listed(made)}."
                if made
                else "Rounding for display; none that is on record otherwise.",
                "composition": composition_words(about),
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": "",
                "mechanisms": f"{mechanism_words(about)} {EXACT} {CLOCK}",
                "justification": "",
            },
            "administrative": {
                "sources": "",
                "notes": "An independent checker accepts the certificates of "
                f"{accepted_words(about)}. The ledger's head: {about.head}",
                "registry_authors": [""],
            },
        },
    }


def _loss(about: Deployment) -> dict[str, Any]:
    kept, unit = about.account.budget, about.unit
    bound = bound_words(about.card.unit, about.card.max_rows)
    return {
        "privacy_unit": "Row-level" if about.card.unit is None else f"{unit}-level",
        "privacy_unit_details": f"{neighbour_words(about)} {bound}",
        "privacy_parameters": {
            name: getattr(kept, name) for name, _ in CURRENCIES if getattr(kept, name)
        },
        "privacy_parameters_details": "The budget of all answers together, rounded up. Spent so "
        f"far, by plain sums: {price(about.account.spent.to_json())}.",
    }


def _model(about: Deployment) -> dict[str, Any]:
    once = len(about.answers) == 1
    changing = len({one.fingerprint for one in about.answers}) > 1
    asking = about.card.users is not None or bool(about.roles)
    return {
        "model_name": "Central",
        "actors": CENTRAL,
        "release_type": "One release" if once else "Many releases",
        "release_type_details": "A fixed budget for all releases; it is not renewed by itself.",
        "data_source_type": "Dynamic" if changing else "Static",
        "access_type": "Interactive" if asking else "Non-interactive",
        "access_type_details": "",
    }


def _yaml(value: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    for name, one in value.items():
        if isinstance(one, Mapping):
            yield f"{indent}{name}:"
            yield from _yaml(one, indent + "  ")
        elif isinstance(one, list):
            yield f"{indent}{name}:"
            yield from (f"{indent}  - {_scalar(item)}" for item in one)
        elif isinstance(one, str) and len(one) > WIDTH - len(indent) - len(name) - 4:
            yield f"{indent}{name}: >-"
            yield from textwrap.wrap(
                printable(" ".join(one.split()), 1 << 16),
                WIDTH,
                initial_indent=f"{indent}  ",
                subsequent_indent=f"{indent}  ",
                break_long_words=False,
                break_on_hyphens=False,
            )
        else:
            yield f"{indent}{name}: {_scalar(one)}"


def _scalar(value: str | int | Fraction) -> str:
    if isinstance(value, Fraction):  # YAML 1.1 takes 1e-6 for a text, and 1.0e-6 for a number
        number = rounded_up(value, _DIGITS)
        return number if "." in number else number.replace("e", ".0e")
    if not value:
        return f'""  # {_OPEN}'
    return json.dumps(value, ensure_ascii=False)
