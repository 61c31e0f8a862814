"""The page about training, executed where torch is."""

from pathlib import Path

from tests.docs.pages import run
from tests.training.torch_here import torch

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "train-a-model.md"


def test_the_page_shows_what_happens(folder):
    torch.manual_seed(0)
    run(PAGE.read_text("utf-8"), name="docs/how-to/train-a-model.md", directory=folder)
