"""The trusted base is listed as it is, and grows on purpose only."""

from docs import generate_trusted


def test_the_page_is_up_to_date() -> None:
    assert generate_trusted.DOCS.joinpath("trusted-base.md").read_text("utf-8") == (
        generate_trusted.page()
    ), "run make trusted"
    assert generate_trusted.DOCS.joinpath("trusted-base.svg").read_text("utf-8") == (
        generate_trusted.picture()
    )


def test_it_does_not_grow_unnoticed() -> None:
    _, total, more = generate_trusted.counts()
    assert total <= generate_trusted.MOST, "raise MOST on purpose, and say why"
    assert max(more.values()) <= generate_trusted.MOST_OF_AN_ENGINE


def test_what_is_trusted_imports_nothing_above_it() -> None:
    """Neither planner nor parser nor release: a file of theirs would be counted, and is not there."""
    rooms, _, _ = generate_trusted.counts()
    names = {
        str(path.relative_to(generate_trusted.SOURCE)) for files in rooms.values() for path in files
    }
    assert "lastbit/kernel/program.py" in names and "lastbit/checker/release.py" in names
    outside = ("release/", "report/", "serve/", "cli/", "tables/sql/", "tables/plan/plan", "audit/")
    assert not [name for name in names if name.removeprefix("lastbit/").startswith(outside)]


def test_a_file_that_a_kernel_file_imports_is_counted(tmp_path, monkeypatch) -> None:
    """The mutant: an import in a function, of a name behind a door."""
    source = tmp_path / "lastbit"
    for name, text in {
        "__init__.py": "",
        "kernel/__init__.py": "",
        "kernel/answering.py": "def f():\n    from lastbit.room import thing\n",
        "room/__init__.py": "",
        "room/__init__.pyi": "from lastbit.room.inner import thing as thing\n",
        "room/inner.py": "from .other import more\n",
        "room/other.py": "if TYPE_CHECKING:\n    from lastbit.room import unused\n",
        "room/unused.py": "",
    }.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(generate_trusted, "SOURCE", tmp_path)
    generate_trusted.imported_by.cache_clear()
    try:
        found = generate_trusted.closure(("lastbit.kernel.answering",))
    finally:
        generate_trusted.imported_by.cache_clear()
    names = {str(path.relative_to(source)) for path in found}
    assert {"room/inner.py", "room/other.py"} <= names and "room/unused.py" not in names
