from lastbit.laws.discrete import (
    Bernoulli as Bernoulli,
    DiscreteGaussian as DiscreteGaussian,
    DiscreteLaplace as DiscreteLaplace,
    ExpWeighted as ExpWeighted,
    Geometric as Geometric,
    Uniform as Uniform,
    Weighted as Weighted,
    tail_weight as tail_weight,
    theta as theta,
)
from lastbit.laws.ideal import (
    Gumbel as Gumbel,
    Ideal as Ideal,
    IdealCauchy as IdealCauchy,
    IdealGaussian as IdealGaussian,
    IdealLaplace as IdealLaplace,
    Logistic as Logistic,
    PolynomialTail as PolynomialTail,
    StudentT as StudentT,
)
from lastbit.laws.law import Law as Law, least as least, quantile_level as quantile_level
from lastbit.laws.norms import (
    DiscreteNormLaplace as DiscreteNormLaplace,
    Norm as Norm,
    ScatteredVector as ScatteredVector,
    eulerian_b as eulerian_b,
    norm_normaliser as norm_normaliser,
)
from lastbit.laws.planar import (
    DiscretePlanarLaplace as DiscretePlanarLaplace,
    ScatteredPoint as ScatteredPoint,
)
from lastbit.laws.sums import normal_reach as normal_reach
from lastbit.laws.transformed import (
    Clamped as Clamped,
    OnGrid as OnGrid,
    Rounded as Rounded,
    Shifted as Shifted,
    Stepped as Stepped,
    enclosed as enclosed,
)

__all__ = [
    "Bernoulli",
    "Clamped",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DiscreteNormLaplace",
    "DiscretePlanarLaplace",
    "ExpWeighted",
    "Geometric",
    "Gumbel",
    "Ideal",
    "IdealCauchy",
    "IdealGaussian",
    "IdealLaplace",
    "Law",
    "Logistic",
    "OnGrid",
    "PolynomialTail",
    "Rounded",
    "ScatteredPoint",
    "ScatteredVector",
    "Shifted",
    "Stepped",
    "StudentT",
    "Uniform",
    "Weighted",
]
