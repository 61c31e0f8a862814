from lastbit.geo.geo import Geo as Geo
from lastbit.geo.parsing import ExactLoss as ExactLoss, parse_epsilon as parse_epsilon
from lastbit.geo.region import LocalMap as LocalMap, Region as Region

__all__ = [
    "Geo",
    "LocalMap",
    "Region",
    "parse_epsilon",
]
