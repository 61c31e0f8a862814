from lastbit.kernel.answering import (
    answer as answer,
    answer_unrecorded as answer_unrecorded,
    data_fingerprint as data_fingerprint,
    reserve as reserve,
)
from lastbit.kernel.noise import Noisy as Noisy
from lastbit.kernel.program import Program as Program
from lastbit.kernel.question import (
    question_of as question_of,
    question_of_program as question_of_program,
)

__all__ = []
