"""`lastbit theory geo`: a file of places in, a file of noisy places out, and maps of both.

No message repeats a cell of the file.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
import numpy as np

from lastbit.cli.files import OTHER_MARKS, check_folder, csv_records, save
from lastbit.cli.options import FILE, command, flag, json_option, option, refusal
from lastbit.cli.output import Facts, Heading, Part, show, show_json, waiting
from lastbit.exact import rounded_down, rounded_near, rounded_up
from lastbit.files import same_place
from lastbit.geo import ExactLoss, Geo
from lastbit.report import PlaceMap, place_map

MOST_ROWS = 1_000_000
NOTICEABLE = Fraction(102, 100)
SWAPPED = "correct it, or swap the two columns if they are swapped: --lat, --lon"
LATITUDE = ("latitude", "lat")
LONGITUDE = ("longitude", "lon", "lng", "long")


@command(
    'theory geo points.csv --epsilon "ln(4)/200m" --region 52.3,13.0,52.7,13.8 --out noisy.csv'
)
@click.argument("points", type=FILE)
@option(
    "--epsilon",
    'The loss and its distance: "ln(4)/200m" changes odds of places 200 m apart by a factor '
    'of at most 4. Also "1 per 200 m", "0.0069/m".',
    "LOSS",
    required=True,
)
@option("--within", "The distance, if --epsilon names none: 200m.", "LENGTH")
@option(
    "--region",
    "The public region in degrees: south, west, north, east. Places outside are moved to its edge.",
    "S,W,N,E",
)
@option("--centre", "The middle of the region, with --radius.", "LAT,LON")
@option("--radius", "How far the region reaches from --centre: 10km.", "LENGTH")
@option("--out", "Where the noisy places go (CSV).", FILE, required=True)
@option("--lat", "The column of latitudes, if its name is unusual.", "COLUMN")
@option("--lon", "The column of longitudes, likewise.", "COLUMN")
@option("--keep", "A column to copy as it is; may be repeated.", "COLUMN", multiple=True)
@option(
    "--rows-per-person",
    "How many rows one person may have. Their losses add up; this only says to what.",
    click.IntRange(1, MOST_ROWS),
    default=1,
)
@option("--grid", "Step of the grid in metres, a power of two such as 1/8.", str, default="auto")
@flag("--keep-outside", "Leave noisy places outside the region where they are.")
@option("--map", "A map of true and noisy places (SVG), not to publish.", FILE, dest="map_file")
@option("--map-private", "A map of the noisy places only (SVG).", FILE)
@json_option
def geo(
    points: Path,
    out: Path,
    lat: str | None,
    lon: str | None,
    keep: tuple[str, ...],
    rows_per_person: int,
    keep_outside: bool,
    map_file: Path | None,
    map_private: Path | None,
    as_json: bool,
    **said: Any,
) -> None:
    """Move places by noise, so that near ones look alike.

    POINTS is a CSV file with a header, latitudes and longitudes in degrees (WGS84), or - for
    standard input. Only the noisy coordinates are written, in the same order.

    The region must be public, a city or a country. Taken from the data it would tell where the
    outermost person is.
    """
    pictures = {"--map": map_file, "--map-private": map_private}
    written = {"--out": out, **{o: p for o, p in pictures.items() if p is not None}}
    taken = [points]
    for name, path in written.items():  # refuse what cannot be written, or is another file of ours
        check_folder(path, name)
        if any(same_place(path, other) for other in taken):
            raise refusal(name, "names a file of this run twice", "name another file")
        if name != "--out" and path.suffix.lower() != ".svg":
            raise refusal(name, "does not end in .svg", "pass, say, map.svg")
        taken.append(path)
    disc = said["centre"] is not None and said["radius"] is not None
    if (said["region"] is None) != disc or (said["centre"] is None) != (said["radius"] is None):
        raise refusal(
            "--region",
            "or --centre with --radius is needed: a public one, since the data would show the "
            "outermost person",
            "pass --region 52.3,13.0,52.7,13.8 or --centre 52.5,13.4 --radius 20km",
        )
    noise = Geo(remap=not keep_outside, **said)
    with waiting("adding noise"):
        table = read_places(points, latitude=lat, longitude=lon, keep=keep)
        noisy = noise.release(table.places)
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow((*table.names, *table.kept))
        for place, cells in zip(noisy.tolist(), table.cells, strict=True):
            writer.writerow((*(f"{degrees:.{noise.decimals}f}" for degrees in place), *cells))
        contents = {"--out": lines.getvalue()}
        for name in list(written)[1:]:
            contents[name] = _map(noise, noisy, table if name == "--map" else None)
        for name, content in contents.items():  # all of them are ready before one is written
            save(written[name], content, name)
    if as_json:
        show_json(
            {
                "places": len(noisy),
                "epsilon": str(noise.loss),
                "within_metres": str(noise.within),
                "radius_95_metres": noise.radius("0.95"),
                "expected_error_upper_metres": noise.expected_error_upper,
                "decimals": noise.decimals,
                "guarantee": noise.guarantee.to_dict(),
                "rows_per_person": rows_per_person,
                "guarantee_of_a_person": noise.guarantee_of(rows_per_person).to_dict(),
            }
        )
        return
    show(*_page(noise, table, rows_per_person, written))


@dataclass(frozen=True, slots=True, repr=False)
class Table:
    """What was read: the names of the two columns, the places, and the columns to keep."""

    names: tuple[str, str]
    places: list[tuple[float, float]]
    kept: tuple[str, ...]
    cells: list[tuple[str, ...]]


def read_places(
    path: Path, *, latitude: str | None, longitude: str | None, keep: Sequence[str]
) -> Table:
    """The places of a CSV file with a header; columns are found by their usual names."""
    records = csv_records(path, "points")
    rows = [(line, row) for line, row in records if len(row) > 1 or row[0].strip()]
    if not rows:
        raise refusal("points", "are none: the file is empty", "name another")
    names = [cell.strip() for cell in rows.pop(0)[1]]
    if len(names) == 1 and any(mark in names[0] for mark, _ in OTHER_MARKS):
        remedy = "write lines such as 52.5163,13.3777: commas between cells, points in numbers"
        raise refusal("points", "are not separated by commas", remedy)
    up = _column(names, latitude, LATITUDE, "--lat")
    along = _column(names, longitude, LONGITUDE, "--lon")
    if up == along:
        raise refusal("--lon", "names the column of --lat", "name another")
    extra = [_column(names, name, (), "--keep") for name in keep]
    if {up, along} & set(extra):
        remedy = "keep other columns only; the noisy coordinates are written anyway"
        raise refusal("--keep", "names a column of true coordinates", remedy)
    places, cells = [], []
    for line, row in rows:
        if len(row) != len(names):
            problem = "has not as many columns as the header"
            remedy = "write as many cells in every line, separated by a comma"
            raise refusal(f"line {line} of the points", problem, remedy)
        places.append(_place(row[up], row[along], line))
        cells.append(tuple(row[i] for i in extra))
    return Table((names[up], names[along]), places, tuple(names[i] for i in extra), cells)


def _column(names: list[str], wanted: str | None, usual: tuple[str, ...], flag: str) -> int:
    """The place of a column: by the name given, or by a usual one that is there once."""
    if wanted is not None:
        found = [i for i, name in enumerate(names) if name == wanted.strip()]
        problem = "names no column of the header, or one that is there twice"
    else:
        lowered = [name.lower() for name in names]
        word = next((name for name in usual if name in lowered), None)
        found = [i for i, name in enumerate(lowered) if name == word]
        problem = f"is needed: no column, or more than one, is called {usual[0]}"
    if len(found) != 1:
        raise refusal(flag, problem, "name a column as the first line of the file does")
    return found[0]


def _place(latitude: str, longitude: str, line: int) -> tuple[float, float]:
    """A place on the Earth, or a refusal that names its line."""
    try:
        up, along = (math.nan if "_" in cell else float(cell) for cell in (latitude, longitude))
    except ValueError:
        up = along = math.nan
    problem, remedy = "", SWAPPED
    if not (math.isfinite(up) and math.isfinite(along)):
        problem = "has a coordinate that is not a finite number"
        remedy = "write degrees such as 52.5163, or leave the line out"
    elif abs(up) > 90:
        problem = "has a latitude beyond 90 degrees"
    elif not -180 <= along <= 360:
        problem = "has a longitude outside -180 to 360 degrees"
    if problem:
        raise refusal(f"line {line} of the points", problem, remedy)
    return up, along


def _map(noise: Geo, noisy: Any, table: Table | None) -> str:
    half_width, half_height = (float(half) for half in noise.map.extent)
    true: tuple[tuple[float, float], ...] = ()
    if table is not None:
        # where they are, not where they were moved to: a steward sees who is outside the region
        true = tuple(map(tuple, noise.map.drawn(np.array(table.places, np.float64)).tolist()))
    radius, within = noise.radius("0.95"), _length(noise.within)
    words = [
        f"{_places(len(noisy))}, planar Laplace noise, ε = {noise.loss} at {within}.",
        f"Any two places of the region at most {within} apart: an observer's odds change by at "
        f"most a factor {rounded_up(noise.loss.odds_upper, 4)}.",
    ]
    stretch = noise.map.stretch()
    if stretch > NOTICEABLE:  # a large region is not flat
        words.append(f"A metre of this picture is up to {rounded_up(stretch, 3)} m on the ground.")
    return place_map(
        PlaceMap(
            title="True and noisy places" if true else "Noisy places",
            words=tuple(words),
            region=(-half_width, -half_height, half_width, half_height),
            noisy=tuple(map(tuple, noise.map.drawn(noisy).tolist())),
            true=true,
            radius=radius,
            ring=f"around one place: 95 % of the noisy ones are within {_ground(radius)}",
        )
    )


def _page(
    noise: Geo, table: Table, rows_per_person: int, written: dict[str, Path]
) -> Iterator[Part]:
    within, rows = _length(noise.within), f"{rows_per_person:,}"
    heading = _places(len(table.places)).replace(" ", " noisy ", 1)
    yield Heading(heading, f"ε = {noise.loss} at {within}")
    yield (
        f"Promised: take any two places of the region at most {within} apart. Whatever is released "
        f"changes the odds between them by at most a factor "
        f"{rounded_up(noise.loss.odds_upper, 4)}. "
        "It holds for each row; "
        + (
            "if a person has several, their losses add up."
            if rows_per_person == 1
            else f"a person with {rows} of them loses {rows} times as much."
        )
    )
    twice = ExactLoss(Fraction(noise.guarantee_at(2 * noise.within).epsilon)).odds_upper
    together = noise.guarantee_of(rows_per_person).at(noise.within).epsilon
    sides = (noise.region.south, noise.region.west, noise.region.north, noise.region.east)
    south, west, north, east = (rounded_near(Fraction(side)) for side in sides)
    facts = [
        ("95 % of them", f"are within {_ground(noise.radius('0.95'))} of the true place"),
        ("expected error", f"at most {_ground(noise.expected_error_upper)}"),
        ("all of a person", f"{rows} rows together lose at most ε = {rounded_up(together, 4)} at "
         f"{within}"),
        ("twice as far", f"{_length(2 * noise.within)} apart, the odds change by at most a factor "
         f"{rounded_up(twice, 4)}"),
        ("region", f"{south} to {north} north, {west} to {east} east; places outside are moved to "
         "its edge"),
        ("written", str(written["--out"])),
    ]  # fmt: skip
    if rows_per_person == 1:
        del facts[2]
    if "--map-private" in written:
        facts.append(("map", f"{written['--map-private']}, of noisy places only"))
    yield Facts(facts)
    if table.kept:
        yield f"Copied as they are, without any protection: {', '.join(table.kept)}."
    if "--map" in written:
        yield f"NOT FOR PUBLICATION: {written['--map']} shows the true places."


def _places(count: int) -> str:
    return f"{count:,} place{'' if count == 1 else 's'}"


def _length(metres: Fraction) -> str:
    """A distance up to which something is promised: not above the truth."""
    unit, number = ("km", metres / 1000) if metres >= 1000 else ("m", metres)
    return f"{rounded_down(number)} {unit}"


def _ground(metres: float) -> str:
    """A distance that errors stay within: not below the truth."""
    exact = Fraction(metres)
    return f"{rounded_up(exact / 1000, 3)} km" if exact >= 10_000 else f"{rounded_up(exact, 4)} m"
