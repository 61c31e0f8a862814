"""`lastbit docs`: pages are found, served to this machine alone, and checked."""

import http.client
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from docs import check_site
from lastbit.cli import docs
from lastbit.cli.docs import HEADERS, Server, Site
from tests.cli.running import lastbit, refused, succeeded

PAGE = '<html><head><link href="../style.css"></head><body><h1 id="top">{}</h1></body></html>'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    site = tmp_path / "site"
    (site / "docs" / "theory").mkdir(parents=True)
    for name in ("docs/index", "docs/laplace", "docs/tutorial", "search"):
        (site / f"{name}.html").write_text(PAGE.format(name).replace("../", "/"))
    (site / "docs" / "theory" / "laplace.html").write_text(PAGE.format("").replace("../", "../../"))
    (site / "style.css").write_text("h1 { background: url(data:image/png;base64,AA) }")
    (tmp_path / "secret.txt").write_text("not a page")
    monkeypatch.setattr(docs, "INSTALLED", site)
    monkeypatch.setattr(docs, "CHECKOUT", tmp_path)
    return site


@pytest.fixture
def server(folder: Path) -> Iterator[Server]:
    with Server(Site(folder)) as one:
        Thread(target=one.serve_forever, args=(0.01,), daemon=True).start()
        yield one
        one.shutdown()


def asked(
    server: Server, path: str, *, method: str = "GET", host: str | None = None
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    headers = {} if host is None else {"Host": host}
    connection.request(method, path, headers=headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


@pytest.mark.parametrize(
    ("words", "path"),
    [
        ("", "/docs/index.html"),
        ("tutorial", "/docs/tutorial.html"),
        ("Tutorial.md", "/docs/tutorial.html"),
        ("laplace", "/docs/laplace.html"),
        ("theory/laplace", "/docs/theory/laplace.html"),
        ("place", "/search.html?q=place"),
        ("lower bound & ε", "/search.html?q=lower%20bound%20%26%20%CE%B5"),
    ],
)
def test_pages_are_found_by_name_or_searched_for(folder, words, path):
    assert Site(folder).page(words) == path


def test_a_page_is_served_with_its_policy(server):
    response, body = asked(server, "/docs/index.html?q=1")
    assert response.status == 200
    assert body.startswith(b"<html>")
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    assert HEADERS.items() <= dict(response.headers).items()
    assert asked(server, "/style.css")[0].headers["Content-Type"].startswith("text/css")
    response, body = asked(server, "/docs/index.html", method="HEAD")
    assert (response.status, body) == (200, b"")
    for path in ("/", "/docs", "/docs/"):
        assert asked(server, path)[0].headers["Location"] == "/docs/index.html"


@pytest.mark.parametrize(
    "path",
    ["/docs//", "/docs/theory/", "/gone.html", "/docs/../index.html", "/docs/index.html/", "/%00"]
    + [f"{way}secret.txt" for way in ("/../", "/%2e%2e/", "//", "")],
)
def test_nothing_else_is_served(server, path):
    assert asked(server, path)[0].status == 404


def test_only_by_its_own_name_and_only_read(server):
    assert asked(server, "/docs/index.html", host="stats.example.org")[0].status == 421
    assert (
        asked(server, "/docs/index.html", host=f"localhost:{server.server_port}")[0].status == 200
    )
    assert asked(server, "/docs/index.html", method="POST")[0].status == 501
    assert server.server_address[0] == "127.0.0.1"


def test_a_good_site_holds(folder, capsys):
    check_site.main()
    assert capsys.readouterr().out == "5 pages hold\n"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<img src="https' + '://example.org/x.png">', "loads https"),
        ('<script src="//example.org/x.js"></script>', "loads //example.org/x.js"),
        ('<img srcset="data:, 1x, //example.org/b.png 2x">', "loads //example.org/b.png"),
        ('<link rel="icon" href="gone.svg">', "loads gone.svg"),
        ("<style>@import 'gone.css';</style>", "loads gone.css"),
        ('<p style="background: url(//example.org/c.png)">', "loads //example.org/c.png"),
        ('<object data="gone.svg"></object>', "loads gone.svg"),
        ('<a href="gone.html">x</a>', "links to gone.html"),
        ('<a href="laplace.html#gone">x</a>', "links to laplace.html#gone"),
        ('<a href="#gone">x</a>', "links to #gone"),
        ('<a href="../secret.txt">x</a>', "links to ../secret.txt"),
    ],
)
def test_a_site_that_does_not_hold_is_rejected(folder, body, problem):
    (folder / "docs" / "tutorial.html").write_text(PAGE.format(body))
    assert f"/docs/tutorial.html {problem}" in " ".join(check_site.problems(Site(folder)))
    with pytest.raises(SystemExit, match="run make site again"):
        check_site.main()


def test_links_that_hold(folder):
    links = ["laplace.html#top", "theory/laplace.html", "#top", "#", "https" + "://example.org/"]
    body = "".join(f'<a href="{link}">x</a>' for link in links)
    (folder / "docs" / "tutorial.html").write_text(PAGE.format(body))
    assert [*check_site.problems(Site(folder))] == []


@pytest.mark.parametrize("style", ["@import 'gone.css';", "a { cursor: url('gone.svg') }"])
def test_styles_load_nothing_from_elsewhere(folder, style):
    (folder / "style.css").write_text(style)
    assert "/style.css loads gone." in next(check_site.problems(Site(folder)))


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pages as they were written, and no site: what `pip install .` gives."""
    pages = tmp_path / "pages"
    (pages / "theory").mkdir(parents=True)
    (pages / "index.md").write_text(
        "# First\n\n[Noise](theory/laplace.md#law) and [a cat](cat.md).\n"
    )
    (pages / "theory" / "laplace.md").write_text(
        f"# Laplace noise\n\n<!-- for authors -->\n```console\n$ {'long ' * 18}\n```\n\n## Cat\n"
    )
    (pages / "cat.md").write_text("# Cats\n\n| a | b |\n|---|---|\n| a cat | 1 |\n")
    monkeypatch.setattr(docs, "INSTALLED", tmp_path)
    monkeypatch.setattr(docs, "CHECKOUT", tmp_path)
    monkeypatch.setattr(docs, "WRITTEN", pages)
    return pages


def test_without_a_site_a_page_is_shown_in_the_terminal(written):
    page = succeeded("docs")
    assert page.strip().startswith("First") and "theory/laplace, cat" in page
    page = lastbit("docs", "laplace").stdout
    assert "for authors" not in page and "```" not in page
    assert f"$ {'long ' * 18}".strip() in page  # code keeps its lines
    assert "a cat" in succeeded("docs", "cat.md", "--terminal")


def test_without_a_site_words_are_searched_for_too(written):
    found = succeeded("docs", "a", "cat")
    assert found.index("cat   ") < found.index("theory/laplace")  # the page about it first
    assert "are on no page" in refused("docs", "dogs")
    assert "cat   " in succeeded("docs", "cat", "unheardof")  # no page holds both


def test_an_installation_without_pages_says_so(written):
    (written / "index.md").unlink()
    assert "is not part of this installation" in refused("docs")


def test_the_checkouts_own_pages_are_shown():
    assert "budget" in lastbit("docs", "increase", "the", "budget", "--terminal").stdout
    assert "run-behind-a-proxy" in lastbit("docs", "nginx", "--terminal").stdout


def test_a_port_that_is_taken_is_refused(server):
    assert "--port cannot be used" in refused("docs", "--port", str(server.server_port))
