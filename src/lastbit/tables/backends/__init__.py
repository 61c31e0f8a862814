"""Engines that run the one statement of a query; each hands back the same integers.

A backend shows the card's source and its public tables under the names that the statement uses
(`compile.rows.relation`), runs it and gives `RawRows`. It adds nothing and decides nothing: what
bounds a person's influence is in the statement. An engine's own words about a failure may hold
values of the data, so none of them leaves a backend: `EngineFailed` says what can be said.

`engines.py` opens a session on the engine of a source, whose folder holds the rest. `columns.py`,
`printed.py` and `progress.py` are for people: no answer needs them.
"""
