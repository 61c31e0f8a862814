from lastbit.geo.location import (
    Geo as Geo,
)
from lastbit.geo.parsing import (
    ExactLoss as ExactLoss,
    parse_epsilon as parse_epsilon,
)
from lastbit.geo.plane import (
    LocalMap as LocalMap,
)
from lastbit.geo.region import (
    Region as Region,
)

__all__ = [
    "Geo",
    "LocalMap",
    "Region",
    "parse_epsilon",
]
