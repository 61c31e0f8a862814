from lastbit.ledger.answers import Known as Known
from lastbit.ledger.chain import IsAnswer as IsAnswer
from lastbit.ledger.charging import ChargingLedger as ChargingLedger
from lastbit.ledger.deciding import check_deciding as check_deciding, opens_filter as opens_filter
from lastbit.ledger.entry import (
    Account as Account,
    Entry as Entry,
    neighbours_of as neighbours_of,
)
from lastbit.ledger.inspection import user_name as user_name
from lastbit.ledger.ledger import Ledger as Ledger
from lastbit.ledger.limits import (
    PERIODS as PERIODS,
    ROLES as ROLES,
    Limit as Limit,
    Period as Period,
    Role as Role,
    Total as Total,
)
from lastbit.ledger.principals import (
    Allowance as Allowance,
    Principal as Principal,
    check_charging as check_charging,
)
from lastbit.ledger.safekeeping import (
    anchor_noted as anchor_noted,
    anchored as anchored,
    check_output as check_output,
    exported as exported,
    restored as restored,
    spared_by as spared_by,
)
from lastbit.ledger.storage import Connections as Connections

__all__ = [
    "Account",
    "Allowance",
    "Entry",
    "Ledger",
    "Limit",
    "Principal",
    "check_output",
    "exported",
    "restored",
    "spared_by",
]
