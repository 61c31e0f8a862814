"""SQL out: a query as one statement whose answer is integers."""
