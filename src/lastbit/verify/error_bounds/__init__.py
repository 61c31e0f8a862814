"""How far float code strays from its real meaning: formats, rules, derivations."""
