"""The pages of the documentation in the terminal, as they were written: where no site was built."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Markdown
from rich.text import Text

from lastbit.cli.options import refusal
from lastbit.cli.output import WIDTH, Columns, Heading, show

FIRST = "index"
_WIDEST = 100
_MOST_FOUND = 20
_COMMENT = re.compile(r"<!--.*?-->\s*", re.DOTALL)
_HEADING = re.compile(r"^(#+) +(.*)$", re.MULTILINE)
_LINK = re.compile(r"\]\(<?(?P<target>[^)\s>#]+)\.md(?:#[^)]*)?>?\)")
_TITLE_WEIGHT = 60  # a page is about what its title says
_HEADING_WEIGHT = 12


class _Code(CodeBlock):
    """A block of code to the last column: it was written for 80."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(str(self.text).rstrip("\n"), style="cyan", no_wrap=True, overflow="ignore")


class _Page(Markdown):
    elements = {**Markdown.elements, "fence": _Code, "code_block": _Code}  # noqa: RUF012  as in rich


class Pages:
    """The Markdown files below a folder, each by its name without an end: theory/laplace."""

    def __init__(self, folder: Path) -> None:
        self.files = {
            file.relative_to(folder).as_posix().removesuffix(".md"): file
            for file in sorted(folder.rglob("*.md"))
        }

    def named(self, words: str) -> str | None:
        """The page of that name; of several the shortest."""
        wanted = words.strip("/").removesuffix(".md").lower().replace(" ", "-")
        ends = (f"/{wanted}", f"/{wanted}/readme")
        names = [name for name in self.files if f"/{name.lower()}".endswith(ends)]
        return min(names, key=len, default=None)

    def holding(self, words: str) -> list[tuple[str, str]]:
        """Pages that hold the words, and their titles; those with most of them first."""
        wanted = words.lower().split()
        found = [(self._score(name, wanted), name) for name in self.files]
        best = sorted(one for one in found if one[0][0] < 0)[:_MOST_FOUND]
        most = best[0][0][0] if best else 0
        return [(name, self.title(name)) for (lacking, _), name in best if lacking == most]

    def _score(self, name: str, wanted: Sequence[str]) -> tuple[int, float]:
        """How many of the words a page holds, and how much it is about them; less is better."""
        text = self.text(name)
        lowered = text.lower()
        headings = " ".join(title for _, title in _HEADING.findall(text)).lower()
        held = [word for word in wanted if word in lowered]
        score = sum(
            _TITLE_WEIGHT * (word in self.title(name).lower())
            + _HEADING_WEIGHT * headings.count(word)
            + lowered.count(word)
            for word in held
        ) / (4 if name.startswith(("reference", "decisions", "papers")) else 1)
        return -len(held), -score

    def text(self, name: str) -> str:
        """A page, without the comments that are for its authors."""
        return _COMMENT.sub("", self.files[name].read_text("utf-8"))

    def title(self, name: str) -> str:
        """Its first heading."""
        found = _HEADING.search(self.text(name))
        return found[2] if found else name

    def leading_on(self, name: str) -> Iterator[str]:
        """The pages that it links to, each once."""
        folder = Path(f"/{name}").parent
        for match in _LINK.finditer(self.text(name)):
            target = (folder / match["target"]).resolve().as_posix().strip("/")
            if target in self.files:
                yield target


def show_page(folder: Path, words: str) -> None:
    """The page of this name on the terminal, or the pages that hold these words."""
    pages = Pages(folder)
    if FIRST not in pages.files:
        problem = "is not part of this installation"
        raise refusal("the documentation", problem, "install a wheel of lastbit")
    name = pages.named(words) if words else FIRST
    if name is None:
        found = pages.holding(words)
        if not found:
            problem = "are on no page"
            raise refusal("these words", problem, "try another one, or lastbit docs without any")
        show(
            Heading(f"Pages with {words}", "lastbit docs PAGE shows one"),
            Columns(("page", "title"), found),
        )
        return
    console = Console(width=min(Console().width, _WIDEST) if sys.stdout.isatty() else WIDTH)
    with console.capture() as captured:
        console.print(_Page(pages.text(name)), crop=False)  # code is as wide as it was written
        if linked := list(dict.fromkeys(pages.leading_on(name))):
            console.print(Text(f"\nPages named here: {', '.join(linked)}", style="dim"))
            console.print(Text("Each is shown by lastbit docs PAGE.", style="dim"))
    lines = "\n".join(line.rstrip() for line in captured.get().splitlines())
    if sys.stdout.isatty():
        click.echo_via_pager(f"{lines}\n", color=True)
    else:
        click.echo(lines)
