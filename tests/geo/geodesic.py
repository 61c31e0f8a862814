"""Distances on WGS84 by other means than the library's: Vincenty's series, and an integration."""

import math

A = 6378137.0
F = 1 / 298.257223563
B = A * (1 - F)
E2 = F * (2 - F)


def distance(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Metres between two places (latitude, longitude): Vincenty's inverse formula, to 0.1 mm."""
    if one == other:
        return 0.0
    u1, u2 = (math.atan((1 - F) * math.tan(math.radians(p[0]))) for p in (one, other))
    span = math.radians((other[1] - one[1] + 540) % 360 - 180)
    s1, c1, s2, c2 = math.sin(u1), math.cos(u1), math.sin(u2), math.cos(u2)
    along = span
    for _ in range(200):
        sine = math.hypot(c2 * math.sin(along), c1 * s2 - s1 * c2 * math.cos(along))
        cosine = s1 * s2 + c1 * c2 * math.cos(along)
        sigma = math.atan2(sine, cosine)
        azimuth = c1 * c2 * math.sin(along) / sine if sine else 0.0
        squared = 1 - azimuth * azimuth
        middle = cosine - 2 * s1 * s2 / squared if squared else 0.0
        c = F / 16 * squared * (4 + F * (4 - 3 * squared))
        inner = middle + c * cosine * (2 * middle * middle - 1)
        new = span + (1 - c) * F * azimuth * (sigma + c * sine * inner)
        if abs(new - along) < 1e-15:
            break
        along = new
    v = squared * (A * A - B * B) / (B * B)
    a = 1 + v / 16384 * (4096 + v * (-768 + v * (320 - 175 * v)))
    b = v / 1024 * (256 + v * (-128 + v * (74 - 47 * v)))
    cubic = b / 6 * middle * (4 * sine * sine - 3) * (4 * middle * middle - 3)
    change = b * sine * (middle + b / 4 * (cosine * (2 * middle * middle - 1) - cubic))
    return B * a * (sigma - change)


def walked(
    start: tuple[float, float], azimuth: float, length: float, steps: int = 400
) -> tuple[float, float]:
    """Where a geodesic ends that starts with this azimuth (radians): its equations, by RK4."""
    state = [math.radians(start[0]), math.radians(start[1]), azimuth]
    h = length / steps
    for _ in range(steps):
        k1 = _slope(state)
        k2 = _slope([x + h / 2 * k for x, k in zip(state, k1, strict=True)])
        k3 = _slope([x + h / 2 * k for x, k in zip(state, k2, strict=True)])
        k4 = _slope([x + h * k for x, k in zip(state, k3, strict=True)])
        state = [
            x + h / 6 * (p + 2 * q + 2 * r + s)
            for x, p, q, r, s in zip(state, k1, k2, k3, k4, strict=True)
        ]
    return math.degrees(state[0]), math.degrees(state[1])


def _slope(state: list[float]) -> tuple[float, float, float]:
    latitude, _, azimuth = state
    root = math.sqrt(1 - E2 * math.sin(latitude) ** 2)
    n, m = A / root, A * (1 - E2) / root**3
    sine, cosine = math.sin(azimuth), math.cos(azimuth)
    return cosine / m, sine / (n * math.cos(latitude)), math.tan(latitude) * sine / n
