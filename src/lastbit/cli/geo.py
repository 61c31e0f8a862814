"""`lastbit geo`: a file of places in, a file of noisy places out, and maps of both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lastbit.cli.files import check_folder, save
from lastbit.cli.refusals import option_names
from lastbit.errors import InvalidParameter
from lastbit.exact import rounded_down, rounded_up
from lastbit.places import same_place

if TYPE_CHECKING:
    from lastbit.cli.geo_points import Table
    from lastbit.cli.page import Part
    from lastbit.geo import Geo

MOST_ROWS = 1_000_000
NOTICEABLE = Fraction(102, 100)
FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(
    epilog='Example: lastbit geo points.csv --epsilon "ln(4)/200m" --region 52.3,13.0,52.7,13.8 '
    "--out noisy.csv"
)
@click.argument("points", type=FILE)
@click.option(
    "--epsilon",
    required=True,
    metavar="LOSS",
    help='The loss and its distance: "ln(4)/200m" lets odds between two places 200 m apart change '
    'by at most a factor 4. Also "1 per 200 m", "0.0069/m".',
)
@click.option("--within", metavar="LENGTH", help="The distance, if --epsilon names none: 200m.")
@click.option(
    "--region",
    metavar="S,W,N,E",
    help="The public region in degrees: south, west, north, east. Places outside are moved to "
    "its edge.",
)
@click.option("--centre", metavar="LAT,LON", help="The middle of the region, with --radius.")
@click.option("--radius", metavar="LENGTH", help="How far the region reaches from --centre: 10km.")
@click.option("--out", type=FILE, required=True, help="Where the noisy places go (CSV).")
@click.option("--lat", metavar="COLUMN", help="The column of latitudes, if its name is unusual.")
@click.option("--lon", metavar="COLUMN", help="The column of longitudes, likewise.")
@click.option(
    "--keep", metavar="COLUMN", multiple=True, help="A column to copy as it is; may be repeated."
)
@click.option(
    "--rows-per-person",
    type=click.IntRange(1, MOST_ROWS),
    default=1,
    show_default=True,
    help="How many rows one person may have. Their losses add up; this only says to what.",
)
@click.option(
    "--grid",
    default="auto",
    show_default=True,
    help="Step of the grid in metres, a power of two such as 1/8.",
)
@click.option(
    "--keep-outside", is_flag=True, help="Leave noisy places outside the region where they are."
)
@click.option(
    "--map", "map_file", type=FILE, help="A map of true and noisy places (SVG), not to publish."
)
@click.option("--map-private", type=FILE, help="A map of the noisy places only (SVG).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def geo(
    points: Path,
    epsilon: str,
    within: str | None,
    region: str | None,
    centre: str | None,
    radius: str | None,
    out: Path,
    lat: str | None,
    lon: str | None,
    keep: tuple[str, ...],
    rows_per_person: int,
    grid: str,
    keep_outside: bool,
    map_file: Path | None,
    map_private: Path | None,
    as_json: bool,
) -> None:
    """Move places by noise, so that near ones look alike.

    POINTS is a CSV file with a header and columns of latitudes and longitudes in degrees (WGS84),
    or - for standard input. Only the noisy coordinates are written, in the same order.

    The region must be public, a city or a country. Taken from the data it would tell where the
    outermost person is.
    """
    from lastbit.cli.geo_points import noisy_csv, read_places
    from lastbit.cli.page import show, show_json
    from lastbit.cli.waiting import waiting

    pictures = {"--map": map_file, "--map-private": map_private}
    written = {"--out": out, **{o: p for o, p in pictures.items() if p is not None}}
    _check_files(points, written)
    noise = _noise(epsilon, within, region, centre, radius, grid, keep_outside)
    with option_names(), waiting("adding noise"):
        table = read_places(points, latitude=lat, longitude=lon, keep=keep)
        noisy = noise.release(table.places)
        contents = {"--out": noisy_csv(table, noisy, noise.decimals)}
        for option, path in pictures.items():
            if path is not None:
                contents[option] = _map(noise, noisy, table if option == "--map" else None)
        for option, content in contents.items():  # all of them are ready before one is written
            with _named(option):
                save(written[option], content)
    if as_json:
        show_json(_values(noise, len(noisy), rows_per_person))
        return
    show(*_page(noise, table, rows_per_person, written))


def _noise(
    epsilon: str,
    within: str | None,
    region: str | None,
    centre: str | None,
    radius: str | None,
    grid: str,
    keep_outside: bool,
) -> Geo:
    from lastbit.geo import Geo

    disc = centre is not None and radius is not None
    if (region is None) != disc or (centre is None) != (radius is None):
        raise InvalidParameter(
            "--region",
            problem="or --centre with --radius is needed, one of the two: it is public, and taken "
            "from the data it would tell where the outermost person is",
            remedy="pass --region 52.3,13.0,52.7,13.8 or --centre 52.5,13.4 --radius 20km",
        )
    with option_names():
        return Geo(
            epsilon=epsilon,
            within=within,
            region=region,
            centre=centre,
            radius=radius,
            grid=grid,
            remap=not keep_outside,
        )


# -- files --


def _check_files(points: Path, outputs: dict[str, Path]) -> None:
    """Refuse what cannot be written, or would overwrite another file of this run."""
    taken = [points]
    for option, path in outputs.items():
        with _named(option):
            check_folder(path)
        if any(same_place(path, other) for other in taken):
            raise InvalidParameter(
                option, problem="names a file of this run twice", remedy="name another file"
            )
        if option != "--out" and path.suffix.lower() != ".svg":
            raise InvalidParameter(
                option, problem="does not end in .svg", remedy="pass, say, map.svg"
            )
        taken.append(path)


@contextmanager
def _named(option: str) -> Iterator[None]:
    """The errors of files, said of another option than --out."""
    try:
        yield
    except InvalidParameter as error:
        name = option if error.parameter == "--out" else error.parameter
        raise InvalidParameter(name, problem=error.problem, remedy=error.remedy) from error


def _map(noise: Geo, noisy: Any, table: Table | None) -> str:
    import numpy as np

    from lastbit.report import PlaceMap, place_map

    half_width, half_height = (float(half) for half in noise.map.extent)
    true: tuple[tuple[float, float], ...] = ()
    if table is not None:
        # where they are, not where they were moved to: a steward sees who is outside the region
        true = _pairs(noise.map.drawn(np.array(table.places, np.float64)))
    radius, odds = noise.radius("0.95"), rounded_up(noise.loss.odds_upper, 4)
    return place_map(
        PlaceMap(
            title="True and noisy places" if true else "Noisy places",
            words=(
                f"{len(noisy):,} {_places(len(noisy))}, planar Laplace noise, "
                f"ε = {noise.loss} at {_length(noise.within)}.",
                f"Any two places of the region at most {_length(noise.within)} apart: an "
                f"observer's odds change by at most a factor {odds}.",
                *_flattened(noise),
            ),
            region=(-half_width, -half_height, half_width, half_height),
            noisy=_pairs(noise.map.drawn(noisy)),
            true=true,
            radius=radius,
            ring=f"around one place: 95 % of the noisy ones are within {_ground(radius)}",
        )
    )


def _flattened(noise: Geo) -> Iterator[str]:
    """A large region is not flat: its picture says by how much its scale may be off."""
    stretch = noise.map.stretch()
    if stretch > NOTICEABLE:
        yield f"A metre of this picture is up to {rounded_up(stretch, 3)} m on the ground."


def _pairs(array: Any) -> tuple[tuple[float, float], ...]:
    return tuple((x, y) for x, y in array.tolist())


# -- words --


def _page(
    noise: Geo, table: Table, rows_per_person: int, written: dict[str, Path]
) -> Iterator[Part]:
    from lastbit.cli.page import Facts, Heading, Words

    count = len(table.places)
    within = _length(noise.within)
    yield Heading(f"{count:,} noisy {_places(count)}", f"ε = {noise.loss} at {within}")
    odds = rounded_up(noise.loss.odds_upper, 4)
    yield Words(
        f"Promised: for any two places of the region at most {within} apart, an observer's odds "
        f"between them change by at most a factor {odds}, whatever is released. "
        f"{_whom(rows_per_person)}"
    )
    facts = [
        ("95 % of them", f"are within {_ground(noise.radius('0.95'))} of the true place"),
        ("expected error", f"at most {_ground(noise.expected_error_upper)}"),
        ("twice as far", f"{_length(2 * noise.within)} apart, the odds change by at most a factor "
         f"{_odds_at(noise, 2 * noise.within)}"),
        ("region", f"{_edges(noise)}; places outside are moved to its edge"),
        ("written", str(written["--out"])),
    ]  # fmt: skip
    if rows_per_person > 1:
        facts.insert(2, ("all of a person", _together(noise, rows_per_person)))
    if "--map-private" in written:
        facts.append(("map", f"{written['--map-private']}, of noisy places only"))
    yield Facts(tuple(facts))
    if table.kept:
        yield Words(f"Copied as they are, without any protection: {', '.join(table.kept)}.")
    if "--map" in written:
        yield Words(f"NOT FOR PUBLICATION: {written['--map']} shows the true places.")


def _whom(rows: int) -> str:
    if rows == 1:
        return "It holds for each row; if a person has several, their losses add up."
    return f"It holds for each row; a person with {rows:,} of them loses {rows:,} times as much."


def _together(noise: Geo, rows: int) -> str:
    loss = noise.guarantee_of(rows).at(noise.within).epsilon
    return (
        f"{rows:,} rows together lose at most ε = {rounded_up(loss, 4)} at {_length(noise.within)}"
    )


def _odds_at(noise: Geo, distance: Fraction) -> str:
    from lastbit.geo import ExactLoss

    return rounded_up(ExactLoss(Fraction(noise.guarantee_at(distance).epsilon)).odds_upper, 4)


def _edges(noise: Geo) -> str:
    region = noise.region
    south, west, north, east = (
        f"{float(edge):.4f}" for edge in (region.south, region.west, region.north, region.east)
    )
    return f"{south} to {north} north, {west} to {east} east"


def _places(count: int) -> str:
    return "place" if count == 1 else "places"


def _length(metres: Fraction) -> str:
    """A distance up to which something is promised: not above the truth."""
    unit, number = ("km", metres / 1000) if metres >= 1000 else ("m", metres)
    return f"{rounded_down(number)} {unit}"


def _ground(metres: float) -> str:
    """A distance that errors stay within: not below the truth."""
    exact = Fraction(metres)
    return f"{rounded_up(exact / 1000, 3)} km" if exact >= 10_000 else f"{rounded_up(exact, 4)} m"


def _values(noise: Geo, count: int, rows_per_person: int) -> dict[str, Any]:
    return {
        "places": count,
        "epsilon": str(noise.loss),
        "within_metres": str(noise.within),
        "radius_95_metres": noise.radius("0.95"),
        "expected_error_upper_metres": noise.expected_error_upper,
        "decimals": noise.decimals,
        "guarantee": noise.guarantee.to_dict(),
        "rows_per_person": rows_per_person,
        "guarantee_of_a_person": noise.guarantee_of(rows_per_person).to_dict(),
    }
