"""PostgreSQL, where the data are: a table of a server, read in one transaction."""
