"""The map on the page about places: made-up places, and made-up offsets instead of noise.

Real noise has no seed, so a picture with it could never be drawn again. These offsets are as long
as noise of ln(4) in 200 m would be. To draw the picture anew: python -m tests.report.example_map
"""

import math
from pathlib import Path

from lastbit.geo.geo import Geo
from lastbit.report.maps import PlaceMap, place_map

PICTURE = Path(__file__).parents[2] / "docs" / "figures" / "geo-map.svg"

# metres east and north of the middle, and by how much each place is moved
PLACES = (
    (260, -2540, 260, -460),
    (-1340, -1510, 130, 140),
    (1830, 70, -100, 90),
    (1990, -370, -310, -320),
    (-3040, 40, -330, 810),
    (-1950, -10, 10, 70),
    (-790, -2370, -280, -230),
    (550, -1620, -40, -280),
    (-660, 710, 140, 220),
    (520, -1410, -170, -180),
    (-1070, 1920, -390, -140),
    (980, -1340, -260, -630),
    (-1900, 690, -170, 140),
    (-1410, -260, -390, 40),
    (1330, -710, 430, 230),
    (-2610, 1520, 160, 50),
    (-320, -1760, 140, 110),
    (-730, 2510, -30, 0),
    (-3680, 970, 0, 150),
    (-970, -1490, -10, -230),
    (1600, -1250, -100, 80),
    (-1260, 650, -90, 50),
    (-390, -2050, 40, -30),
    (1470, -800, -80, 0),
    (-310, -2100, -300, -40),
    (1070, -550, 310, -150),
    (900, -370, 320, -50),
    (-700, -1630, 420, 420),
    (1070, 270, -200, 30),
    (120, 1500, -60, -90),
)


def example() -> str:
    """The picture, as `lastbit theory geo --map` would draw it."""
    noise = Geo(epsilon="ln(4)/200m", region=(52.49, 13.34, 52.55, 13.46))
    radius = noise.radius("0.95")
    east, north = (float(half) for half in noise.map.extent)
    return place_map(
        PlaceMap(
            title="Made-up places, true and noisy",
            words=(
                f"{len(PLACES)} places, moved as planar Laplace noise of ε = ln(4) at 200 m would.",
                "Any two places of the region at most 200 m apart: an observer's odds change by at "
                "most a factor 4.",
            ),
            region=(-east, -north, east, north),
            noisy=tuple((x + right, y + up) for x, y, right, up in PLACES),
            true=tuple((x, y) for x, y, _, _ in PLACES),
            radius=radius,
            ring=f"around one place: 95 % of the noisy ones are within {math.ceil(radius)} m",
        )
    )


if __name__ == "__main__":
    PICTURE.write_text(example(), "utf-8")
