"""White-box attacks: ways in which private noise is known to fail, tried on any mechanism.

Each attack knows one mistake. It fixes an event before it counts, releases two neighbouring inputs
and gives a `Verdict` with a certified lower bound on epsilon. A bound is true of every target, also
of one that the attack was not made for; so a correct mechanism is accused with probability at most
`error`, 1e-6 unless told otherwise; that is the rate of one attack, and many add up. The premise is
that releases are independent. The other way round, resistance proves nothing.

| attack | looks for | source |
|---|---|---|
| `preimage` | outputs that no uniform number turns into | Mironov 2012 |
| `precision` | bits too fine for the larger answer | Haney et al. 2022 |
| `polar_pairs` | pairs of normals that no point turns into | Jin et al. 2021 |
| `low_bits` | last bits that are the secret's | paper 000, Example 1.1 |
| `threshold` | too little noise | Ding et al. 2018 |
| `narrow_sum` | float sums that move further than a record can | Casacuberta et al. 2022 |
| `reordering` | float sums that depend on the order of records | Casacuberta et al. 2022 |
| `not_a_number` | a NaN record that comes out as NaN | Casacuberta et al. 2022 |
| `overflow` | integer sums that wrap around | Casacuberta et al. 2022 |
| `forked` | noise that a forked process repeats | docs/threat-model.md |
| `timing` | draws that take longer for larger noise | Jin et al. 2021 |

What was tried on whom: docs/attacks.md, written by `make attacks`.
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
