"""Black-box audit: find the event that tells two inputs apart best, fix it, then test it.

| file | holds |
|---|---|
| `distinguish.py` | `distinguish`, by law or by samples; one result of all |
| `exact_laws.py` | the exact loss of two known laws; code whose law only chooses the event |
| `releases.py` | whether releases follow the law that a mechanism states |
| `search.py`, `events.py`, `features.py` | which pair and which event: features, scores, corners |
| `sampled.py` | counting the event, in several processes, with one error budget for all |
"""
