"""`lastbit geo`: places in, noisy places out, and nothing else of what was in the file."""

import csv
import io
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lastbit.errors import InvalidParameter
from lastbit.exact import rounded_up
from lastbit.geo.geo import Geo
from lastbit.privacy.guarantees import MetricDP, from_json
from lastbit.report.maps import WARNING
from tests.cli.running import lastbit, read, refused, succeeded

REGION = ("--region", "52.3,13.0,52.7,13.8")
LOSS = ("--epsilon", "ln(4)/200m")
ROWS = "name,Lat,lng,age\nAda,52.5163,13.3777,36\nBob,52.52,13.40,41\n\nEve,48.1,11.6,29\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "points.csv").write_text(ROWS, "utf-8")
    return tmp_path


def table(path: str) -> list[list[str]]:
    return list(csv.reader(Path(path).read_text("utf-8").splitlines()))


def test_only_noisy_coordinates_are_written(folder):
    output = succeeded("geo", "points.csv", *LOSS, *REGION, "--out", "noisy.csv")
    header, *rows = table("noisy.csv")
    assert header == ["Lat", "lng"]
    assert len(rows) == 3
    for latitude, longitude in rows:
        assert 52.3 <= float(latitude) <= 52.7 and 13 <= float(longitude) <= 13.8
        assert len(latitude.split(".")[1]) == len(longitude.split(".")[1]) == 6
    text = (folder / "noisy.csv").read_text("utf-8")
    assert not any(word in text for word in ("Ada", "Bob", "Eve", "name", "age"))
    words = " ".join(output.split())
    assert "3 noisy places" in words
    promise = "Whatever is released changes the odds between them by at most a factor 4."
    assert f"at most 200 m apart. {promise}" in words
    noise = Geo(epsilon="ln(4)/200m", region=(52.3, 13.0, 52.7, 13.8))
    assert f"are within {rounded_up(noise.radius(), 4)} m of the true place" in words
    assert "expected error at most 29" in words
    assert "written noisy.csv" in words
    assert sorted(path.name for path in folder.iterdir()) == ["noisy.csv", "points.csv"]


def test_columns_are_kept_only_by_name_and_it_is_said(folder):
    arguments = (*LOSS, *REGION, "--out", "noisy.csv", "--keep", "age", "--keep", "name")
    output = succeeded("geo", "points.csv", *arguments)
    header, *rows = table("noisy.csv")
    assert header == ["Lat", "lng", "age", "name"]
    assert [row[2:] for row in rows] == [["36", "Ada"], ["41", "Bob"], ["29", "Eve"]]
    assert "without any protection: age, name." in " ".join(output.split())


def test_a_round_trip_through_the_files(folder):
    succeeded("geo", "points.csv", "--epsilon", "1000/m", *REGION, "--out", "near.csv")
    header, *rows = table("near.csv")
    assert abs(float(rows[0][0]) - 52.5163) < 1e-5 and abs(float(rows[0][1]) - 13.3777) < 1e-5
    assert (float(rows[2][0]), float(rows[2][1])) == pytest.approx((52.3, 13.0), abs=1e-5)
    succeeded("geo", "near.csv", *LOSS, *REGION, "--out", "again.csv")
    assert table("again.csv")[0] == header


def test_standard_input_and_named_columns(folder):
    arguments = (*LOSS, *REGION, "--out", "noisy.csv", "--lat", "north", "--lon", "east")
    succeeded("geo", "-", *arguments, given="north,east\n52.5,13.4\n")
    assert table("noisy.csv")[0] == ["north", "east"]


def test_a_column_without_a_name_is_not_taken_for_a_coordinate(folder):
    told = lastbit(
        *("geo", "-", *LOSS, *REGION, "--out", "noisy.csv"), given=",latitude,y\n0,52.5,13.4\n"
    )
    assert told.exit_code == 2 and "--lon is needed" in told.stderr
    assert not Path("noisy.csv").exists()


def test_a_disc_is_a_region_too(folder):
    disc = ("--centre", "52.5,13.4", "--radius", "10km")
    values = read(
        "geo", "points.csv", "--epsilon", "1", "--within", "1 km", *disc, "--out", "n.csv"
    )
    assert (values["places"], values["within_metres"], values["epsilon"]) == (3, "1000", "1")
    noise = Geo(epsilon=1, within=1000, centre=(52.5, "13.4"), radius="10 km")
    assert from_json(json.dumps(values["guarantee"])) == noise.guarantee
    assert values["radius_95_metres"] == noise.radius()


def test_the_southern_and_western_half_of_the_world(folder):
    given = "lat,lon\n-17.5,179.99\n-17.5,-179.99\n"
    arguments = (*LOSS, "--region", "-18,179.5,-17,-179.5", "--out", "n.csv")
    succeeded("geo", "-", *arguments, given=given)
    assert all(abs(float(row[1])) > 179.5 for row in table("n.csv")[1:])


def test_rows_of_one_person_add_up(folder):
    arguments = ("--epsilon", "1/200m", *REGION, "--out", "n.csv", "--rows-per-person", "10")
    output = succeeded("geo", "points.csv", *arguments)
    assert "10 rows together lose at most ε = 10 at 200 m" in " ".join(output.split())
    values = read("geo", "points.csv", *arguments)
    promise = from_json(json.dumps(values["guarantee_of_a_person"]))
    assert isinstance(promise, MetricDP)
    assert promise.at(200).epsilon == 10


def texts(path: str) -> str:
    return " ".join(ElementTree.parse(path).getroot().itertext())


def test_the_map_with_true_places_says_that_it_is_not_for_publication(folder):
    arguments = (*LOSS, *REGION, "--out", "n.csv", "--map", "m.svg", "--map-private", "p.svg")
    output = succeeded("geo", "points.csv", *arguments)
    assert WARNING in texts("m.svg")
    assert "NOT FOR PUBLICATION: m.svg shows the true places." in output
    assert WARNING not in texts("p.svg") and "true place" not in texts("p.svg")
    assert "of noisy places only" in " ".join(output.split())
    for path in ("m.svg", "p.svg"):
        assert "Ada" not in Path(path).read_text("utf-8")


def test_noisy_places_may_stay_outside(folder):
    many = "lat,lon\n" + "52.5,13.4\n" * 300
    arguments = ("--epsilon", "1/20km", *REGION, "--out", "n.csv", "--map-private", "p.svg")
    succeeded("geo", "-", *arguments, "--keep-outside", given=many)
    assert any(float(row[0]) > 52.7 for row in table("n.csv")[1:])


BAD_FILES = [
    ("", "empty"),
    ("lat,lon\n", "points are none"),
    ("a,b\n52.5,13.4\n", "--lat is needed"),
    ("lat,b\n52.5,13.4\n", "--lon is needed"),
    ("lat,lat,lon\n1,2,3\n", "--lat is needed"),
    ("52.5,13.4\n52.6,13.5\n", "--lat is needed"),
    ("lat,lon\n52.5,73211x\n", "line 2 of the points has a coordinate that is not a finite number"),
    ("lat,lon\n52.5,13.4\n52.5,\n", "line 3 of the points has a coordinate"),
    ("lat,lon\nnan,13.4\n", "line 2"),
    ("lat,lon\n1e999,13.4\n", "line 2"),
    ("lat,lon\n5_2.5,13.4\n", "line 2"),
    ("lat,lon\n52.5,13.4,73211\n", "line 2 of the points has not as many columns"),
    ("lat,lon\n99.73211,13.4\n", "swap the two"),
    ("lat,lon\n52.5,400.73211\n", "line 2 of the points has a longitude outside"),
    ("lat,lon\n52.5,13.4\n99.73211,130\n", "line 3 of the points has a latitude beyond 90"),
    ("lat;lon\n52,5;13,73211\n", "not separated by commas"),
    ("lat\tlon\n52.5\t13.4\n", "not separated by commas"),
    ("lat,lon\n,\n", "line 2 of the points has a coordinate"),
]


@pytest.mark.parametrize(("content", "words"), BAD_FILES)
def test_files_are_refused_without_their_values(folder, content, words):
    (folder / "bad.csv").write_text(content, "utf-8")
    message = refused("geo", "bad.csv", *LOSS, *REGION, "--out", "n.csv")
    assert words in message
    assert "73211" not in message
    assert not (folder / "n.csv").exists()


BAD_ARGUMENTS = [
    ((*LOSS, "--out", "n.csv"), "--region or --centre with --radius is needed"),
    ((*LOSS, "--out", "n.csv"), "outermost person"),
    ((*LOSS, *REGION, "--centre", "52,13", "--out", "n.csv"), "--region or --centre"),
    ((*LOSS, "--centre", "52,13", "--out", "n.csv"), "--region or --centre"),
    ((*LOSS, *REGION, "--centre", "52,13", "--radius", "1km", "--out", "n.csv"), "--region or"),
    ((*LOSS, "--region", "52.7,13,52.3,14", "--out", "n.csv"), "--region has its south at or"),
    ((*LOSS, "--region", "1,2,3", "--out", "n.csv"), "--region has not 4 numbers"),
    ((*LOSS, "--region", "88,2,89,3", "--out", "n.csv"), "beyond 85 degrees"),
    ((*LOSS, "--centre", "52,13", "--radius", "1 mile", "--out", "n.csv"), "--radius is no"),
    (("--epsilon", "1", *REGION, "--out", "n.csv"), "--within is missing"),
    (("--epsilon", "much", *REGION, "--out", "n.csv"), "--epsilon is not a loss"),
    (("--epsilon", "0/m", *REGION, "--out", "n.csv"), "--epsilon is zero"),
    ((*LOSS, "--within", "1m", *REGION, "--out", "n.csv"), "--within is given twice"),
    ((*LOSS, *REGION, "--out", "n.csv", "--grid", "1/3"), "--grid"),
    ((*LOSS, *REGION, "--out", "points.csv"), "--out names another file of this command"),
    ((*LOSS, *REGION, "--out", "n.svg", "--map", "n.svg"), "names another file of this command"),
    ((*LOSS, *REGION, "--out", "n.csv", "--map", "m.png"), "--map does not end in .svg"),
    ((*LOSS, *REGION, "--out", "none/n.csv"), "--out names the folder none"),
    ((*LOSS, *REGION, "--out", "n.csv", "--map", "none/m.svg"), "--map names the folder none"),
    ((*LOSS, *REGION, "--out", "n.csv", "--keep", "Lat"), "--keep names a column of true"),
    ((*LOSS, *REGION, "--out", "n.csv", "--keep", "income"), "--keep names no column"),
    ((*LOSS, *REGION, "--out", "n.csv", "--lon", "Lat"), "--lon names the column of --lat"),
    ((*LOSS, *REGION, "--out", "n.csv", "--rows-per-person", "0"), "--rows-per-person"),
]


@pytest.mark.parametrize(("arguments", "words"), BAD_ARGUMENTS)
def test_refusals_name_the_remedy(folder, arguments, words):
    assert words in refused("geo", "points.csv", *arguments)
    assert not (folder / "n.csv").exists()
    assert (folder / "points.csv").read_text("utf-8") == ROWS


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_odd_but_proper_files_are_read(folder, mark):
    content = (
        mark + '"lat",lon,note\r\n"52.5"," 13.4 ","a ""b"", c\r\nd"\r\n\r\n  \r\n52.6,373e-1,\r\n'
    )
    (folder / "odd.csv").write_bytes(content.encode())
    arguments = (*LOSS, *REGION, "--out", "n.csv", "--keep", "note")
    succeeded("geo", "odd.csv", *arguments)
    rows = list(csv.reader(io.StringIO(Path("n.csv").read_text("utf-8"))))
    assert rows[0] == ["lat", "lon", "note"]
    assert [row[2] for row in rows[1:]] == ['a "b", c\nd', ""]
    succeeded("geo", "-", *arguments, given=content.replace("\r", ""))


def test_another_name_of_the_points_is_no_place_to_write(folder):
    (folder / "link.csv").symlink_to(folder / "points.csv")
    (folder / "sub").mkdir()
    for name in ("link.csv", "sub/../points.csv", "./points.csv"):
        message = refused("geo", "points.csv", *LOSS, *REGION, "--out", name)
        assert "names another file of this command" in message
    assert (folder / "points.csv").read_text("utf-8") == ROWS


def test_nothing_is_written_if_a_picture_cannot_be_drawn(folder, monkeypatch):
    def broken(picture):
        raise InvalidParameter("--map", problem="cannot be drawn", remedy="leave it out")

    monkeypatch.setattr("lastbit.cli.geo.place_map", broken)
    arguments = (*LOSS, *REGION, "--out", "n.csv", "--map", "m.svg")
    assert "cannot be drawn" in refused("geo", "points.csv", *arguments)
    assert sorted(path.name for path in folder.iterdir()) == ["points.csv"]


def test_no_distance_is_promised_that_is_longer_than_the_one_asked_for(folder):
    arguments = ("--epsilon", "1/123.4567899m", *REGION, "--out", "n.csv", "--map-private", "p.svg")
    output = " ".join(succeeded("geo", "points.csv", *arguments).split())
    assert "at most 123.456 m apart" in output and "123.457" not in output
    assert "246.913 m apart" in output
    assert "123.456 m" in texts("p.svg") and "123.457" not in texts("p.svg")


def test_odds_beyond_all_reading_are_infinite(folder):
    output = succeeded("geo", "points.csv", "--epsilon", "3000/200m", *REGION, "--out", "n.csv")
    assert "by at most a factor ∞." in " ".join(output.split())


def test_the_map_shows_true_places_where_they_are(folder):
    """Eve is outside the region: moved to its edge in the picture nobody would see it."""
    given = "lat,lon\n52.5,13.4\n52.8,13.4\n"
    arguments = (*LOSS, *REGION, "--out", "n.csv", "--map", "m.svg")
    succeeded("geo", "-", *arguments, given=given)
    root = ElementTree.parse("m.svg").getroot()
    marks = [e for e in root.iter() if e.get("class") == "first" and e.tag.endswith("circle")]
    edge = max(
        (e for e in root.iter() if e.get("class") == "edge" and e.tag.endswith("rect")),
        key=lambda e: float(e.get("width", "0")),
    )
    assert min(float(mark.get("cy", "nan")) for mark in marks[1:]) < float(edge.get("y", "nan"))


def test_a_picture_of_a_large_region_says_that_it_is_not_flat(folder):
    arguments = (*LOSS, "--region", "47,6,55,15", "--out", "n.csv", "--map-private", "p.svg")
    succeeded("geo", "points.csv", *arguments)
    assert "m on the ground" in texts("p.svg")
    succeeded("geo", "points.csv", *LOSS, *REGION, "--out", "n.csv", "--map-private", "q.svg")
    assert "m on the ground" not in texts("q.svg")


def test_a_file_that_is_not_there_and_one_that_is_no_text(folder):
    assert "cannot be read" in refused("geo", "none.csv", *LOSS, *REGION, "--out", "n.csv")
    (folder / "raw.csv").write_bytes(b"lat,lon\n\xff\xfe\n")
    assert "not CSV text" in refused("geo", "raw.csv", *LOSS, *REGION, "--out", "n.csv")
