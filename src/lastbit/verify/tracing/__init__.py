"""From Python code to expressions, and whether the code does what was followed."""
