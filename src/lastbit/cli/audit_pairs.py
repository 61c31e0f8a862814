"""Neighbouring inputs for `lastbit audit`: a short list that fits most, or those of a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lastbit.cli.files import rows_of
from lastbit.cli.refusals import said_of
from lastbit.errors import InvalidParameter
from lastbit.places import content_of

SHAPE = "write a list of pairs, such as [[0, 1], [[3, 1], [3, 2]]]"


def pairs_for(dimension: int | None, neighbours: str) -> list[tuple[Any, Any]]:
    """The numbers 0 and 1, or vectors of which one entry, or each, differs by at most 1."""
    from lastbit.audit import all_may_move, one_may_move

    if dimension is None:
        return [(0, 1)]
    return one_may_move(dimension) if neighbours == "one" else all_may_move(dimension)


def pairs_in(path: Path, dimension: int | None) -> list[tuple[Any, Any]]:
    """The pairs of a JSON file, or of a CSV file with the numbers of both inputs in a line."""
    from lastbit.audit import MOST_PAIRS

    with said_of("--pairs"):
        pairs = _json(path) if path.suffix.lower() == ".json" else _csv(path, dimension)
    if not 1 <= len(pairs) <= MOST_PAIRS:
        raise InvalidParameter(
            "--pairs",
            problem=f"holds {len(pairs)} pairs",
            remedy=f"write from 1 to {MOST_PAIRS}",
        )
    return pairs


def whole_numbers(pairs: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Vectors of whole numbers as vectors of integers, for mechanisms that take no others."""
    import numpy as np

    def turned(item: Any) -> Any:
        if isinstance(item, np.ndarray) and (item == np.rint(item)).all():
            return item.astype(np.int64)
        return item

    return [(turned(x), turned(y)) for x, y in pairs]


def _json(path: Path) -> list[tuple[Any, Any]]:
    try:
        found = json.loads(content_of(path, most=1 << 30).decode("utf-8-sig"))
    except OSError as error:
        raise InvalidParameter(
            "--pairs",
            problem=f"cannot be read at {path} ({error.strerror})",
            remedy="name a file that you may read",
        ) from error
    except (ValueError, RecursionError) as error:
        raise InvalidParameter(
            "--pairs", problem=f"at {path} is no JSON text", remedy=SHAPE
        ) from error
    if not isinstance(found, list) or any(
        not isinstance(pair, list) or len(pair) != 2 for pair in found
    ):
        raise InvalidParameter("--pairs", problem=f"at {path} is no list of pairs", remedy=SHAPE)
    return [(_input(x), _input(y)) for x, y in found]


def _input(item: Any) -> Any:
    """A list of numbers as an array, which noise can be added to; everything else as it is."""
    import numpy as np

    if isinstance(item, list) and item and all(type(entry) in (int, float) for entry in item):
        array = np.array(item)
        return array if array.dtype.kind in "if" else item
    return item


def _csv(path: Path, dimension: int | None) -> list[tuple[Any, Any]]:
    import numpy as np

    width = 1 if dimension is None else dimension
    pairs: list[tuple[Any, Any]] = []
    for line, row in rows_of(path, (2 * width,)):
        numbers = [_number(text, line) for text in row]
        if dimension is None:
            pairs.append((numbers[0], numbers[1]))
        else:
            pairs.append((np.array(numbers[:width]), np.array(numbers[width:])))
    return pairs


def _number(text: str, line: int) -> int | float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise InvalidParameter(
        f"line {line} of --pairs", problem="holds no number", remedy="write numbers, no headings"
    )
