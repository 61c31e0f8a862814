"""SQL in: one SELECT becomes a query, or is refused."""
