"""`lastbit serve`: people ask in a browser, or by HTTP, about tables that they do not have.

| file | what |
|---|---|
| settings | what the command line says |
| store | tokens, sessions, jobs and the audit log; money and answers are the ledger's |
| routes | the one list: path, right, handler. Application, OpenAPI and tests are made of it |
| identity, safety, app | who asks, what a browser may do, the application |
| catalogue, planning, desk | the tables, previews in a child process, questions that are paid for |
| slots, worker | when answers appear; the process that reads a table |
| api, openapi, problems | JSON |
| pages, views, templates, static | HTML: handlers, and what they say |
| run, units | start and stop; texts for systemd, Caddy and containers |

Time. Before a reservation everything depends on question and card only. After it the answer appears
at the end of a slot (`slots.py`), or never, and is charged either way.
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
