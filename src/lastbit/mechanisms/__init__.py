"""One file a mechanism: parameters in; release, guarantee, accuracy and law out.

A mechanism is a frozen value. It is constructed either from the promise it must keep (`epsilon=`,
`rho=`, `epsilon=` with `delta=`) or from its raw noise (`scale=`, `standard_deviation=`, `keep=`);
in both cases `guarantee` says exactly what one release promises, for inputs as far apart as the
declared sensitivity. Then:

* `release(x)`: a private version of x; everything about x is checked before anything is drawn,
* `guarantee`, `guarantee_at(distance)`: what that costs,
* `accuracy(beta)`, `beta(error)`: how far off the release is, from the exact law, rounded up,
* `law(x)`: the exact law of release(x), an object that answers in balls.

| mechanism | releases | promises |
|---|---|---|
| `Laplace` | numbers with discrete Laplace noise | pure |
| `NormLaplace` | vectors with Laplace noise by their Euclidean or maximum norm | pure |
| `Gaussian` | numbers with discrete Gaussian noise | concentrated, approximate |
| `RandomizedResponse`, `Poll` | each person's own answer, and what many answers say | pure |
| `Exponential`, `PermuteAndFlip`, `ReportNoisyMax` | the index of a good candidate | pure |
| `Histogram` | counts of declared keys | pure |
| `ThresholdedHistogram` | counts of keys found in the data | probabilistic |
| `AboveThreshold` | which queries of a stream exceed a threshold | pure |
| `ExponentialQuantile` | medians and quantiles, out of a fine grid | pure |
| `SmoothNoise`, `SmoothStatistic` | medians, noise fit to the data | pure, approximate |
| `quantile_mechanism` | the one of the two above that is nearer at this epsilon | pure |
| `ProposeTestRelease` | a number with noise for a bound that was tested, or ⊥ | approximate |
| `StableValue` | an answer that no near database changes, or ⊥ | approximate |
| `Snapping`, `RoundedLaplace` | numbers in floats, with a certificate | pure |
| `PlanarLaplace`, `PolarLaplace` | points: exact, or floats with a certificate | metric |

The theorem stands in each docstring, the proof in docs/theory/. `mechanism.py` holds what all
mechanisms share, `lattice.py` the way from numbers to integers and back.
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
