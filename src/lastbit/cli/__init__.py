"""The command line: one file a command.

The top room. It parses what a person typed, calls the rooms below and prints what they return; it
decides nothing about privacy. `main.py` knows every command by its name and one line of help, and
imports a command's file when the command is run.

| file | holds |
|---|---|
| `help.py` | what can be asked, and the help of a command |
| `main.py` | the `lastbit` group; the one place where an error becomes a paragraph and status 2 |
| `output.py` | pages, JSON, a sign of life: how everything looks |
| `options.py` | numbers and guarantees as people type them, options that commands share |
| `files.py` | files that commands read and write, and columns of CSV |
| `loading.py` | somebody's function: found, imported, and asked what it takes |
| `drafting.py`, `proposing.py` | a card drafted, by a look at the data too |
| `prompting.py` | questions on the terminal |
| `card.py`, `query.py`, `budget.py`, `ledger.py` | private answers about tables, and who paid |
| `demo.py` | a made-up hospital beside the truth |
| `docs.py`, `pages.py` | the documentation, served to a browser on this machine, or here |
| `mechanism.py`, `explaining.py` | one release, or law, theorem, noise and error |
| `poll.py`, `median.py`, `geo.py` | polls, medians and places |
| `theory.py` | the group of `compose`, `convert`, `geo` and `poll` |
| `convert.py`, `compose.py` | guarantees from kind to kind, several together |
| `verify.py`, `check.py` | what float code loses, and certificates checked |
| `audit.py`, `attack.py` | anybody's mechanism audited, and attacked |
| `audit_training.py` | a training loop audited by canaries |
| `law_panels.py` | the picture of an audit |
| `leak.py` | textbook noise that leaks, and exact noise that holds |
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
