from lastbit.audit.attacks.floats import (
    low_bits as low_bits,
    polar_pairs as polar_pairs,
    precision as precision,
    preimage as preimage,
)
from lastbit.audit.attacks.noise import forked as forked, threshold as threshold, timing as timing
from lastbit.audit.attacks.registry import (
    ATTACKS as ATTACKS,
    Attack as Attack,
    attack_named as attack_named,
    run as run,
)
from lastbit.audit.attacks.sums import (
    narrow_sum as narrow_sum,
    not_a_number as not_a_number,
    overflow as overflow,
    reordering as reordering,
)
from lastbit.audit.attacks.trial import catches as catches, trials_to_catch as trials_to_catch

__all__ = [
    "ATTACKS",
    "Attack",
    "attack_named",
    "catches",
    "forked",
    "low_bits",
    "narrow_sum",
    "not_a_number",
    "overflow",
    "polar_pairs",
    "precision",
    "preimage",
    "reordering",
    "run",
    "threshold",
    "timing",
    "trials_to_catch",
]
