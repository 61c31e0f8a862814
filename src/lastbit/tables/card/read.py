"""Data cards: what a steward writes once about a table, read from TOML.

Everything that decides about privacy must be written: the unit, the neighbour relation and the
budget have no defaults. How many rows of a unit count may be left out: a profile chooses it then.
Numbers are exact: `0.1` on a card is 1/10.
A card is refused with its lines and remedies, all problems at once. The ledger, if the card names
none, is `<name of the table>.ledger` beside the card: a copied or renamed card must not come with a
fresh budget. All paths are relative to the card's real folder, links followed: by whatever symbolic
link a card is reached, it finds one ledger and one source.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import floor
from pathlib import Path
from typing import Any, cast

from lastbit.addresses import Address
from lastbit.arguments import check_path
from lastbit.errors import CardRefused, InvalidParameter
from lastbit.files import content_of
from lastbit.place_names import is_address
from lastbit.privacy import ADD_REMOVE, CHANGE_ONE
from lastbit.tables.card.budget import FILTERS, Budget
from lastbit.tables.card.column import LISTS, TYPES, Column
from lastbit.tables.card.fields import Fields, Problem, Written
from lastbit.tables.card.linked import meant_name, name_on_card, with_way
from lastbit.tables.card.schema import (
    DataCard,
    EngineLimits,
    LinkedTable,
    PrivateTable,
    PublicTable,
    Source,
)
from lastbit.tables.card.toml import KeyPath, toml_key
from lastbit.tables.measures import grid_of
from lastbit.tables.plan.declared_prices import check_budget
from lastbit.tables.query.expression import StoredType
from lastbit.tables.query.types import check_bounds

_MOST_TOLD = 50


def _accepted(examined: Examined) -> DataCard:
    """The card, or all its problems as one error."""
    if examined.card is not None:
        return examined.card
    named, problems = examined.named, examined.problems
    if len(problems) == 1:
        (one,) = problems
        place = f"{named}, line {one.line}: {one.where}"
        raise CardRefused(place, problem=one.problem, remedy=one.remedy)
    told = [f"line {one.line}: {one}." for one in sorted(problems)[:_MOST_TOLD]]
    if len(problems) > _MOST_TOLD:
        told.append(f"... and {len(problems) - _MOST_TOLD} more.")
    count = f"has {len(problems)} problems"
    raise CardRefused(named, problem=count, remedy="fix them:\n" + "\n".join(told))


class _Sections(Fields):
    """The sections of a card; notes the problems found so far."""

    def card(self) -> DataCard | None:
        """The whole card; nothing is meant by it if there are problems."""
        self.known((), self.data, _SECTIONS)
        table = self._table("table", ("name", "source", "table", "neighbours", "rows"))
        section = self.section("columns")
        columns = self._columns(("columns",), section)
        if not section and "columns" in self.data:
            self.wrong(("columns",), "are none", "describe each column that may be used")
        name = self._name(("table", "name"), table.get("name"))
        source = self.source(("table", "source"), table)
        among = ("add-remove", "change-one")
        kind = self.choice(("table", "neighbours"), table.get("neighbours"), among)
        linked, through = self._through(columns)
        columns |= linked
        unit, rows, groups, at_most, left_out = self._unit(columns, through)
        account = self._account()
        values: dict[str, Any] = {
            "name": name,
            "source": source,
            "unit": unit,
            "max_rows": rows,
            "max_groups": groups,
            "max_rows_open": left_out,
            "at_most": at_most,
            "columns": columns,
            "neighbours": CHANGE_ONE if kind == "change-one" else ADD_REMOVE,
            "budget": self._budget(),
            "account": account,
            "ledger": self._ledger(account or name),
            "accepted_data": self._accepted(),
            "users": self._users(),
            "engine_limits": self._engine(source),
            "public": self._public(name, source),
            "private": self._private(),
            "through": through,
            "prepared": self._prepared(source, through),
            "rows": self._rows(table.get("rows")),
        }
        return None if self.found else self.attempt(("unit",), lambda: with_way(DataCard(**values)))

    def _table(self, name: str, names: tuple[str, ...], *, needed: bool = True) -> dict[str, Any]:
        fields = self.section(name, needed=needed)
        self.known((name,), fields, names)
        return fields

    def _rows(self, value: Any) -> int | None:
        """About how many rows there are, if the card says it."""
        path, remedy = ("table", "rows"), "write about how many are publicly known to be there"
        found = None if value is None else self.whole(path, value, remedy)
        if found is not None and found > _MOST_ROWS_SAID:
            self.wrong(path, "is above 10**12", remedy)
        return found

    def _name(self, path: KeyPath, value: Any) -> str:
        remedy = "name the table, as queries call it"
        name = self.text(path, value, remedy)
        if not name.isprintable():
            self.wrong(path, "has letters that cannot be seen", remedy)
        return name

    def _columns(self, path: KeyPath, section: Mapping[str, Any]) -> dict[str, Column]:
        found = {}
        for name, fields in section.items():
            place = (*path, name)
            if not isinstance(fields, dict):
                remedy = f"write [{toml_key(*place)}], and type below it"
                self.wrong(place, "is not a section", remedy)
            elif name and (column := self._column(place, fields)) is not None:
                found[name] = column
        self._told_apart(path, section)
        return found

    def _column(self, path: KeyPath, fields: Mapping[str, Any]) -> Column | None:
        self.known(path, fields, ("type", "bounds", "step", "keys", "nullable", "description"))
        kind = cast(StoredType, self.choice((*path, "type"), fields.get("type"), (*TYPES, *LISTS)))
        nullable = fields.get("nullable", True)
        if not isinstance(nullable, bool):
            self.wrong((*path, "nullable"), "is neither true nor false", "write true or false")
        bounds: Any = fields.get("bounds")
        days = ("date", "timestamp", "date[]", "timestamp[]")
        if kind not in days or bounds == "decide":  # else the column reads them
            bounds = self.bounds((*path, "bounds"), bounds)
        step = self.number((*path, "step"), fields.get("step"))
        meaning = fields.get("description")
        if meaning is not None:
            meaning = self.text((*path, "description"), meaning, "say what the column means")
        if kind is None:
            return None
        keys, remedy = fields.get("keys"), "list the groups that may be shown"
        if keys is not None and not isinstance(keys, list):
            if not self.undecided((*path, "keys"), keys, remedy):
                self.wrong((*path, "keys"), f"are not a list of type {kind}", remedy)
            keys = None
        values: dict[str, Any] = {
            "name": path[-1],
            "type": kind,
            "bounds": bounds,
            "step": Fraction(1) if kind in ("integer", "integer[]") and step is None else step,
            "keys": None if keys is None else tuple(keys),
            "nullable": nullable,
            "description": meaning,
        }
        column = self.attempt(path, lambda: Column(**values))
        limits = None if column is None else column.number_bounds
        if column is not None and limits is not None:
            try:  # whether a mean can be computed within these bounds, on this grid
                check_bounds("bounds", limits)
                centre = sum(limits, Fraction(0)) / 2
                if column.step is not None:  # as a mean has it: a point of the declared grid
                    centre = floor(centre / column.step) * column.step
                grid_of(limits, column.step, centre=centre)
            except InvalidParameter as error:
                field = "step" if error.parameter == "step" else "bounds"
                self.wrong((*path, field), error.problem.replace("has bounds", "are"), error.remedy)
        return column

    def _told_apart(self, path: KeyPath, names: Mapping[str, Any]) -> None:
        """SQL does not tell cases apart, and knows neither empty names nor NUL."""
        seen: set[str] = set()
        for name in names:
            if not name or "\0" in name:
                self.wrong((*path, name), "has no name that SQL knows", "rename it in the source")
            if name.lower() in seen:
                self.wrong((*path, name), "is there in another case too", "rename one, or drop it")
            seen.add(name.lower())

    def _unit(
        self, columns: Mapping[str, Column], through: tuple[LinkedTable, ...]
    ) -> tuple[str | None, int | None, int | None, int | None, bool]:
        """The unit's column, its limits, and whether max_rows is left to a profile."""
        fields = self._table("unit", ("column", "each_row", "max_rows", "max_groups", "at_most"))
        column = self._unit_column(fields, columns, through) if "unit" in self.data else None
        rows: int | None = 1
        if "max_rows" in fields:
            remedy = "write max_rows = 20, say: that many rows of one unit count"
            rows = self.whole(("unit", "max_rows"), fields.get("max_rows"), remedy)
        groups = fields.get("max_groups")
        if groups is not None:
            remedy = "write max_groups = 5, say: a unit counts in that many groups; or drop it"
            groups = self.whole(("unit", "max_groups"), groups, remedy)
        at_most = fields.get("at_most")
        if at_most is not None:
            remedy = "write at_most = 366, say, if surely nobody has more rows; or drop it"
            at_most = self.whole(("unit", "at_most"), at_most, remedy)
        return column, rows, groups, at_most, column is not None and "max_rows" not in fields

    def _unit_column(
        self,
        fields: Mapping[str, Any],
        columns: Mapping[str, Column],
        through: tuple[LinkedTable, ...],
    ) -> str | None:
        remedy = 'write column = "patient_id", or each_row = true if each row is a different person'
        path = ("unit", "column")
        if "each_row" in fields:
            if "column" in fields:
                self.wrong(("unit", "each_row"), "and column are both written", "drop one of them")
            elif fields["each_row"] is not True:
                self.wrong(("unit", "each_row"), "is not true", remedy)
            return None
        column = self.text(path, fields.get("column"), remedy)
        if not column:
            return None
        column = meant_name(column, [(one.name, one.columns) for one in through])
        declared = {*self.section("columns", needed=False), *columns}
        if column.lower() not in {name.lower() for name in declared}:
            self.wrong(path, "is not a column of the card", f"add [{toml_key('columns', column)}]")
        return column

    def _budget(self) -> Budget | None:
        own = ("order", "delta_kept")
        fields = self._table("budget", ("epsilon", "delta", "rho", "accounting", "account", *own))
        names: list[str] = [name for name in ("epsilon", "delta", "rho") if name in fields]
        if "budget" in self.data and not names:
            self.wrong(("budget",), "is empty", "write epsilon = 1, say; or rho = 0.5")
        accounting = fields.get("accounting", "sums")
        if accounting not in ("sums", *FILTERS):
            remedy = 'write "filter", "gaussian" or "sums" (which leaving it out means)'
            self.wrong(("budget", "accounting"), "is of an unknown kind", remedy)
            return None
        kind: Any = "zcdp" if "rho" in names else "approx" if "delta" in names else "pure"
        if accounting in FILTERS:
            kind, names = accounting, [*names, *(name for name in own if name in fields)]
        else:
            for name in own:
                if name in fields:
                    remedy = 'add accounting = "filter", or drop it'
                    self.wrong(("budget", name), "is for accounts kept by the filter", remedy)
        numbers = {name: self.number(("budget", name), fields[name]) for name in names}
        if not names or None in numbers.values():
            return None

        def checked() -> Budget:
            budget = Budget(kind=kind, **cast(dict[str, Fraction], numbers))
            check_budget(budget)
            return budget

        return self.attempt(("budget",), checked)

    def _account(self) -> str | None:
        """The account that this table shares with others, if the card says so."""
        path, remedy = ("budget", "account"), 'write, say, account = "patients"'
        fields = self.section("budget", needed=False)
        if "account" not in fields:
            return None
        account = self.text(path, fields["account"], remedy)
        if account and not _FILE_NAME.fullmatch(account):
            self.wrong(path, "is not of letters, digits, blanks, - and _", remedy)
        return account

    def _ledger(self, name: str) -> str | None:
        path, remedy = ("ledger", "path"), 'write path = "visits.ledger"'
        fields = self._table("ledger", ("path", "data"), needed=False)
        if "ledger" in self.data:
            value = self.text(path, fields.get("path"), remedy)
            if is_address(value):
                what = "the address of the ledger"
                return str(self.attempt(path, lambda: Address.read(value, "schema", what=what)))
            if "://" in value:
                self.wrong(path, "is not a file here, nor a server's address", remedy)
            return str((self.folder / value).absolute())  # one ledger, wherever we go
        if name and not _FILE_NAME.fullmatch(name):
            problem = "cannot be named after the table"
            self.wrong(("ledger",), problem, f"add [ledger], and {remedy}")
        return str((self.folder / f"{name}.ledger").absolute())

    def _accepted(self) -> bool:
        """Whether changed data must be accepted before they are asked about."""
        said = self.section("ledger", needed=False).get("data", "any")
        return self.choice(("ledger", "data"), said, ("any", "accepted")) == "accepted"

    def _users(self) -> tuple[str, ...] | None:
        users = self._table("access", ("users",), needed=False).get("users")
        if "access" not in self.data:
            return None
        if not isinstance(users, list) or any(type(user) is not str or not user for user in users):
            self.wrong(
                ("access", "users"), "is not a list of names", 'write users = ["ana", "ben"]'
            )
            return ()
        return tuple(users)

    def _engine(self, source: Source | None) -> EngineLimits:
        names = ("max_memory", "threads", "spill_folder", "max_spill", "index")
        fields = self._table("engine", names, needed=False)
        if fields and source is not None and source.engine != "duckdb":
            problem = f"is for files, and the table is on {source.engine}"
            self.wrong(("engine",), problem, "drop it, and limit the server's session there")
        found: dict[str, Any] = {}
        for name, value in fields.items():
            path = ("engine", name)
            if name == "threads":
                found[name] = self.whole(path, value, "write threads = 4, say")
            elif name == "spill_folder":
                text = self.text(path, value, 'write spill_folder = "/data/tmp", say')
                found[name] = str((self.folder / text).absolute()) if text else None
            elif name == "index":
                found[name] = value is True
                if type(value) is not bool:
                    self.wrong(path, "is neither true nor false", "write index = false")
            elif name in names:
                found[name] = value
                if type(value) is not str or not _SIZE.fullmatch(value):
                    self.wrong(path, "is not a size", 'write "500MB", "8GB" or "2TB", say')
        return EngineLimits(**found)

    def _prepared(self, source: Source | None, through: tuple[LinkedTable, ...]) -> str | None:
        """The folder for prepared rows, if the card names one."""
        if "prepared" not in self.data:
            return None
        path, remedy = ("prepared", "path"), 'write path = "visits.prepared"'
        text = self.text(path, self._table("prepared", ("path",)).get("path"), remedy)
        if source is not None and source.kind not in ("csv", "parquet", "duckdb"):
            problem = f"is for files, and the table is on {source.engine}"
            self.wrong(("prepared",), problem, "drop it")
        if through:
            problem = "is for tables that have the unit's column themselves"
            self.wrong(("prepared",), problem, "drop it, or join the tables into one file")
        if "://" in text:
            self.wrong(path, "is not a folder here", remedy)
        return str((self.folder / text).absolute()) if text else None

    def _public(self, table: str, own: Source | None) -> dict[str, PublicTable]:
        found = {}
        section = self.section("public", needed=False)
        for name, fields in section.items():
            path = ("public", name)
            if not isinstance(fields, dict):
                self.wrong(path, "is not a section", "write [public.regions], source and columns")
                continue
            self.known(path, fields, ("source", "table", "columns"))
            self._name(path, name)
            source = self.source((*path, "source"), fields)
            columns, place = fields.get("columns"), (*path, "columns")
            if not isinstance(columns, dict) or not columns:
                problem = "is missing" if columns is None else "names no columns"
                self.wrong(place, problem, 'write columns = {region = "text"}')
                columns = {}
            for column, kind in columns.items():
                self.choice((*place, column), kind, TYPES)
            self._told_apart(place, columns)
            if name.lower() == table.lower() or (source and own and _shared(source, own)):
                self.wrong(path, "is the table itself", "name only what everybody may see")
            if source is not None:
                found[name] = PublicTable(name=name, source=source, columns=columns)
        self._told_apart(("public",), section)
        return found

    def _private(self) -> dict[str, PrivateTable]:
        found: dict[str, PrivateTable] = {}
        section = self.section("private", needed=False)
        for name, fields in section.items():
            path = ("private", name)
            if not isinstance(fields, dict):
                remedy = "write [private.labs], source, unit, max_rows and columns"
                self.wrong(path, "is not a section", remedy)
                continue
            self.known(path, fields, ("source", "table", "unit", "max_rows", "columns"))
            self._name(path, name)
            source = self.source((*path, "source"), fields)
            remedy = "write max_rows = 20, say: that many rows of one unit are joined"
            rows = self.whole((*path, "max_rows"), fields.get("max_rows"), remedy)
            listed, place = fields.get("columns"), (*path, "columns")
            if not isinstance(listed, dict) or not listed:
                problem = "is missing" if listed is None else "names no columns"
                self.wrong(place, problem, f"add [{toml_key(*place, 'value')}], and type below it")
                listed = {}
            columns = self._columns(place, listed)
            remedy = 'write unit = "patient_id", say: its column that says whose row it is'
            unit = self.text((*path, "unit"), fields.get("unit"), remedy)
            if unit and unit.lower() not in {column.lower() for column in columns}:
                remedy = f"add [{toml_key(*path, 'columns', unit)}]"
                self.wrong((*path, "unit"), "is not a column of the table", remedy)
            elif source is not None and unit and rows is not None:
                self._public_apart(path, source)
                made = self._private_table(path, source, unit, rows, columns)
                found |= {} if made is None else {name: made}
        self._told_apart(("private",), section)
        return found

    def _through(
        self, columns: Mapping[str, Column]
    ) -> tuple[dict[str, Column], tuple[LinkedTable, ...]]:
        """The tables on the way to the unit, in order, and their columns by names of the card."""
        found: dict[str, Column] = {}
        steps: list[LinkedTable] = []
        for name, fields in self.section("through", needed=False).items():
            path = ("through", name)
            if not isinstance(fields, dict):
                remedy = 'write [through.orders], source, on = {order_id = "id"} and columns'
                self.wrong(path, "is not a section", remedy)
                continue
            self.known(path, fields, ("source", "table", "on", "max_rows", "columns"))
            self._name(path, name)
            source = self.source((*path, "source"), fields)
            if source is not None:
                self._public_apart(path, source)
            rows, on = fields.get("max_rows", 1), fields.get("on")
            remedy = "leave it out, or write max_rows = 2, say: rows of one unit with one id"
            rows = self.whole((*path, "max_rows"), rows, remedy)
            texts = isinstance(on, dict) and all(type(own) is str and own for own in on.values())
            if not isinstance(on, dict) or not on or not texts:
                remedy = 'write on = {order_id = "id"}: a column of the table before, and one here'
                self.wrong(
                    (*path, "on"), "is missing" if on is None else "names no columns", remedy
                )
                continue
            listed, place = fields.get("columns"), (*path, "columns")
            if not isinstance(listed, dict) or not listed:
                problem = "is missing" if listed is None else "names no columns"
                remedy = f"add [{toml_key(*place, 'customer')}], and type below it"
                self.wrong(place, problem, remedy)
                continue
            called: dict[str, str] = {}
            for own, column in self._columns(place, listed).items():
                known = name_on_card(name, own, [*columns, *found])
                called[known], found[known] = own, replace(column, name=known)
            known_to = [(one.name, one.columns) for one in steps]
            pairs = tuple((meant_name(own, known_to), other) for own, other in on.items())
            if source is None or rows is None:
                continue
            values: dict[str, Any] = {"source": source, "max_rows": rows, "columns": called}
            one = self.attempt(path, partial(LinkedTable, name=name, on=pairs, **values))
            steps += [] if one is None else [one]
        self._told_apart(("through",), self.section("through", needed=False))
        return found, tuple(steps)

    def _private_table(
        self, path: KeyPath, source: Source, unit: str, rows: int, columns: Mapping[str, Column]
    ) -> PrivateTable | None:
        return self.attempt(
            path,
            lambda: PrivateTable(
                name=path[-1], source=source, unit=unit, max_rows=rows, columns=columns
            ),
        )

    def _public_apart(self, path: KeyPath, source: Source) -> None:
        """That a private table is not a public one as well."""
        for name, fields in self.section("public", needed=False).items():
            known = isinstance(fields, dict) and fields.get("source") is not None
            public = self.source(("public", name, "source"), fields) if known else None
            if public is not None and _shared(source, public):
                self.wrong(path, "is a public table too", "name only what everybody may see there")


_SECTIONS = (
    *("table", "unit", "budget", "ledger", "access", "engine"),
    *("columns", "public", "private", "through", "prepared"),
)
_SIZE = re.compile(r"[1-9][0-9]{0,5}(MB|GB|TB)")
_MOST_ROWS_SAID = 10**12
_LONGEST = 1 << 22
_MOST_SIGNS = 1 << 17  # = [ { and . in all: each costs the parser of TOML up to 1 kB
_MOST_COMMAS = 1 << 20
_MOST_DOTS = 100
_KEY = re.compile(r"[\w\s.\-\"'\[\]]*")
_PARTS = re.compile(r"[={},]")
_FILE_NAME = re.compile(r"[\w-][\w .-]*")
_DATA = (".csv", ".tsv", ".gz", ".parquet", ".pq", ".duckdb", ".ddb", ".db")


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """A card that was read, and what is wrong with it; only one without problems is a card."""

    named: str
    card: DataCard | None
    problems: list[Problem]
    lines: Mapping[tuple[str, ...], int]


def read_card(path: str | Path) -> DataCard:
    """The card in this file; its paths are relative to it.

    >>> import tempfile
    >>> text = '''
    ... [table]
    ... name = "visits"
    ... source = "visits.csv"
    ... neighbours = "add-remove"
    ... [unit]
    ... column = "patient"
    ... max_rows = 5
    ... [budget]
    ... epsilon = 3
    ... [columns.patient]
    ... type = "integer"
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Path(folder) / "visits.toml"
    ...     _ = place.write_text(text)
    ...     card = read_card(place)
    >>> card.unit, card.max_rows, card.budget.epsilon
    ('patient', 5, Fraction(3, 1))
    """
    return _accepted(examined(path))


def card_from(text: str, *, folder: Path, named: str = "card") -> DataCard:
    """The card that a TOML text says; `named` is how errors call it."""
    return _accepted(_examined(text, folder=folder, named=named))


def examined(path: str | Path) -> Examined:
    """The card in this file with all its problems; refuses only what is not text."""
    check_path(path, "card")
    place = Path(path)
    if place.suffix.lower() in _DATA:
        raise CardRefused(
            str(place),
            problem="is not a data card: those end in .toml",
            remedy=f"name the card, or draft one: lastbit card new {place.name}",
        )
    try:
        raw = content_of(place, most=_LONGEST)
        real = Path(os.path.realpath(place))
        text = raw.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = f"cannot be read ({error.strerror})" if isinstance(error, OSError) else ""
        problem = reason or "is not text in UTF-8"
        raise CardRefused(str(place), problem=problem, remedy="pass a TOML file") from None
    found = _examined(text, folder=real.parent, named=place.name)
    card = None if found.card is None else replace(found.card, file=str(real))
    return replace(found, card=card)


def _examined(text: str, *, folder: Path, named: str) -> Examined:
    text = text.replace("\r\n", "\n")
    if sum(map(text.count, "=[{.")) > _MOST_SIGNS or text.count(",") > _MOST_COMMAS:
        problem = "has more keys, sections or values than a card can have"
        large = Problem(1, "the card", problem, "declare only what questions need")
        return Examined(named=named, card=None, problems=[large], lines={})
    try:
        _check_keys(text)
        data = tomllib.loads(text, parse_float=Written)
    except (ValueError, RecursionError) as error:
        return Examined(named=named, card=None, problems=[_syntax(text, error)], lines={})
    reader = _Sections(data, text, folder)
    card, problems = reader.card(), sorted(reader.found)
    card = None if problems else card
    return Examined(named=named, card=card, problems=problems, lines=reader.lines)


def _check_keys(text: str) -> None:
    """That no key is a.a.a ... for ever: the time to read one grows with the square of its dots."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > _MOST_DOTS and any(
            part.count(".") > _MOST_DOTS and _KEY.fullmatch(part) for part in _PARTS.split(line)
        ):
            raise tomllib.TOMLDecodeError(f"a key has too many dots (at line {number}, column 1)")


def _syntax(text: str, error: Exception) -> Problem:
    """Where the text stops being TOML. Nothing of it is repeated: it may be data, and no card."""
    told = str(error)
    place = re.search(r"\(at line (\d+)", told)
    line = int(place[1]) if place else text.count("\n") + 1
    reason = told.partition(" (at ")[0]
    if isinstance(error, RecursionError):
        reason = "nested too deeply"
    elif not isinstance(error, tomllib.TOMLDecodeError):  # the interpreter's own limit
        digits = re.search(r"[0-9_]{1000}", text)
        line = text.count("\n", 0, digits.start()) + 1 if digits else 1
        reason = "a number has too many digits"
    elif reason.startswith("Cannot declare"):
        reason = "a section is there twice"
    elif "haracter" in reason or "key '" in reason:
        reason = "something stands there that may not"
    return Problem(line, "the card", f"is not TOML here: {reason}", "fix this line")


def _shared(one: Source, other: Source) -> bool:
    """Whether two sources have a file (or, of DuckDB files, a table) in common."""
    places = [{os.path.realpath(path) for path in source.paths} for source in (one, other)]
    return bool(places[0] & places[1]) and one.may_be_table_of(other)
