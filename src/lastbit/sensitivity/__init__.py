"""How far a statistic moves when one record does.

The global sensitivity asks it for all data, the local one for the data at hand, and noise fitted to
the local one would tell of the data. What lies between is in this room: smooth upper bounds, which
hardly change between neighbours, and distances, which say how far the data are from data where the
answer is fragile. Every number is exact, or rounded so that what is claimed holds for the number
itself. All of it, the global sensitivity aside, is as secret as the data.

| file | holds |
|---|---|
| `values.py` | data on a public integer grid between public bounds, one record at a time |
| `neighbours.py` | global and local sensitivity, that of data near by, distances beyond a bound |
| `windows.py`, `smooth.py` | the widest windows of sorted records; smooth bounds made of them |
| `distance.py` | `distance_to_instability`: how far to data with another answer |
| `functions.py` | functions of one's own over a finite domain: every database is tried |
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
