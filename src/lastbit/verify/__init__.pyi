from lastbit.checker import Rejected as Rejected, check as check, problem_of as problem_of
from lastbit.verify.certificate import (
    certificate as certificate,
    digest as digest,
    number as number,
    read as read,
    save as save,
    text_of as text_of,
)
from lastbit.verify.closeness import (
    Closeness as Closeness,
    apart as apart,
    closeness as closeness,
    inverse_laplace as inverse_laplace,
    least_shift as least_shift,
    shifted_bounds as shifted_bounds,
    wasserstein as wasserstein,
)
from lastbit.verify.composition import composition_certificate as composition_certificate
from lastbit.verify.coupling import Coupling as Coupling, coupled as coupled
from lastbit.verify.declared import (
    DeclaredAnalysis as DeclaredAnalysis,
    declared_certificate as declared_certificate,
)
from lastbit.verify.error_bounds.formats import (
    BINARY16 as BINARY16,
    BINARY32 as BINARY32,
    BINARY64 as BINARY64,
    BINARY128 as BINARY128,
    EXTENDED80 as EXTENDED80,
    Binary as Binary,
    Fixed as Fixed,
    format_from_json as format_from_json,
)
from lastbit.verify.error_bounds.rules import (
    Derivation as Derivation,
    derivation_from_json as derivation_from_json,
)
from lastbit.verify.error_bounds.semantics import (
    analyse as analyse,
    error_certificate as error_certificate,
)
from lastbit.verify.gaussian import (
    GaussianAnalysis as GaussianAnalysis,
    gaussian_certificate as gaussian_certificate,
)
from lastbit.verify.language.expressions import (
    expression_from_json as expression_from_json,
    table as table,
    text as text,
)
from lastbit.verify.loss_derivation import DerivedLoss as DerivedLoss
from lastbit.verify.loss_rules import (
    Step as Step,
    judgement as judgement,
    latex_of_steps as latex_of_steps,
    side_names as side_names,
)
from lastbit.verify.polar import (
    PolarAnalysis as PolarAnalysis,
    certified_planar_code as certified_planar_code,
    polar_certificate as polar_certificate,
    polar_laplace_certificate as polar_laplace_certificate,
)
from lastbit.verify.rounded_code import (
    certified_code as certified_code,
    certified_function as certified_function,
    derived_loss as derived_loss,
    largest_region as largest_region,
    least_cell as least_cell,
)
from lastbit.verify.rounding import (
    RoundingAnalysis as RoundingAnalysis,
    rounding_certificate as rounding_certificate,
)
from lastbit.verify.running.code import (
    Code as Code,
    evaluated as evaluated,
    input_of as input_of,
    order as order,
)
from lastbit.verify.running.exhaustive import (
    drawn_law as drawn_law,
    exhaustive as exhaustive,
    exhaustive_delta as exhaustive_delta,
)
from lastbit.verify.running.law import (
    ExactLaw as ExactLaw,
    ExactLoss as ExactLoss,
    exact_law as exact_law,
    exact_loss as exact_loss,
    monotone_steps as monotone_steps,
)
from lastbit.verify.running.uniforms import (
    FullPrecision as FullPrecision,
    Grid as Grid,
    Uniform as Uniform,
    Within as Within,
)
from lastbit.verify.running.witness import Refutation as Refutation, refute as refute
from lastbit.verify.snapping import (
    SnappingBound as SnappingBound,
    snapping_bound as snapping_bound,
)
from lastbit.verify.tracing.markers import clamp as clamp, round_to as round_to
from lastbit.verify.tracing.trace import arguments_of as arguments_of, trace as trace

__all__ = [
    "BINARY128",
    "BINARY16",
    "BINARY32",
    "BINARY64",
    "Binary",
    "Closeness",
    "Code",
    "Coupling",
    "DeclaredAnalysis",
    "DerivedLoss",
    "EXTENDED80",
    "ExactLaw",
    "ExactLoss",
    "Fixed",
    "FullPrecision",
    "GaussianAnalysis",
    "Grid",
    "PolarAnalysis",
    "Refutation",
    "Rejected",
    "RoundingAnalysis",
    "SnappingBound",
    "Within",
    "analyse",
    "apart",
    "certified_code",
    "certified_planar_code",
    "check",
    "clamp",
    "closeness",
    "composition_certificate",
    "coupled",
    "declared_certificate",
    "derived_loss",
    "drawn_law",
    "error_certificate",
    "exact_law",
    "exact_loss",
    "exhaustive",
    "exhaustive_delta",
    "gaussian_certificate",
    "largest_region",
    "least_cell",
    "least_shift",
    "polar_certificate",
    "polar_laplace_certificate",
    "problem_of",
    "read",
    "refute",
    "round_to",
    "rounding_certificate",
    "save",
    "shifted_bounds",
    "snapping_bound",
    "trace",
    "wasserstein",
]
