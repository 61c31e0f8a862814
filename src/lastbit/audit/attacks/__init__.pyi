from lastbit.audit.attacks.forked import forked as forked
from lastbit.audit.attacks.low_bits import low_bits as low_bits
from lastbit.audit.attacks.narrow_sum import narrow_sum as narrow_sum
from lastbit.audit.attacks.not_a_number import not_a_number as not_a_number
from lastbit.audit.attacks.overflow import overflow as overflow
from lastbit.audit.attacks.polar_pairs import polar_pairs as polar_pairs
from lastbit.audit.attacks.precision import precision as precision
from lastbit.audit.attacks.preimage import preimage as preimage
from lastbit.audit.attacks.registry import (
    ATTACKS as ATTACKS,
    Attack as Attack,
    attack_named as attack_named,
    run as run,
)
from lastbit.audit.attacks.reordering import reordering as reordering
from lastbit.audit.attacks.threshold import threshold as threshold
from lastbit.audit.attacks.timing import timing as timing
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
