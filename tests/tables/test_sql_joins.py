"""Joins as others write them: in either order, with sub-queries, with names of WITH."""

from __future__ import annotations

import pytest

from lastbit.errors import QueryRefused
from lastbit.tables.card.schema import PrivateTable, Source
from lastbit.tables.query.query import Query
from lastbit.tables.sql.statement import parsed
from tests.tables.asked import card_with, column

LABS = PrivateTable(
    name="labs",
    source=Source(kind="csv", paths=("labs.csv",)),
    unit="patient",
    max_rows=4,
    columns={
        one.name: one
        for one in (column("patient", "integer"), column("kind", "text", keys=("x", "y")))
    },
)
CARD = card_with(private={"labs": LABS})
ON = "SELECT zone, COUNT(*) AS n FROM visits v JOIN regions r ON v.region = r.region "
TWO = "SELECT beds, COUNT(*) AS n FROM visits v JOIN regions r ON v.region = r.region "
LAB = "SELECT kind, COUNT(*) AS n FROM visits v JOIN labs ON v.pid = labs.patient"


def asked(text: str) -> Query:
    return parsed(text, CARD)


SAME = {
    "SELECT zone, COUNT(*) AS n FROM regions r JOIN visits v ON v.region = r.region GROUP BY 1": (
        f"{ON} GROUP BY zone"
    ),
    "SELECT zone, COUNT(*) AS n FROM regions JOIN visits USING (region) GROUP BY zone": (
        f"{ON} GROUP BY zone"
    ),
    "SELECT zone, COUNT(*) AS n FROM regions r JOIN visits v ON v.region = r.region "
    "WHERE size > 3 AND ok GROUP BY zone": f"{ON} WHERE size > 3 AND ok GROUP BY zone",
    "SELECT r.zone, COUNT(*) AS n FROM visits JOIN (SELECT region, zone FROM regions) r "
    "USING (region) GROUP BY r.zone": f"{ON} GROUP BY zone",
    "SELECT z AS zone, COUNT(*) AS n FROM visits JOIN (SELECT region AS k, zone AS z "
    "FROM regions t WHERE t.size > 3) r ON region = r.k GROUP BY z": (
        f"{ON} WHERE size > 3 GROUP BY zone"
    ),
    "WITH r AS (SELECT * FROM regions WHERE size > 3) SELECT zone, COUNT(*) AS n FROM visits "
    "JOIN r USING (region) GROUP BY zone": f"{ON} WHERE size > 3 GROUP BY zone",
    "WITH regions AS (SELECT * FROM regions) SELECT zone, COUNT(*) AS n FROM regions "
    "JOIN visits USING (region) GROUP BY zone": f"{ON} GROUP BY zone",
    "SELECT zone, COUNT(*) AS n FROM (SELECT region, zone FROM (SELECT * FROM regions)) r JOIN "
    "(SELECT region AS g FROM visits WHERE ok) v ON r.region = v.g GROUP BY zone": (
        f"{ON} WHERE ok GROUP BY zone"
    ),
    "SELECT zone, COUNT(*) AS n FROM visits JOIN (SELECT region, zone, size * 2 AS s FROM regions) "
    "r USING (region) WHERE s > 6 GROUP BY zone": f"{ON} WHERE size * 2 > 6 GROUP BY zone",
    # several tables before the card's own
    "SELECT beds, COUNT(*) AS n FROM regions r JOIN wards w ON r.zone = w.zone "
    "JOIN visits v ON v.region = r.region AND v.ward = w.ward GROUP BY beds": (
        f"{TWO} JOIN wards w ON r.zone = w.zone AND v.ward = w.ward GROUP BY beds"
    ),
    "SELECT beds, COUNT(*) AS n FROM wards w JOIN regions r ON r.zone = w.zone "
    "JOIN visits v ON v.region = r.region GROUP BY beds": (
        f"{TWO} JOIN wards w ON r.zone = w.zone GROUP BY beds"
    ),
    "SELECT beds, COUNT(*) AS n FROM regions r JOIN visits v ON v.region = r.region "
    "JOIN wards w USING (ward) GROUP BY beds": f"{TWO} JOIN wards USING (ward) GROUP BY beds",
    # commas, and WHERE
    "SELECT zone, COUNT(*) AS n FROM visits v, regions r WHERE v.region = r.region AND size > 3 "
    "GROUP BY zone": f"{ON} WHERE size > 3 GROUP BY zone",
    "SELECT zone, COUNT(*) AS n FROM regions r, visits v WHERE ok AND v.region = r.region "
    "AND (age > 3 OR size = age) GROUP BY zone": (
        f"{ON} WHERE ok AND (age > 3 OR size = age) GROUP BY zone"
    ),
    "SELECT zone, COUNT(*) AS n FROM visits v, regions r WHERE ((v.region = r.region) AND (ok)) "
    "GROUP BY zone": f"{ON} WHERE ok GROUP BY zone",
    "SELECT zone, COUNT(*) AS n FROM visits v CROSS JOIN regions r WHERE v.region = r.region "
    "GROUP BY zone": f"{ON} GROUP BY zone",
    "SELECT beds, COUNT(*) AS n FROM wards w, regions r, visits v WHERE r.zone = w.zone AND "
    "r.region = v.region GROUP BY beds": (
        f"{TWO} JOIN wards w ON r.zone = w.zone GROUP BY beds"
    ),
    "SELECT beds, COUNT(*) AS n FROM wards w, visits v JOIN regions r ON r.region = v.region "
    "WHERE r.zone = w.zone AND w.beds = r.size GROUP BY beds": (
        f"{TWO} JOIN wards w ON r.zone = w.zone AND r.size = w.beds GROUP BY beds"
    ),
    # private tables, on the unit
    "SELECT kind, COUNT(*) AS n FROM labs JOIN visits v ON v.pid = patient GROUP BY kind": (
        f"{LAB} GROUP BY kind"
    ),
    "SELECT kind, COUNT(DISTINCT p) AS n FROM visits v JOIN (SELECT patient AS p, kind FROM labs "
    "WHERE patient > 3) l ON v.pid = l.p GROUP BY kind": (
        "SELECT kind, COUNT(DISTINCT pid) AS n FROM visits v JOIN labs ON v.pid = labs.patient "
        "WHERE pid > 3 GROUP BY kind"
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", SAME)
def test_the_same_as_a_question_known_today(text: str) -> None:
    assert asked(text) == asked(SAME[text])


REFUSED = {
    "FROM regions": "FROM regions is not this card's table",
    "FROM regions JOIN wards USING (zone)": "FROM regions is not this card's table",
    "FROM (SELECT * FROM regions)": "FROM regions is not this card's table",
    "FROM regions LEFT JOIN visits USING (region)": "outer join",
    "FROM regions CROSS JOIN visits": "plain join",
    "FROM regions, visits": "plain join",
    "FROM regions r, visits v WHERE r.size > v.age": "plain join",
    "FROM regions r, visits v WHERE r.size = 3": "plain join",
    "FROM regions r, visits v WHERE r.zone = r.region": "plain join",
    "FROM regions r, visits v WHERE v.region = r.region OR ok": "plain join",
    "FROM regions r, visits v WHERE region = zone": "two tables|plain join",
    "FROM regions r, wards w, visits v WHERE v.region = zone": "two tables",
    "FROM visits v, visits w WHERE v.pid = w.pid": "is the table itself",
    "FROM regions, wards WHERE regions.zone = wards.zone": "not this card's table",
    "FROM visits v, regions r JOIN wards w USING (ward) WHERE v.region = r.region": "begin with",
    "FROM visits v, labs WHERE v.age = labs.patient": "does not say that the units are equal",
    "FROM visits v, LATERAL (SELECT 1) WHERE ok": "no table|plain|no FROM",
    "FROM visits v NATURAL JOIN regions r WHERE v.region = r.region": "kind of JOIN|plain",
    "FROM regions JOIN visits ON regions.size > visits.age": "equality",
    "FROM regions r JOIN wards w USING (zone) JOIN visits v USING (region)": "begin with FROM vis",
    "FROM regions r JOIN wards w ON r.zone = w.zone JOIN visits v ON v.age > 3": "plain join",
    "FROM regions r JOIN wards w ON r.zone = w.zone JOIN visits v ON r.size = w.beds": "plain join",
    "FROM labs JOIN visits ON age = patient": "does not say that the units are equal",
    "FROM visits v JOIN (SELECT * FROM visits) w ON v.pid = w.pid": "is the table itself",
    "FROM visits v JOIN visits w ON v.pid = w.pid": "is the table itself",
    "FROM visits v JOIN (SELECT * FROM visits WHERE ok) w ON v.pid = w.pid": "rows of units",
    "FROM visits JOIN (SELECT DISTINCT region FROM regions) r USING (region)": "DISTINCT",
    "FROM visits JOIN (SELECT region FROM regions LIMIT 3) r USING (region)": "LIMIT",
    "FROM visits JOIN (SELECT region FROM regions ORDER BY size) r USING (region)": "ORDER",
    "FROM visits JOIN (SELECT MAX(region) AS region FROM regions) r USING (region)": "aggregates",
    "FROM visits JOIN (SELECT region FROM regions GROUP BY 1) r USING (region)": "aggregates",
    "FROM visits JOIN (SELECT upper(region) AS region FROM regions) r USING (region)": "not a col",
    "FROM visits JOIN (SELECT size + 1 AS s FROM regions) r ON age = r.s": "equality of columns",
    "FROM visits JOIN (SELECT zone FROM regions) r ON region = r.region": "No column",
    "FROM visits JOIN (SELECT pid FROM regions) r USING (region)": "No column",
    "FROM visits JOIN (SELECT region, size > 3 FROM regions) r USING (region)": "no name",
    "FROM visits JOIN (SELECT region FROM regions) r USING (region) WHERE size > 3": "No col",
    "FROM visits JOIN (SELECT region FROM regions) r USING (region) JOIN regions USING (region)": (
        "joined twice"
    ),
    "FROM visits JOIN (SELECT region FROM regions JOIN wards USING (zone)) r USING (region)": (
        "not this card's table"
    ),
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    with pytest.raises(QueryRefused, match=REFUSED[text]):
        asked(f"SELECT COUNT(*) {text}")


def test_what_on_says_besides_is_a_condition() -> None:
    where = "SELECT COUNT(*) AS n FROM visits JOIN regions r USING (region) WHERE"
    on = "SELECT COUNT(*) AS n FROM visits JOIN regions r ON"
    equal = "visits.region = r.region"
    for more in ("r.size > 3", "(age = 1 OR r.size = 2)", "r.zone <> 'x' AND age > 3"):
        wanted = parsed(f"{where} {more}", CARD)
        assert parsed(f"{on} {equal} AND {more}", CARD) == wanted
        assert parsed(f"{on} (({more}) AND ({equal}))", CARD) == wanted
    for text in ("r.size > 3", f"{equal} OR age > 3", "visits.region = visits.region", "age = 1"):
        with pytest.raises(QueryRefused, match="is not an equality of columns"):
            parsed(f"{on} {text}", CARD)
