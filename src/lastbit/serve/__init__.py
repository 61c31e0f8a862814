"""`lastbit serve`: people ask in a browser, or by HTTP, about tables that they do not have.

| file | what |
|---|---|
| settings | what the command line says |
| store | tokens, sessions, jobs and the audit log; money and answers are the ledger's |
| routes | the one list: path, right, handler. Application, OpenAPI and tests are made of it |
| identity, safety, app, handling | who asks, what a browser may do, the application, a call |
| catalogue, questions | the tables; what is asked, previewed and taken, and what is refused |
| child, tasks | the one kind of child process; what children do: plan, pay, read rows |
| builder, reference | questions out of lists; SQL in a minute |
| planning, planner | what is said of a question before it is paid; the children that say it |
| desk, station, slots | questions that are paid for; a table at work; when its answers appear |
| api, schemas, openapi, problems | JSON |
| pages, views, templates, static | HTML: handlers, and what they say |
| run, units | start and stop; texts for systemd, Caddy and containers |

Time. Before a reservation everything depends on question and card only. After it the answer appears
at the end of a slot (`slots.py`), or never, and is charged either way.
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
