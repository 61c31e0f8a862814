from lastbit.cli.main import main as main

__all__ = [
    "main",
]
