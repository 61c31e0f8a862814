"""Spark as an engine: a session of our own beside the user's, and the statement run in it."""
