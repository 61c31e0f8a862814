"""The page about JAX, executed where jax is."""

from pathlib import Path

from tests.docs.pages import run
from tests.training import jax_here as jax_here  # without it, this file is skipped

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "train-with-jax.md"


def test_the_page_shows_what_happens(folder):
    run(PAGE.read_text("utf-8"), name="docs/how-to/train-with-jax.md", directory=folder)
