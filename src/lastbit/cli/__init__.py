"""The command line: one file a command.

The top room. It parses what a person typed, calls the rooms below and prints what they return; it
decides nothing about privacy. `entry.py` is the group that carries the commands and the one place
where an error of ours becomes a paragraph on stderr and the exit status 2.

Commands import what they need inside their bodies, so that `lastbit --help` stays quick.

| file | holds |
|---|---|
| `entry.py` | the `lastbit` group, its version, its errors |
| `mechanism.py` | `lastbit mechanism`: one release, or an explanation and none |
| `mechanism_input.py` | the data it is given, which no message repeats |
| `mechanism_explained.py` | law, theorem, noise, error, probabilities: public parameters only |
| `mechanism_answer.py` | the release as text and as JSON |
| `poll.py` | `lastbit poll`: plan, estimate, simulate |
| `median.py`, `columns.py` | `lastbit median`, and the column of a file that it reads |
| `geo.py`, `geo_points.py` | `lastbit geo`, and the places in files that it reads and writes |
| `convert.py`, `compose.py` | guarantees from kind to kind, and several together |
| `promises.py` | guarantees as people type them: "pure 0.1 x 100" |
| `verify.py`, `verify_answer.py` | `lastbit verify`, and what it prints and writes |
| `verify_loading.py`, `verify_code.py` | somebody's function: found and imported, then judged |
| `verify_shipped.py` | the mechanisms that lastbit ships, judged |
| `check.py` | `lastbit check`: certificates, by the second program |
| `card.py`, `card_view.py` | `lastbit card`: data cards drafted and checked, and how they look |
| `query.py`, `query_view.py` | `lastbit query`: a question in SQL, and its answer as a page |
| `budget.py` | `lastbit budget`: what is spent and what is left |
| `ledger.py`, `ledger_view.py` | `lastbit ledger`: the books, and entries as lines |
| `demo.py`, `demo_data.py`, `demo_view.py` | `lastbit demo`: a made-up hospital beside the truth |
| `audit.py`, `audit_run.py`, `audit_answer.py` | `lastbit audit`, how it is run, what it prints |
| `audit_subject.py`, `audit_pairs.py` | somebody's mechanism, and the inputs it is tried on |
| `audit_evidence.py`, `audit_laws.py` | both output laws as panels: fresh runs, or exact |
| `attack.py`, `attack_run.py`, `attack_answer.py` | `lastbit attack`: the list, runs, verdicts |
| `figure.py` | `lastbit figure`: pictures of the theory |
| `page.py`, `numbers.py` | how pages and numbers look, and numbers as they are read |
| `files.py`, `refusals.py` | files, and errors in the words of options |
| `waiting.py`, `progress_bar.py` | a sign of life, and how far it is |
| `leak.py` | `lastbit leak`: options, progress, the saved picture |
| `leak_evidence.py` | what the three panels show, computed: exact laws and measured shares |
| `leak_view.py` | the evidence as lines of a terminal |
| `leak_picture.py` | the evidence as panels of a picture |
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
