"""`python -m lastbit`: the command line, where no script of that name is on the path."""

from lastbit.cli import main

main(prog_name="lastbit")
