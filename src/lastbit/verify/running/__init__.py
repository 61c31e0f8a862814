"""Exact laws, losses and refutations of running code."""
