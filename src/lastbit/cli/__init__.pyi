from lastbit.cli.entry import (
    main as main,
)

__all__ = [
    "main",
]
