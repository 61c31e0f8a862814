from lastbit.sampling.bernoulli import (
    Coin as Coin,
    bernoulli as bernoulli,
    bernoulli_exp as bernoulli_exp,
    coin as coin,
    flips as flips,
)
from lastbit.sampling.bits import Bits as Bits, secure_bits as secure_bits, words as words
from lastbit.sampling.blocks import Sampler as Sampler
from lastbit.sampling.choice import (
    choice as choice,
    choice_exp as choice_exp,
    counted as counted,
)
from lastbit.sampling.draw import (
    Size as Size,
    drawn as drawn,
    drawn_fresh as drawn_fresh,
    stream as stream,
)
from lastbit.sampling.gaussian import (
    MOST_VARIANCE as MOST_VARIANCE,
    draw_discrete_gaussian as draw_discrete_gaussian,
)
from lastbit.sampling.gaussian_tables import gaussian_sampler as gaussian_sampler
from lastbit.sampling.integers import (
    discrete_gaussian as discrete_gaussian,
    discrete_laplace as discrete_laplace,
    geometric as geometric,
)
from lastbit.sampling.inversion import GUIDE_BITS as GUIDE_BITS, WORD_BITS as WORD_BITS
from lastbit.sampling.laplace import (
    MOST_SCALE as MOST_SCALE,
    draw_discrete_laplace as draw_discrete_laplace,
)
from lastbit.sampling.laplace_tables import digits as digits, laplace_sampler as laplace_sampler
from lastbit.sampling.norms import norm_sampler as norm_sampler
from lastbit.sampling.planar import (
    MOST_STEPS as MOST_STEPS,
    PLACES as PLACES,
    RADIUS_ERROR as RADIUS_ERROR,
    PolarNoise as PolarNoise,
    Shells as Shells,
    coordinates as coordinates,
    least as least,
    planar_laplace as planar_laplace,
    planar_sampler as planar_sampler,
    survival as survival,
)
from lastbit.sampling.rounded import rounded as rounded, rounded_sampler as rounded_sampler
from lastbit.sampling.rows import choice_exp_rows as choice_exp_rows
from lastbit.sampling.uniform import UniformBelow as UniformBelow, uniform_below as uniform_below

__all__ = [
    "bernoulli",
    "bernoulli_exp",
    "choice",
    "choice_exp",
    "discrete_gaussian",
    "discrete_laplace",
    "geometric",
    "planar_laplace",
    "rounded",
    "stream",
    "uniform_below",
]
