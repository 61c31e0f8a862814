"""PostgreSQL's protocol: psql, drivers and BI tools ask as the page and the API do.

| file | what |
|---|---|
| messages, values | bytes to messages and values, and back |
| lexing, options, commands | where a statement ends, what is set, what is no question |
| session | one connection, from its first packet to its last |
| asking, problems | the desk as a session sees it; what is refused, as SQL errors |
| reading, reader | who waits for the child that reads statements; that child |
| catalogue, layout, rewriting, names | what is asked of pg_catalog and information_schema |
| wires, port | sockets and TLS; who may come in |

Nothing here touches data: `asking.py` says why.
"""
