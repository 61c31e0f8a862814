"""The site: Sphinx with MyST and furo. `make site` builds it to build/site.

The pages are plain Markdown that any forge shows too, so the navigation is not written in
directives. `docs/index.md` lists pages under its headings, the `README.md` of a folder lists the
pages beside it, and `prepared` turns these lists into the trees that Sphinx wants. A page
that no list names, a link that leads nowhere: Sphinx warns, and a warning ends the build.

The root of the sources is that of the repository, so that pages and the files around them (the
changelog, the guide for contributors) link to each other as they do on a forge.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
INDEX = "docs/index.md"
SECTION = re.compile(r"^## +(?P<title>.*?) *$", re.M)
LISTED = re.compile(r"^- \[(?P<title>[^\]]+)\]\((?P<page>[^)#:]+\.md)\)", re.M)
# files that are in the repository, and not on the site
FILE = re.compile(
    r"\[(?P<words>[^\]]+)\]\((\.\./)+(src|tests|bench)/[^)]+\.(py|json|toml)(#\w+)?\)"
)
BESIDE = re.compile(r"\]\((?P<page>[^)#:/]+\.md)\)")

# ---------------------------------------------------------------- Sphinx

project = author = "lastbit"
metadata = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
version = release = metadata["version"]
extensions = ["myst_parser", "sphinx_copybutton"]
root_doc = INDEX.removesuffix(".md")
include_patterns = [
    "docs/**.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "bench/README.md",
    "tests/README.md",
]  # fmt: skip
# Folders that Sphinx need not walk through.
exclude_patterns = [".*", "build", "dist", "src", "bench/.venv", "bench/results", "tests/*/**"]
myst_heading_anchors = 6
nitpicky, smartquotes = True, False  # what is quoted is searched for, and pasted
pygments_style, pygments_dark_style = "a11y-high-contrast-light", "github-dark"
html_theme = "furo"
html_title = f"lastbit {release}"
html_static_path = ["_static"]
html_css_files = ["lastbit.css"]
html_search_scorer = "docs/scorer.js"
html_favicon = "../src/lastbit/serve/static/icon.svg"
html_copy_source = html_show_copyright = html_show_sphinx = html_use_index = False
html_additional_pages = {"index": "entrance.html"}
templates_path = ["_templates"]
copybutton_prompt_text = r">>> |\.\.\. |\$ |> "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

# ---------------------------------------------------------------- navigation


def sections(index: str) -> dict[str, list[tuple[str, str]]]:
    """The lists of the first page: under each heading, titles and pages."""
    _, *parts = SECTION.split(index)
    lists = {
        title: LISTED.findall(text) for title, text in zip(parts[::2], parts[1::2], strict=True)
    }
    return {title: listed for title, listed in lists.items() if listed}


def beside(readme: str) -> list[str]:
    """The pages of its own folder that a page links to, each once."""
    return list(dict.fromkeys(BESIDE.findall(readme)))


def in_navigation(root: Path = ROOT) -> set[Path]:
    """The pages that can be reached from the first one, by the lists."""
    docs = root / INDEX
    named = sections(docs.read_text("utf-8")).values()
    found = {(docs.parent / page).resolve() for pages in named for _, page in pages}
    for page in sorted(found):
        if page.name == "README.md" and page.is_relative_to(docs.parent):
            found |= {page.parent / name for name in beside(page.read_text("utf-8"))}
    return {docs, *found}


def prepared(app: Any, docname: str, source: list[str]) -> None:
    """Give the first page, and those of folders, the trees that their lists stand for.

    Links to files that are not pages become their words: a wheel has its sources once. The empty
    line that ends an example is for doctest alone.
    """
    text = source[0] = FILE.sub(r"\g<words>", source[0]).replace("\n\n```\n", "\n```\n")
    if docname == root_doc:
        trees = [
            (title, [f"{name} <{page.removesuffix('.md')}>" for name, page in pages])
            for title, pages in sections(text).items()
        ]
    elif docname.startswith("docs/") and docname.endswith("/README"):
        trees = [("", [page.removesuffix(".md") for page in beside(text)])]
    else:
        return
    for caption, entries in trees:
        option = f":caption: {caption}\n" if caption else ""
        source[0] += "\n```{toctree}\n:hidden:\n" + option + "\n" + "\n".join(entries) + "\n```\n"


def with_one_branch(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Unfold the folder of the current page alone: all on every page are a quarter of the site."""
    if "toctree" in context:
        whole = context["toctree"]
        context["toctree"] = lambda **look: whole(**{**look, "collapse": True})


def without_leftovers(app: Any, exception: Exception | None) -> None:
    """Remove what themes ship and no page loads: the site is part of the wheel."""
    for pattern in ("**/*.map", "basic.css", "debug.css", "skeleton.css", "*.png"):
        for file in (Path(app.outdir) / "_static").glob(pattern):
            file.unlink()


def setup(app: Any) -> dict[str, bool]:
    """What Sphinx asks for."""
    app.connect("source-read", prepared)
    app.connect("html-page-context", with_one_branch, priority=400)  # before the theme's own
    app.connect("build-finished", without_leftovers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
