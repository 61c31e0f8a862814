"""Reads a Markdown page and runs what it shows; as a program, the page it is given, here.

    ```python     executed top to bottom, one namespace a page; `>>>` examples must print what
                  is shown (`...` stands for anything), other code must run
    ```console    `$ lastbit ...` is run and must print what is shown, up to white space;
                  commands that set things up (make, git, pip) are not run
    ```toml       or python: with a first line `# card.toml` it is saved under that name, and
                  that line stays in the file
    ```           any other fence is only shown, but may not hide a command under another name

A command that ends with an error must show it: the last line of its output is `[exit 2]`.
A fence is left out by a comment directly above it: `<!-- not executed: the reason -->`.
"""

import contextlib
import doctest
import importlib
import io
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

RUN = frozenset({"lastbit", "python", "cat", "head", "echo", "ls"})
NOT_RUN = frozenset({"make", "git", "pip", "cd"})
MISNAMED = frozenset({"py", "python3", "pycon", "sh", "bash", "shell", "shell-session"})
SHELL = frozenset("();<>|&$`*?~#")
LONGEST_COMMAND_SECONDS = 300

FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}|~{3,}) *(?P<info>[^`]*)$")
OPT_OUT = re.compile(r"^<!-- not executed: \S.* -->$")
LINK = re.compile(
    r"\[[^\]]*\]\(<?(?P<inline>[^)\s>]+)>?[^)]*\)|^\[[^\]]+\]: *(?P<reference>\S+)", re.M
)
SAVED = re.compile(r"# (?P<name>\w+\.(toml|py))\n")
EXIT_STATUS = re.compile(r"^\[exit (?P<status>\d+)\]\s*\Z", re.M)
HEADING = re.compile(r"^#+ +(?P<title>.*?) *#*$", re.M)

LOOSE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class PageBroken(Exception):
    """A page shows what does not happen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """A fenced block; `line` is where its first line of content stands in the page."""

    language: str
    text: str
    line: int
    left_out: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One `$` line of a console fence and the output shown below it."""

    line: int
    text: str
    output: str

    @property
    def program(self) -> str:
        return self.text.split()[0]


def fences(page: str) -> list[Fence]:
    found = []
    lines = page.splitlines()
    position = 0
    while position < len(lines):
        opening = FENCE.match(lines[position])
        if opening is None:
            position += 1
            continue
        closing = _closing(lines, position, opening["ticks"])
        info = opening["info"].split()
        found.append(
            Fence(
                language=info[0] if info else "",
                text=textwrap.dedent("\n".join(lines[position + 1 : closing])) + "\n",
                line=position + 2,
                left_out=position > 0 and bool(OPT_OUT.match(lines[position - 1].strip())),
            )
        )
        position = closing + 1
    return found


def _closing(lines: list[str], opening: int, ticks: str) -> int:
    for position in range(opening + 1, len(lines)):
        text = lines[position].strip()
        if text and set(text) == {ticks[0]} and len(text) >= len(ticks):
            return position
    raise PageBroken(f"line {opening + 1}: the fence is never closed")


# ---------------------------------------------------------------- running


def executable(page: str) -> list[Fence]:
    """The fences that `run` will run."""
    return [
        fence
        for fence in fences(page)
        if fence.language in {"python", "console"} and not (fence.left_out or saved_as(fence))
    ]


def saved_as(fence: Fence) -> str | None:
    """The name of the file that a fence shows."""
    found = SAVED.match(fence.text)
    ending = {"toml": ".toml", "python": ".py"}.get(fence.language)
    return found["name"] if found and ending and found["name"].endswith(ending) else None


def run(page: str, *, name: str, directory: Path) -> None:
    """Run the page's fences in `directory`, top to bottom."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for fence in fences(page):
        if fence.language in MISNAMED:
            raise PageBroken(f"{name}:{fence.line}: call it python or console, so that it runs")
    with contextlib.chdir(directory):
        for fence in fences(page):
            if saved := not fence.left_out and saved_as(fence):
                Path(saved).write_text(fence.text, "utf-8")
            elif fence.left_out or fence.language not in {"python", "console"}:
                continue
            elif fence.language == "console":
                for command in commands(fence):
                    _run_command(command, name, directory)
            elif re.search(r"^>>>", fence.text, re.M):
                _run_examples(fence, namespace, name)
            else:
                _run_code(fence, namespace, name)


def _run_code(fence: Fence, namespace: dict[str, object], name: str) -> None:
    padding = "\n" * (fence.line - 1)  # so that a traceback shows the page's own line
    exec(compile(padding + fence.text, name, "exec"), namespace)


def _run_examples(fence: Fence, namespace: dict[str, object], name: str) -> None:
    test = doctest.DocTestParser().get_doctest(fence.text, namespace, name, name, fence.line - 1)
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    result = runner.run(test, out=report.write, clear_globs=False)
    namespace.update(test.globs)  # a DocTest works on a copy
    if result.failed:
        raise PageBroken(report.getvalue())


def commands(fence: Fence) -> Iterator[Command]:
    lines = fence.text.splitlines()
    starts = [position for position, line in enumerate(lines) if line.startswith("$ ")]
    if not starts or any(line.strip() for line in lines[: starts[0]]):
        raise PageBroken(f"line {fence.line}: a console fence starts with a `$ ` line")
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        block = lines[start:end]
        text = block.pop(0).removeprefix("$ ")
        while text.endswith("\\") and block:
            text = text[:-1] + block.pop(0).removeprefix(">").strip()
        yield Command(line=fence.line + start, text=text, output="\n".join(block) + "\n")


def _run_command(command: Command, name: str, directory: Path) -> None:
    where = f"{name}:{command.line}: $ {command.text}"
    if command.program in NOT_RUN:
        return
    if command.program not in RUN:
        raise PageBroken(f"{where}\nis neither a command to run nor one to leave out")
    returned, written = _finished(command.text, directory)
    shown, status = _shown_status(command.output)
    same = doctest.OutputChecker().check_output(shown, written, LOOSE)
    if not same or returned != status:
        raise PageBroken(
            f"{where}\nexpected, with exit status {status}:\n{shown}\n"
            f"got, with exit status {returned}:\n{written}"
        )


def _finished(text: str, directory: Path) -> tuple[int, str]:
    """The exit status of a command, and what it wrote to stdout and stderr."""
    words = list(shlex.shlex(text, posix=False, punctuation_chars=True))
    plain = all(word[0] in "\"'" or not SHELL.intersection(word) for word in words)
    if __package__ and plain and words[0] == "lastbit":
        from tests.docs.forked import finished  # not there where this runs as a program

        return finished(shlex.split(text)[1:], directory, _environment(), LONGEST_COMMAND_SECONDS)
    run = subprocess.run(
        text,
        shell=True,  # pages show redirections and `&&`, as people type them
        cwd=directory,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=LONGEST_COMMAND_SECONDS,
        check=False,
    )
    return run.returncode, run.stdout


def _shown_status(output: str) -> tuple[str, int]:
    """The output without its `[exit N]` line, and N; apart, or a `...` would match the line too."""
    ending = EXIT_STATUS.search(output)
    if ending is None:
        return output, 0
    return output[: ending.start()], int(ending["status"])


def _environment() -> dict[str, str]:
    """A plain terminal of fixed width, with this interpreter's programs first."""
    return os.environ | {
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))),
        "COLUMNS": "100",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "PYTHONUTF8": "1",
    }


# ---------------------------------------------------------------- links


def broken_links(page: Path, root: Path) -> list[str]:
    """Relative links of the page that lead nowhere inside `root`."""
    text = prose(page.read_text("utf-8"))
    targets = [match["inline"] or match["reference"] for match in LINK.finditer(text)]
    return [
        target
        for target in targets
        if not re.match(r"[a-z]+:", target) and not _leads_somewhere(target, page, root)
    ]


def _leads_somewhere(target: str, page: Path, root: Path) -> bool:
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page.resolve()
    if not file.exists() or not file.is_relative_to(root.resolve()):
        return False
    return not anchor or file.suffix != ".md" or anchor in anchors(file.read_text("utf-8"))


def anchors(page: str) -> set[str]:
    """The names that headings can be linked by: lower case, dashes, no punctuation."""
    titles = (match["title"] for match in HEADING.finditer(_without_fences(page)))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


# ---------------------------------------------------------------- names of code

CODE = re.compile(r"(?<!`)`(?P<code>[^`\n]+)`(?!`)")
NAME = re.compile(r"(?P<module>lastbit(\.\w+)*)(:(?P<name>[\w.]+))?(?=$|[^\w.:/@-])")
PLACE = re.compile(r"(?:src|tests|docs|bench)/[\w./-]+\.(?:py|pyi|md|json|html)(?=$|::|[:#])")


def unknown_names(page: str, root: Path) -> list[str]:
    """What the page's inline code names and is not there: `lastbit.x.y`, `x:name`, `src/x.py`."""
    spans = [match["code"] for match in CODE.finditer(_without_fences(page))]
    return [
        code
        for code in spans
        if ((found := NAME.match(code)) and "." in found[0] and not _resolves(found))
        or ((place := PLACE.match(code)) and not (root / place[0]).exists())
    ]


def _resolves(found: re.Match[str]) -> bool:
    """Whether the module is there, and the names below it: classes may hold further ones."""
    parts = found["module"].split(".")
    for last in range(len(parts), 0, -1):
        try:
            thing: object = importlib.import_module(".".join(parts[:last]))
        except ModuleNotFoundError:
            continue
        for name in (*parts[last:], *(found["name"] or "").split(".")):
            if name and not hasattr(thing, name):
                return False
            thing = getattr(thing, name) if name else thing
        return True
    return False


def prose(page: str) -> str:
    """The page without its fences and inline code, where brackets mean something else."""
    return re.sub(r"`[^`\n]*`", "", _without_fences(page))


def _without_fences(page: str) -> str:
    lines = page.splitlines()
    for fence in fences(page):
        length = len(fence.text.splitlines())
        lines[fence.line - 1 : fence.line - 1 + length] = [""] * length
    return "\n".join(lines)


if __name__ == "__main__":  # `make dist` runs the front page where only the wheel is installed
    run(Path(sys.argv[1]).read_text("utf-8"), name=sys.argv[1], directory=Path.cwd())
