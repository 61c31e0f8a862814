"""Files that are read and written: regular ones, whole or not at all, and never one of ours.

**Read.** Only regular files, without waiting: a pipe or a device could hang or never end. A failure
is an `OSError`, whatever the path is made of.

**Written.** A file is written under another name in the same folder and then takes its place in one
step. So a crash leaves the old file or the new one, a symbolic link is replaced and what it points
to stays as it was, and another name (a hard link) of the old file keeps the old content.

**Spared.** What a command reads, and its ledger, are not written over, by whatever name: files are
compared by device and inode, names of files that are not there yet by folder and, without regard to
case, by name.

**CSV.** A text that a spreadsheet would take for a formula is written with an apostrophe in front
(`plain_cell`), in answers and registers; numbers are left as they are.
"""

from __future__ import annotations

import csv
import errno
import fnmatch
import glob
import os
import re
import stat
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import date
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, TypeAlias

from lastbit.arguments import check_path
from lastbit.errors import InvalidParameter

Place: TypeAlias = str | os.PathLike[str]
Spared: TypeAlias = Mapping[str, Iterable[Place]]
"""What must not be written over: files by what they are, in words. Paths may be patterns."""

_PATTERN = re.compile(r"[*?\[]")
_FORMULA = re.compile("'*[=+\\-@\t\r\n＝＋－＠]")
_BESIDE = ("", "-journal", "-wal", "-shm")


def exists(path: Place) -> bool:
    """Whether the path exists. Invalid paths count as missing; never raises."""
    try:
        os.stat(path)
    except (OSError, ValueError):
        return False
    return True


def content_of(path: Place, *, most: int) -> bytes:
    """The bytes of a regular file, at most `most` of them; anything else is an OSError, at once."""
    with open(_regular(path), "rb") as file:
        size = min(os.fstat(file.fileno()).st_size, most)  # read() makes room for what it is told
        content = file.read(size + 1)
        if len(content) > size:  # it grew, or does not know its size
            content += file.read(most)
    if len(content) > most:
        raise OSError(errno.EFBIG, "longer than such a file can be")
    return content


def opened_text(path: Place) -> IO[str]:
    """A regular file as UTF-8 text, line ends as they are; anything else is an OSError."""
    return open(_regular(path), encoding="utf-8-sig", newline="")


def _regular(path: Place) -> int:
    """A handle of a regular file, opened without waiting for one that is not."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError:
        raise OSError(errno.EINVAL, "not a valid path") from None
    kind = os.fstat(handle).st_mode
    if not stat.S_ISREG(kind):
        os.close(handle)
        raise OSError(errno.EINVAL, "a folder" if stat.S_ISDIR(kind) else "not a regular file")
    return handle


def same_place(one: Place, other: Place) -> bool:
    """Whether two paths lead to one file, or would; what cannot be known counts as no."""
    try:
        return os.path.samestat(os.stat(one), os.stat(other))
    except (OSError, ValueError):
        pass
    try:
        first, second = os.path.realpath(one), os.path.realpath(other)
        if _folded(os.path.basename(first)) != _folded(os.path.basename(second)):
            return False
        folders = [os.stat(os.path.dirname(place)) for place in (first, second)]
        return os.path.samestat(*folders)
    except (OSError, ValueError):
        return False


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def ledger_files(path: Place) -> list[str]:
    """A ledger and what SQLite may keep beside it."""
    place = os.path.realpath(path)
    return [os.fspath(path), *(place + end for end in _BESIDE)]


def check_target(option: str, path: Place, spared: Spared) -> None:
    """Refuse to write over what is spared, or to what is not a file, before anything is done."""
    check_path(path, option)
    for what, places in spared.items():
        for place in places:
            if _taken(path, os.fspath(place)):
                problem = f"names {what}, which must not be written over"
                raise InvalidParameter(option, problem=problem, remedy="name another file")
    try:
        kind = os.stat(path).st_mode
    except FileNotFoundError:
        kind = None  # a new one
    except (OSError, ValueError) as error:
        raise _unwritable(option, path, error) from None
    folder = os.path.dirname(os.path.abspath(path))
    if kind is None and not os.path.isdir(folder):
        problem = f"names the folder {_printable(os.path.dirname(path))}, which does not exist"
        raise InvalidParameter(option, problem=problem, remedy="create the folder, or name another")
    stream = kind is not None and (stat.S_ISCHR(kind) or stat.S_ISFIFO(kind))
    if kind is not None and not stat.S_ISREG(kind) and not stream:
        raise _unwritable(option, path, "a folder" if stat.S_ISDIR(kind) else "not a regular file")
    there = kind is None or os.access(path, os.W_OK)
    if not there or not (stream or os.access(folder, os.W_OK)):
        raise _unwritable(option, path, "you may not write there")


def _taken(path: Place, spared: str) -> bool:
    """Whether the path is spared, or would be one of the files that a pattern finds."""
    if same_place(path, spared):
        return True
    if not _PATTERN.search(spared) or exists(spared):
        return False
    if any(same_place(path, found) for found in glob.glob(spared, recursive=True)):
        return True
    return fnmatch.fnmatch(_folded(os.path.realpath(path)), _folded(os.path.realpath(spared)))


def _unwritable(option: str, path: Place, reason: object) -> InvalidParameter:
    said = reason if isinstance(reason, str) else getattr(reason, "strerror", None)
    problem = f"cannot be written at {_printable(os.fspath(path))} ({said or 'not a valid path'})"
    remedy = "name a file in a folder that you may write to"
    return InvalidParameter(option, problem=problem, remedy=remedy)


def _printable(path: str) -> str:
    """A path in a message: short, and fit for any terminal."""
    text = "".join(c if c.isprintable() else "?" for c in path)
    return text if len(text) <= 100 else f"{text[:60]}...{text[-30:]}"


def written_over(path: Place, content: str | bytes) -> None:
    """Put this content there, in one step; an OSError if it cannot be done."""
    data = content.encode() if isinstance(content, str) else content
    if _is_stream(path):  # a terminal, /dev/null, or a pipe that is read; one that is not fails
        handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(handle, True)
        with open(handle, "wb") as file:
            file.write(data)
        return
    with replaced(path) as new:
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        with open(handle, "wb") as file:
            file.write(data)


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """A line for each row; days and truth values as our own reader takes them, None as nothing."""
    lines: list[str] = []
    # the writer quotes what its line ends hold: a lone carriage return would be read as one
    writer = csv.writer(SimpleNamespace(write=lines.append), lineterminator="\r\n")
    writer.writerows(map(_csv_cell, row) for row in rows)
    return "".join(f"{line[:-2]}\n" for line in lines)


def _csv_cell(cell: object) -> object:
    if isinstance(cell, bool):
        return str(cell).lower()
    return cell.isoformat() if isinstance(cell, date) else cell


def plain_cell(cell: Any) -> Any:
    """A cell that no spreadsheet takes for a formula, by an apostrophe in front of such a text.

    Texts that have one there already get another: to take one away gives every text back.

    >>> [plain_cell(cell) for cell in ("=1+1", "'=1+1", "'s-Hertogenbosch", "-", -5)]
    ["'=1+1", "''=1+1", "'s-Hertogenbosch", "'-", -5]
    """
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


@contextmanager
def replaced(path: Place) -> Iterator[Path]:
    """A name that is free, in the same folder; what is written there takes the place of `path`."""
    try:
        place = Path(path).absolute()
        mode = os.stat(place).st_mode if exists(place) else None
    except ValueError:
        raise OSError(errno.EINVAL, "not a valid path") from None
    if mode is not None and not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "not a regular file")
    if len(os.fsencode(place.name)) > os.pathconf(place.parent, "PC_NAME_MAX"):
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    new = _free(place.parent)
    try:
        yield new
        if mode is not None:
            os.chmod(new, stat.S_IMODE(mode))
        os.replace(new, place)
    finally:
        with suppress(OSError):
            os.unlink(new)


def _free(folder: Path) -> Path:
    """A free name, from the process id and a counter; the caller creates it exclusively."""
    places = (folder / f".lastbit-{os.getpid()}-{number}.new" for number in count())
    return next(place for place in places if not os.path.lexists(place))


def _is_stream(path: Place) -> bool:
    try:
        kind = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISCHR(kind) or stat.S_ISFIFO(kind)
