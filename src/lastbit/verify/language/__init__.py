"""Expressions over real inputs: as steps, on paper, and evaluated."""
